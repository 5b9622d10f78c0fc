"""Hidden characters made visible: what a reader does not see must not speak to a model either.

Instructions travel in tag characters, zero-width and bidirectional controls and terminal escapes. Each becomes
``<U+XXXX>``. Only joiners between two non-ASCII characters stay, because Persian, Indic scripts and emoji need them,
and the emoji variation selectors.
"""

import re
import sys

_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    r"\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
_LETTER = rf"[^\x00-\x7f\u200c\u200d{_HIDDEN}]"
_SUSPECT = re.compile(rf"[\u200c\u200d{_HIDDEN}]")
_INVISIBLE = re.compile(rf"([{_HIDDEN}]|(?<!{_LETTER})[\u200c\u200d]|[\u200c\u200d](?!{_LETTER}))\1*")
_SHOWN = re.compile(r"<U\+([0-9A-F]{4,6})(?: x([0-9]{1,4}))?>")


def visible(text: str) -> str:
    r"""Return ``text`` with every hidden character spelt out; a run of one is counted: ``<U+200B x12>``.

    Line breaks are ``\n`` afterwards, tabs stay.
    """
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    # A search for one set of characters is far cheaper than the pattern with its context, and mostly finds nothing.
    return _INVISIBLE.sub(_spelt, text) if _SUSPECT.search(text) else text


def as_recorded(text: str) -> str:
    """Undo ``visible`` on words quoted from its result."""
    return _SHOWN.sub(_meant, text)


def _spelt(match: re.Match[str]) -> str:
    count = len(match[0])
    return f"<U+{ord(match[1]):04X}>" if count == 1 else f"<U+{ord(match[1]):04X} x{count}>"


def _meant(match: re.Match[str]) -> str:
    number = int(match[1], 16)
    return chr(number) * int(match[2] or 1) if number <= sys.maxunicode else match[0]
