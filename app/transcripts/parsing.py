"""From the bytes of an admitted conversation to the transcript that is judged.

The door (``transcripts/admission``) has refused what is not a conversation and reported why; whoever parses reads
what was let in and stored. So the first thing that is wrong ends it here, and nothing the door lets in ever does.
"""

from dataclasses import replace

from app.transcripts.formats.items import ITEMS
from app.transcripts.formats.messages import MESSAGES
from app.transcripts.formats.model import Format
from app.transcripts.model import Transcript
from app.transcripts.notes import Notes
from app.transcripts.recording import NotAdmittedError, Recording, read
from app.transcripts.text import sanitise

FORMATS: tuple[Format, ...] = (MESSAGES, ITEMS)
"""Every format a conversation can be recorded in. One more is one more value here."""


def parse(raw: bytes) -> Transcript:
    """Normalise one conversation.

    Args:
        raw: the conversation's JSON text as received or stored, UTF-8.

    Returns:
        The transcript, with ``raw`` (NUL and lone surrogate escapes replaced) and the decoded document inside.

    Raises:
        NotAdmittedError: ``raw`` is not a conversation that the door would have let in.
    """
    notes = Notes()
    try:
        text, replaced = sanitise(raw)
    except UnicodeDecodeError as error:
        raise NotAdmittedError(f"not UTF-8 at byte {error.start}") from error
    recording = read(text)
    if replaced:
        notes.add("replaced_characters", count=replaced)
    for key in recording.repeated_keys:
        notes.add("repeated_key", detail=key)
    transcript = _format(recording).normalise(recording, notes)
    return replace(transcript, warnings=notes.warnings())


def _format(recording: Recording) -> Format:
    present = [format_ for format_ in FORMATS if format_.container in recording.document]
    if len(present) != 1:
        keys = " or ".join(format_.container for format_ in FORMATS)
        raise NotAdmittedError(f"a conversation has exactly one of {keys}")
    entries = recording.document[present[0].container]
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise NotAdmittedError(f"{present[0].container}: not a non-empty array of objects")
    return present[0]
