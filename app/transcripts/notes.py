"""Nothing is lost silently: what a format ignored, replaced or read in another way becomes a warning with a count.

A conversation may repeat one oddity a million times or contain a million different ones; both end as a short list.
"""

from app.transcripts import pointer
from app.transcripts.model import Warning_

MAX_DISTINCT = 100
"""Distinct warnings for one conversation; what exceeds them is one more, with its count."""

_LONGEST_DETAIL = 80

_MESSAGES = {
    "replaced_characters": "NUL characters and lone surrogates are shown as U+FFFD",
    "repeated_key": "an object repeats the key {!r}; its last value counts",
    "unknown_item_type": "items of type {!r} are kept and ignored",
    "unknown_role": "messages with the role {!r} are kept and ignored",
    "missing_role": "messages without a role are kept and ignored",
    "unknown_content_part": "content parts of type {!r} are kept and ignored",
    "content_ignored": "content that is neither a string nor a list of parts is kept and ignored",
    "content_fallback": "the reply has no output_text part; its text was read from {}",
    "reply_cut": "the recording says that this message is incomplete",
    "item_incomplete": "the recording says that items of type {!r} are incomplete",
    "chat_tool_calls_ignored": "tool calls on chat messages are kept and ignored; the Responses format has them judged",
    "chat_tools_ignored": "tools beside chat messages are kept and ignored; the Responses format has them judged",
    "empty_arguments": "missing or empty arguments count as {{}}",
    "orphan_output": "an output that belongs to no recorded call is kept and ignored",
    "context_incomplete": "{!r}: the agent knew things that are not in this recording",
    "list_tools_failed": "listing the tools of the server {!r} failed",
    "nested_tool": "{!r} is declared in the nesting of Chat Completions; read as a flat function tool",
    "unnamed_tool": "a tool entry of type {!r} names no tool and was left out of the catalogue",
    "repeated_tool": "the tool {!r} is declared more than once; the first declaration counts",
    "tools_ignored": "a list of tools that is not an array of objects was left out of the catalogue",
}


class Notes:
    """Collects the warnings of one conversation."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], str] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._excess = 0

    def add(self, code: str, *place: str | int, detail: str = "", count: int = 1) -> None:
        """Note one more of ``code``.

        Args:
            code: one of the codes of this module.
            place: pointer tokens of the place inside the conversation; the first one noted is shown.
            detail: what distinguishes warnings of one code, such as an item type.
            count: how many.
        """
        key = (code, detail)
        if key in self._counts:
            self._counts[key] += count
        elif len(self._counts) < MAX_DISTINCT:
            self._counts[key] = count
            self._first[key] = pointer.build(place)
        else:
            self._excess += count

    def warnings(self) -> tuple[Warning_, ...]:
        """Return what was noted, in the order in which each first occurred."""
        found = [
            Warning_(self._first[key], key[0], _MESSAGES[key[0]].format(_clip(key[1])), count)
            for key, count in self._counts.items()
        ]
        if self._excess:
            message = "further oddities, beyond the hundred that are listed"
            found.append(Warning_("", "more_warnings", message, self._excess))
        return tuple(found)


def _clip(detail: str) -> str:
    return detail if len(detail) <= _LONGEST_DETAIL else detail[:_LONGEST_DETAIL] + "…"
