"""Chat Completions: plain back-and-forth text. What tools did is invisible in it, so nothing about tools is judged."""

from app.transcripts.content import without_images
from app.transcripts.formats.model import Format
from app.transcripts.model import Event, EventKind, Json, Segment, Transcript
from app.transcripts.notes import Notes
from app.transcripts.recording import NotAdmittedError, Recording
from app.transcripts.turns import TurnCounter, build_turns


def _normalise(recording: Recording, notes: Notes) -> Transcript:
    turns = TurnCounter()
    events = tuple(_event(index, message, turns, notes) for index, message in enumerate(recording.document["messages"]))
    if not any(event.kind == "assistant" for event in events):
        raise NotAdmittedError("messages: no assistant turn")
    if recording.document.get("tools"):
        notes.add("chat_tools_ignored", "tools")
    return Transcript(
        format="messages",
        source="messages",
        events=events,
        turns=build_turns(events, ()),
        calls=(),
        catalogue=(),
        raw=recording.raw,
        document=recording.document,
        starts=recording.starts,
    )


def _event(index: int, message: dict[str, Json], turns: TurnCounter, notes: Notes) -> Event:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise NotAdmittedError(f"messages[{index}]: the role is neither user nor assistant")
    if not isinstance(content, str) or not content:
        raise NotAdmittedError(f"messages[{index}]: the content is not a non-empty string")
    if message.get("tool_calls") or message.get("function_call"):
        notes.add("chat_tool_calls_ignored", "messages", index)
    kind: EventKind = "user" if role == "user" else "assistant"
    return Event(index, kind, turns.next(kind), without_images(content), (Segment("/content", content),))


MESSAGES = Format("messages", "messages", _normalise)
