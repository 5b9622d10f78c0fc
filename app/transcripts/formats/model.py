"""What a recorded format has to provide.

To add one: write ``formats/<name>.py`` with one ``Format`` value and add it to the tuple in ``transcripts/parsing.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.transcripts.model import Transcript
from app.transcripts.notes import Notes
from app.transcripts.recording import Recording


@dataclass(frozen=True, slots=True)
class Format:
    """One way to record a conversation."""

    name: str
    """As shown in answers: ``messages``, ``items`` ..."""
    container: Literal["items", "messages"]
    """The top-level key that identifies the format; a conversation has exactly one of them."""
    normalise: Callable[[Recording, Notes], Transcript]
    """Brings an admitted recording into the common shape and notes what it ignored or read in another way.

    It is pure, keeps the order and number of entries, and never raises for anything the door lets in; what is under
    ``container`` is a non-empty list of objects. It raises ``NotAdmittedError`` for what the door would have refused.
    """
