"""Every item type that recorded conversations contain, and how each is read: one row a type.

This is data, not an enum. A type that has no row is kept and ignored, with a warning; a new one is a new row. The
rows cover the newest OpenAI SDK with its beta clients, older shapes of the same types, and the wrapper that the
agents SDK writes around hosted calls. ``tests/transcripts/test_items.py`` walks the installed SDK for types without
a row.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.transcripts import arguments as given
from app.transcripts import hosted
from app.transcripts import outputs as came

Role: TypeAlias = Literal["message", "call", "output", "both", "reasoning", "catalogue", "ignored", "gap"]

_USUAL = came.result()
_TEXT = came.result(scalars=False)


@dataclass(frozen=True, slots=True)
class ItemType:
    """How items of one type are read.

    ``role`` is what they are: a ``call``, an ``output`` that answers one, ``both`` in one item, a ``message``,
    ``reasoning`` and other text that is context but never the reply, a ``catalogue`` of discovered tools, ``ignored``,
    or a ``gap``: the agent knew things that are not in the recording.
    """

    role: Role
    kind: str = ""
    """``ToolCall.kind``."""
    family: str = ""
    """Outputs answer calls of their own family only."""
    tool: str | None = None
    """The tool's name, where the type implies it; otherwise it is read from ``named_by``."""
    named_by: str = "name"
    prefix: str = ""
    """What the tool's name begins with."""
    arguments: given.ArgumentReader = given.nothing
    output: came.OutputReader = _USUAL
    answers: tuple[str, ...] = ("call_id",)
    """The keys of an output that may hold the id of its call; the first that is there counts."""
    plumbing: bool = False


def _call(kind: str, family: str, arguments: given.ArgumentReader, tool: str | None = None) -> ItemType:
    return ItemType("call", kind, family, tool, arguments=arguments)


def _output(family: str, output: came.OutputReader = _USUAL) -> ItemType:
    return ItemType("output", family=family, output=output)


def _hosted(tool: str, arguments: given.ArgumentReader, output: came.OutputReader, kind: str = "hosted") -> ItemType:
    return ItemType("both", kind, tool=tool, arguments=arguments, output=output)


_PICTURE_OPTIONS = ("revised_prompt", "action", "size", "quality", "background", "output_format")

ITEM_TYPES: dict[str, ItemType] = {
    "message": ItemType("message"),
    "reasoning": ItemType("reasoning"),
    "agent_message": ItemType("reasoning"),
    # Calls that the agent's own program answers, in an item of its own.
    "function_call": _call("function", "function", given.encoded),
    "function_call_output": _output("function"),
    "custom_tool_call": _call("custom", "custom", given.free_text),
    "custom_tool_call_output": _output("custom", _TEXT),
    "computer_call": _call("computer", "computer", given.fields("actions", "action"), "computer"),
    "computer_call_output": _output("computer", hosted.screenshot),
    "local_shell_call": _call("shell", "local_shell", given.whole("action"), "local_shell"),
    "local_shell_call_output": ItemType("output", family="local_shell", answers=("call_id", "id")),
    "shell_call": _call("shell", "shell", given.whole("action"), "shell"),
    "shell_call_output": _output("shell", hosted.shell),
    "apply_patch_call": _call("patch", "patch", given.whole("operation"), "apply_patch"),
    "apply_patch_call_output": _output("patch", came.patch),
    "program": _call("program", "program", given.fields("code"), "programmatic_tool_calling"),
    "program_output": _output("program", came.program),
    "multi_agent_call": ItemType(
        "call", "multi_agent", "multi_agent", named_by="action", prefix="multi_agent.", arguments=given.encoded
    ),
    "multi_agent_call_output": _output("multi_agent", _TEXT),
    # Calls that the platform answers, in the same item.
    "mcp_call": ItemType("both", "mcp", arguments=given.encoded, output=came.mcp),
    "web_search_call": _hosted("web_search", given.web_action, hosted.sources),
    "file_search_call": _hosted("file_search", given.fields("queries"), hosted.files),
    "code_interpreter_call": _hosted("code_interpreter", given.fields("code"), hosted.logs),
    "image_generation_call": _hosted("image_generation", given.fields(*_PICTURE_OPTIONS), hosted.picture),
    "hosted_tool_call": ItemType("both", "hosted", arguments=given.encoded, output=came.result(null_counts=False)),
    "command_execution": _hosted("command_execution", given.fields("command", "cwd"), came.command, "shell"),
    "computer_use_call": _hosted("computer", given.fields("title"), hosted.screenshot, "computer"),
    # Plumbing: how tools are found and permitted. Never judged.
    "tool_search_call": ItemType(
        "call", "tool_search", "tool_search", "tool_search", arguments=given.encoded, plumbing=True
    ),
    "tool_search_output": _output("tool_search", hosted.tool_names),
    "mcp_approval_request": ItemType("call", "approval", "approval", arguments=given.encoded, plumbing=True),
    "mcp_approval_response": ItemType(
        "output", family="approval", output=came.approval, answers=("approval_request_id",)
    ),
    "mcp_list_tools": ItemType("catalogue"),
    "additional_tools": ItemType("catalogue"),
    "computer_use_approval_request": ItemType("ignored"),
    "configuration_update": ItemType("ignored"),
    "compaction": ItemType("gap"),
    "compaction_trigger": ItemType("gap"),
    "item_reference": ItemType("gap"),
}

for _step, _asked in {
    "create_subagent": ("agent_id", "content", "model", "reasoning_effort"),
    "send_subagent_input": ("recipient_agent_id", "content"),
    "resume_subagent": ("recipient_agent_id",),
    "interrupt_subagent": ("recipient_agent_id",),
    "close_subagent": ("recipient_agent_id",),
    "wait_for_subagents": ("recipient_agent_ids",),
}.items():
    ITEM_TYPES[f"{_step}_call"] = _hosted(
        f"multi_agent.{_step}", given.fields(*_asked), came.result(null_counts=False), "multi_agent"
    )
