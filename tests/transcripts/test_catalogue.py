from typing import Any

import pytest

from app.transcripts.model import Transcript
from tests.transcripts.build import call, codes, items

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def listed(label: str, *tools: Any) -> dict[str, Any]:
    return {"type": "mcp_list_tools", "server_label": label, "tools": list(tools)}


def mcp_call(label: str | None, name: str) -> dict[str, Any]:
    return {"type": "mcp_call", "id": "m", "server_label": label, "name": name, "arguments": "{}"}


def names(transcript: Transcript) -> list[tuple[str, str, str]]:
    return [(tool.name, tool.kind, tool.origin) for tool in transcript.catalogue]


def at(transcript: Transcript, place: str, tool: int) -> Any:
    """Follow a tool's pointer into the recording."""
    found = transcript.catalogue[tool]
    value = transcript.document[found.source][found.event]
    for token in getattr(found, place).split("/")[1:]:
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


@pytest.mark.parametrize(
    ("entry", "tool"),
    [
        ({"type": "function", "name": "f", "parameters": SCHEMA}, ("f", "function", SCHEMA)),
        ({"type": "function", "name": "f"}, ("f", "function", None)),
        ({"type": "function", "name": "f", "parameters": None}, ("f", "function", None)),
        ({"name": "f", "parameters": SCHEMA}, ("f", "function", SCHEMA)),
        ({"name": "f", "input_schema": SCHEMA}, ("f", "function", SCHEMA)),
        ({"type": "vendor_function", "name": "f", "parameters": SCHEMA}, ("f", "function", SCHEMA)),
        ({"type": "function", "function": {"name": "f", "parameters": SCHEMA}}, ("f", "function", SCHEMA)),
        ({"type": "custom", "name": "f", "format": {"type": "text"}}, ("f", "custom", None)),
        (
            {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
            ("crm.f", "function", SCHEMA),
        ),
        ({"type": "namespace", "name": "crm", "tools": [{"type": "custom", "name": "f"}]}, ("crm.f", "custom", None)),
        ({"type": "web_search_2025_08_26"}, ("web_search", "hosted", None)),
        ({"type": "web_search_preview_2025_03_11"}, ("web_search_preview", "hosted", None)),
        ({"type": "openrouter:web_search"}, ("openrouter:web_search", "hosted", None)),
        ({"type": "mcp", "server_label": "s", "authorization": "x"}, ("s", "mcp_server", None)),
        ({"type": "mcp"}, ("mcp", "mcp_server", None)),
    ],
)
def test_entries(entry: dict[str, Any], tool: tuple[str, str, Any]) -> None:
    made = items(tools=[entry])
    (found,) = made.catalogue
    assert (found.name, found.kind, found.parameters) == tool
    assert (found.origin, found.source, found.event, found.available_from) == ("declared", "tools", 0, None)
    assert made.catalogue_declared
    if found.parameters is not None:
        assert at(made, "parameters_pointer", 0) == SCHEMA
        assert at(made, "pointer", 0)["name"] == "f"


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"type": "function"},
        {"type": ""},
        {"type": "custom", "name": 7},
        {"type": 3},
        {"type": "namespace", "name": "x"},
    ],
)
def test_entries_without_a_name_are_left_out_and_noted(entry: dict[str, Any]) -> None:
    made = items(tools=[entry])
    assert made.catalogue == ()
    assert not made.catalogue_declared
    assert codes(made) == {"unnamed_tool": 1}


def test_no_tools_are_no_catalogue() -> None:
    assert not items(tools=[]).catalogue_declared
    assert not items().catalogue_declared


def test_declared_wins_by_name_and_discovered_are_keyed_by_server() -> None:
    made = items(
        listed("one", {"name": "ask", "input_schema": SCHEMA, "description": "One."}, {"name": "say"}),
        listed("two", {"name": "ask"}, {"name": "say"}),
        listed("one", {"name": "ask"}),
        tools=[{"type": "function", "name": "say"}],
    )
    assert names(made) == [("say", "function", "declared"), ("ask", "mcp", "discovered"), ("ask", "mcp", "discovered")]
    one = made.catalogue[1]
    assert (one.server_label, one.event, one.pointer, one.available_from, one.description) == (
        "one",
        0,
        "/tools/0",
        0,
        "One.",
    )
    assert at(made, "parameters_pointer", 1) == SCHEMA


def test_tools_that_turn_up_on_the_way_are_known_from_there() -> None:
    function = {"type": "function", "name": "f", "parameters": SCHEMA}
    made = items(
        {"type": "tool_search_call", "arguments": {}},
        {"type": "tool_search_output", "tools": [function]},
        {"type": "additional_tools", "tools": [{"type": "namespace", "name": "crm", "tools": [function]}]},
        call("f"),
        call("crm.f", "c2"),
    )
    assert [(tool.name, tool.available_from, tool.pointer) for tool in made.catalogue] == [
        ("f", 1, "/tools/0"),
        ("crm.f", 2, "/tools/0/tools/0"),
    ]
    assert [item.schema_checkable for item in made.judged_calls] == [True, True]


@pytest.mark.parametrize("tools", [None, "x", {"a": 1}, ["x", 3]])
def test_lists_of_something_else_are_noted(tools: Any) -> None:
    made = items({"type": "additional_tools", "tools": tools}, {"type": "mcp_list_tools"})
    assert made.catalogue == ()
    assert codes(made)["tools_ignored"] >= 2


def test_the_first_of_two_declarations_counts() -> None:
    made = items(tools=[{"type": "function", "name": "f", "parameters": SCHEMA}, {"type": "function", "name": "f"}])
    assert [tool.event for tool in made.catalogue] == [0]
    assert codes(made) == {"repeated_tool": 1}


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (call("f"), "f"),
        (call("lookup"), "crm.lookup"),
        (call("lookup", namespace="crm"), "crm.lookup"),
        (call("find"), None),
        (call("find", namespace="hr"), "hr.find"),
        (call("lookup", namespace="hr"), None),
        (call("nope"), None),
        (mcp_call("post", "move"), "move"),
        (mcp_call(None, "move"), "move"),
        (mcp_call("bank", "move"), "bank"),
        (mcp_call("elsewhere", "move"), None),
        (mcp_call("post", "f"), "f"),
        ({"type": "web_search_call", "id": "w"}, "web_search_preview"),
        ({"type": "computer_call", "call_id": "1"}, "computer_use_preview"),
        ({"type": "file_search_call", "id": "w"}, None),
        ({"type": "shell_call", "call_id": "1"}, "shell"),
        ({"type": "multi_agent_call", "call_id": "1", "action": "wait_agent"}, None),
    ],
)
def test_each_call_means_a_tool(item: dict[str, Any], found: str | None) -> None:
    declared = [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {
            "type": "namespace",
            "name": "crm",
            "tools": [{"type": "function", "name": "lookup"}, {"type": "function", "name": "find"}],
        },
        {"type": "namespace", "name": "hr", "tools": [{"type": "function", "name": "find"}]},
        {"type": "mcp", "server_label": "bank"},
        {"type": "web_search_preview"},
        {"type": "computer_use_preview"},
        {"type": "function", "name": "file_search"},
        {"type": "shell"},
    ]
    made = items(listed("post", {"name": "move"}), item, tools=declared).calls[0]
    assert (made.tool.name if made.tool else None) == found
