"""Each row of the table, by an example of every shape its type has had."""

import typing
from typing import Any

import pytest
from openai.types import beta, responses

from app.transcripts.items import ITEM_TYPES
from tests.transcripts.build import codes, items

UNIONS = [
    responses.ResponseItem,
    responses.ResponseInputItem,
    responses.ResponseOutputItem,
    beta.BetaResponseInputItem,
    beta.BetaResponseOutputItem,
    beta.AgentOutputItem,
]


def type_strings(annotation: Any) -> set[str]:
    if hasattr(annotation, "model_fields"):
        return type_strings(annotation.model_fields["type"].annotation) if "type" in annotation.model_fields else set()
    if typing.get_origin(annotation) is typing.Literal:
        return set(typing.get_args(annotation))
    return set().union(*map(type_strings, typing.get_args(annotation)))


@pytest.mark.parametrize("union", UNIONS)
def test_the_table_has_a_row_for_every_type_of_the_sdk(union: Any) -> None:
    known = type_strings(union)
    assert len(known) > 10
    assert known - set(ITEM_TYPES) == set()


PNG = "data:image/png;base64,iVBORw0KGgo="
SHOT = {"type": "computer_screenshot", "image_url": PNG}
ACTIONS = [{"type": "click", "x": 1, "y": 2}]
PATCH = {"type": "create_file", "path": "a.txt", "diff": "+a"}
HIT = {"file_id": "f1", "filename": "rates.md", "score": 0.5, "text": "Two euros.", "attributes": {}}
SEARCH = {
    "type": "search",
    "query": "turin",
    "sources": [{"type": "url", "url": "https://example.org/a"}, {"url": 3}, 4],
}
ERROR = {"type": "http_error", "code": 502, "message": "no route"}


def ended(outcome: dict[str, Any], **printed: str) -> dict[str, Any]:
    return {"stdout": "", "stderr": "", "outcome": outcome} | printed


OK, EXIT_1, TIMEOUT = {"type": "exit", "exit_code": 0}, {"type": "exit", "exit_code": 1}, {"type": "timeout"}


def answered(type_: str, asked: dict[str, Any], came: dict[str, Any]) -> list[dict[str, Any]]:
    name = type_.removesuffix("_call")
    answer = "program_output" if name == "program" else f"{name}_call_output"
    return [{"type": type_, "call_id": "1"} | asked, {"type": answer, "call_id": "1"} | came]


def function(**came: Any) -> list[dict[str, Any]]:
    return answered("function_call", {"name": "f", "arguments": "{}"}, came)


def one(type_: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": type_, "id": "1"} | fields]


NO_ARGUMENTS: dict[str, Any] = {}
F, SQL, LS = ("f", "function", NO_ARGUMENTS), {"name": "sql", "input": "SELECT 1"}, {"action": {"commands": ["ls"]}}
LOCAL = {"id": "l", "action": {"command": ["ls"]}}
PROGRAM, MCP = ("programmatic_tool_calling", "program", {"code": "1"}), ("f", "mcp", NO_ARGUMENTS)
SHELL, LOCAL_SHELL = ("shell", "shell", {"commands": ["ls"]}), ("local_shell", "shell", {"command": ["ls"]})
CODE, NOTHING = ("code_interpreter", "hosted", {"code": "1"}), (None, False, "no_output", None)
SEARCHED = ("web_search", "hosted", {"action": "search", "query": "turin"})
FOUND = ({"sources": ["https://example.org/a"]}, True, "ok", None)
CUSTOM, FILES = ("sql", "custom", {"input": "SELECT 1"}), ("file_search", "hosted", {"queries": ["rates"]})
TEXT, IMAGE, FILE = (
    {"type": "input_text", "text": "a"},
    {"type": "input_image", "image_url": PNG},
    {"type": "input_file"},
)
BLOCKED = {"type": "user_error", "code": "blocked", "message": "no"}
FIND = {"type": "find", "url": "u", "pattern": "p"}
WEB = {"type": "web_search_call", "id": "1", "action": SEARCH}
PRINTED, DRAWN = {"type": "logs", "logs": "2"}, {"type": "image"}
EMPTY, REFUSED = {"stdout": "", "stderr": "", "exit_code": 0}, {"stdout": "", "stderr": "no", "exit_code": 1}
THOUGHT = {"type": "summary_text", "text": "Look"}
SPAWN = {"action": "spawn_agent", "arguments": '{"task": "x"}'}
SEVEN = {"output": [{"type": "output_text", "text": "7"}]}

# What is recorded | tool name, kind, arguments | output, whether it is available, outcome, error.
EXAMPLES: dict[str, tuple[list[dict[str, Any]], tuple[Any, ...], tuple[Any, ...]]] = {
    "function, structured": (function(output={"a": [1]}), F, ({"a": [1]}, True, "ok", None)),
    "function, parts": (function(output=[TEXT, IMAGE, FILE]), F, ("a\n[image]\n[file]", True, "ok", None)),
    "function, one part": (function(output=[TEXT | {"text": '{"a": 1}'}]), F, ({"a": 1}, True, "ok", None)),
    "function, no parts": (function(output=[{"type": "text"}]), F, ([{"type": "text"}], True, "ok", None)),
    "function, no output in the output": (function(), F, NOTHING),
    "function in a namespace, output by name": (
        answered(
            "function_call",
            {"namespace": "crm", "name": "f", "arguments": "{}", "async": True},
            {"call_id": None, "namespace": "crm", "name": "f", "output": "21"},
        ),
        ("crm.f", "function", {}),
        (21, True, "ok", None),
    ),
    "custom": (answered("custom_tool_call", SQL, {"output": "1"}), CUSTOM, ("1", True, "ok", None)),
    "custom, JSON": (
        answered("custom_tool_call", SQL, {"output": '{"error": "syntax"}'}),
        CUSTOM,
        ({"error": "syntax"}, True, "failed", "syntax"),
    ),
    "custom without input": (one("custom_tool_call", name="sql"), ("sql", "custom", {}), NOTHING),
    "mcp": (one("mcp_call", name="f", arguments="{}", output="[1]", error=None), MCP, ([1], True, "ok", None)),
    "mcp, error text": (one("mcp_call", name="f", output=None, error="boom"), MCP, (None, True, "failed", "boom")),
    "mcp, error object": (
        one("mcp_call", name="f", arguments={"a": 1}, output=None, error=ERROR, status="failed"),
        ("f", "mcp", {"a": 1}),
        (None, True, "failed", "http_error 502: no route"),
    ),
    "mcp, nothing recorded": (one("mcp_call", name="f", arguments="{}", output=None, error=None), MCP, NOTHING),
    "web search": (one("web_search_call", status="completed", action=SEARCH), SEARCHED, FOUND),
    "web search, first SDK": (one("web_search_call", status="completed"), ("web_search", "hosted", None), NOTHING),
    "web search, failed": (
        one("web_search_call", status="failed", action=FIND),
        ("web_search", "hosted", {"action": "find", "url": "u", "pattern": "p"}),
        (None, False, "failed", "status failed"),
    ),
    "file search": (
        one("file_search_call", queries=["rates"], results=[HIT, 7]),
        FILES,
        ([{"filename": "rates.md", "score": 0.5, "text": "Two euros."}], True, "ok", None),
    ),
    "file search, null": (one("file_search_call", queries=["rates"], results=None), FILES, NOTHING),
    "code": (one("code_interpreter_call", code="1", outputs=[PRINTED, DRAWN]), CODE, ("2\n[image]", True, "ok", None)),
    "code, first SDK": (
        one("code_interpreter_call", code="1", results=[PRINTED, {"type": "files"}]),
        CODE,
        ("2\n[file]", True, "ok", None),
    ),
    "code, null": (
        one("code_interpreter_call", code=None, outputs=None),
        ("code_interpreter", "hosted", {}),
        NOTHING,
    ),
    "code, traceback": (
        one("code_interpreter_call", code="1", outputs=[PRINTED | {"logs": "NameError: x"}]),
        CODE,
        ("NameError: x", True, "suspected_failure", "NameError: x"),
    ),
    "image": (
        one("image_generation_call", result="iVBORw0KGgo=", revised_prompt="a dog", size="auto"),
        ("image_generation", "hosted", {"revised_prompt": "a dog", "size": "auto"}),
        ("[image]", True, "ok", None),
    ),
    "image, blocked": (
        one("image_generation_call", result=None, status="failed", error=BLOCKED),
        ("image_generation", "hosted", {}),
        (None, False, "failed", "blocked: no"),
    ),
    "computer": (
        answered("computer_call", {"actions": ACTIONS}, {"output": SHOT}),
        ("computer", "computer", {"actions": ACTIONS}),
        ("[image]", True, "ok", None),
    ),
    "computer, one action": (
        answered("computer_call", {"action": ACTIONS[0]}, {"output": SHOT, "status": "failed"}),
        ("computer", "computer", {"action": ACTIONS[0]}),
        ("[image]", True, "failed", "[image]"),
    ),
    "computer, text instead": (
        answered("computer_call", {"action": ACTIONS[0]}, {"output": "x"}),
        ("computer", "computer", {"action": ACTIONS[0]}),
        ("x", True, "ok", None),
    ),
    "local shell, by the call's call_id": (
        answered("local_shell_call", LOCAL, {"call_id": None, "id": "1", "output": '{"stdout": "a"}'}),
        LOCAL_SHELL,
        ({"stdout": "a"}, True, "ok", None),
    ),
    "local shell, by the call's id": (
        answered("local_shell_call", LOCAL, {"call_id": None, "id": "l", "output": "a"}),
        LOCAL_SHELL,
        ("a", True, "ok", None),
    ),
    "local shell, by call_id": (
        answered("local_shell_call", LOCAL, {"id": "o", "output": "a"}),
        LOCAL_SHELL,
        ("a", True, "ok", None),
    ),
    "shell": (
        answered("shell_call", LS, {"output": [ended(OK, stdout="a")]}),
        SHELL,
        ([EMPTY | {"stdout": "a"}], True, "ok", None),
    ),
    "shell, exit code": (
        answered("shell_call", LS, {"output": [ended(OK), ended(EXIT_1, stderr="no")]}),
        SHELL,
        ([EMPTY, REFUSED], True, "failed", "exit code 1"),
    ),
    "shell, timeout": (
        answered("shell_call", {"action": None}, {"output": [ended(TIMEOUT)]}),
        ("shell", "shell", None),
        ([{"stdout": "", "stderr": "", "timeout": True}], True, "failed", "timeout"),
    ),
    "shell, text instead": (
        answered("shell_call", {"action": "ls"}, {"output": "a"}),
        ("shell", "shell", "ls"),
        ("a", True, "ok", None),
    ),
    "patch": (
        answered("apply_patch_call", {"operation": PATCH}, {"status": "completed"}),
        ("apply_patch", "patch", PATCH),
        (None, True, "ok", None),
    ),
    "patch, failed": (
        answered("apply_patch_call", {"operation": PATCH}, {"status": "failed", "output": "hunk 1"}),
        ("apply_patch", "patch", PATCH),
        ("hunk 1", True, "failed", "hunk 1"),
    ),
    "program": (answered("program", {"code": "1"}, {"result": "21"}), PROGRAM, ("21", True, "ok", None)),
    "program, cut": (
        answered("program", {"code": "1"}, {"result": "", "status": "incomplete"}),
        PROGRAM,
        ("", True, "failed", "status incomplete"),
    ),
    "multi agent": (
        answered("multi_agent_call", SPAWN, SEVEN),
        ("multi_agent.spawn_agent", "multi_agent", {"task": "x"}),
        ("7", True, "ok", None),
    ),
    "tool search": (
        [*one("tool_search_call", arguments={"q": "x"}), {"type": "tool_search_output", "tools": [{"name": "f"}]}],
        ("tool_search", "tool_search", {"q": "x"}),
        (["f"], True, "ok", None),
    ),
    "wrapped": (one("hosted_tool_call", name="web_search_call", provider_data=WEB), SEARCHED, FOUND),
    "wrapped, nothing inside": (
        one("hosted_tool_call", name="file_search_call", arguments='{"q": 1}', output="a", providerData={"type": "x"}),
        ("file_search", "hosted", {"q": 1}),
        ("a", True, "ok", None),
    ),
    "command": (
        one("command_execution", command="ls", cwd="/", output="no", exit_code=2),
        ("command_execution", "shell", {"command": "ls", "cwd": "/"}),
        ("no", True, "failed", "exit code 2"),
    ),
    "computer use": (
        one("computer_use_call", title="Open the page", output=SHOT),
        ("computer", "computer", {"title": "Open the page"}),
        ("[image]", True, "ok", None),
    ),
    "closing an agent it made": (
        one("close_subagent_call", recipient_agent_id="a2"),
        ("multi_agent.close_subagent", "multi_agent", {"recipient_agent_id": "a2"}),
        NOTHING,
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_calls_of_every_type(name: str) -> None:
    entries, asked_for, came_back = EXAMPLES[name]
    (made,) = items(*entries).calls
    assert (made.tool_name, made.kind, made.arguments) == asked_for
    assert (made.output, made.output_available, made.outcome, made.error) == came_back


def test_plumbing_is_no_tool_call() -> None:
    made = items(*EXAMPLES["tool search"][0])
    assert made.calls[0].plumbing
    assert not made.has_tool_calls
    assert not made.judged_calls
    assert made.facts == ()
    assert [tool.name for tool in made.catalogue] == ["f"]


def test_a_call_issued_by_a_program_knows_it() -> None:
    inner = {
        "type": "function_call",
        "call_id": "2",
        "name": "f",
        "arguments": "{}",
        "caller": {"type": "program", "caller_id": "1"},
    }
    made = items({"type": "program", "call_id": "1", "code": "f()"}, inner)
    assert [item.parent_call_id for item in made.calls] == [None, "1"]


@pytest.mark.parametrize(
    ("item", "kind", "text"),
    [
        ({"type": "reasoning", "summary": [THOUGHT, THOUGHT]}, "reasoning", "Look\nLook"),
        ({"type": "reasoning", "summary": [], "content": [THOUGHT | {"type": "reasoning_text"}]}, "reasoning", "Look"),
        ({"type": "agent_message", "content": [TEXT, {"type": "encrypted_content"}]}, "reasoning", "a\n[encrypted]"),
        ({"type": "configuration_update"}, "unknown", "[configuration_update]"),
        ({"type": "computer_use_approval_request"}, "unknown", "[computer_use_approval_request]"),
        ({"type": "x_vendor:thing"}, "unknown", "[x_vendor:thing]"),
        ({"type": "additional_tools", "tools": [{"type": "function", "name": "f"}]}, "catalogue", "tools: f"),
        ({"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "f"}]}, "catalogue", "tools of s: f"),
    ],
)
def test_what_is_no_call(item: dict[str, Any], kind: str, text: str) -> None:
    made = items(item)
    assert (made.events[0].kind, made.events[0].text, made.events[0].item_type) == (kind, text, item["type"])
    assert made.calls == ()
    assert not made.context_incomplete


@pytest.mark.parametrize("type_", ["compaction", "compaction_trigger", "item_reference"])
def test_gaps_in_what_the_agent_knew_are_told(type_: str) -> None:
    made = items({"type": type_, "id": "x"})
    assert made.context_incomplete
    assert codes(made) == {"context_incomplete": 1}


def test_items_that_were_cut_and_lists_that_failed_are_noted() -> None:
    made = items(
        {"type": "mcp_list_tools", "server_label": "s", "tools": [], "error": "down"},
        {"type": "web_search_call", "id": "1", "status": "incomplete"},
        {"type": "message", "role": "assistant", "status": "incomplete", "content": []},
    )
    assert codes(made) == {"list_tools_failed": 1, "item_incomplete": 1, "reply_cut": 1}
