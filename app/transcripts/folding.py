r"""A model that quotes a transcript changes what it does not see: blanks, quotation marks, dashes, escapes.

Words are therefore looked up exactly first, and then as readers compare them: white space folded, NFKC, one kind of
quotation mark and dash, invisible characters left out, ``\"`` and ``\n`` read once more as JSON would. The answer is
always a place in the original text, so that what is quoted in the end are the recording's own words.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Span = tuple[int, int]

_UNSEEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
# Characters that stand alone between ASCII ones and single blanks are the only ones that cost a step: blanks, and runs
# outside ASCII with the character before them, which a combining mark may belong to.
_BLANK = rf"[\s{_UNSEEN}]{{2,}}+|[^\S ]|[{_UNSEEN}]"
_FOREIGN = rf"[^\x00-\x7f\s{_UNSEEN}]"
_SPECIAL = re.compile(rf"(?P<blank>{_BLANK})|[\x21-\x7e]?(?:{_FOREIGN}++(?:[ ](?={_FOREIGN}))?)++")
_ASCII_RUN = re.compile(r"[0-9A-Za-z]+")
_HAS_SPACE = re.compile(r"\s")
_ALIKE = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\u2039\u203a"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-"),
}
_ESCAPE = re.compile(r'\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|["\\/bfnrt])')
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Sorting combining marks takes the square of their number; a run is normalised in pieces of this length.
_PIECE = 256
_JAMO_TAIL = ("\u1160", "\u11ff")


@dataclass(frozen=True, slots=True)
class Words:
    """Words to look for, as given and as readers compare them."""

    exact: str
    folded: tuple[str, ...]

    def find(self, text: str) -> Span | None:
        """Return where ``text`` holds the words exactly."""
        low = text.find(self.exact)
        return None if low < 0 else (low, low + len(self.exact))

    def find_alike(self, text: str) -> Span | None:
        """Return where ``text`` holds words that read the same. Linear in its length."""
        # Folding changes no ASCII letter or digit, so that a text without the words' longest run of them needs none.
        plain = text.isascii() and r"\u" not in text
        possible = [wanted for wanted in self.folded if not plain or _longest_run(wanted) in text]
        for folding in _foldings(text) if possible else ():
            for wanted in possible:
                low = folding.text.find(wanted)
                if low >= 0:
                    return folding.origin(low, low + len(wanted))
        return None


def words(quote: str) -> Words | None:
    """Prepare a quote, or return None for one without a letter or digit, which stands everywhere and says nothing."""
    if not any(character.isalnum() for character in quote):
        return None
    folded = (folding.text.strip() for folding in _foldings(quote))
    return Words(quote, tuple(dict.fromkeys(text for text in folded if text)))


class Folding:
    """A text derived from another, piece by piece, that knows where each piece came from.

    A piece as long as its origin is taken to correspond character by character; any other corresponds as a whole.
    """

    def __init__(self, pieces: Iterator[tuple[str, int, int]], within: "Folding | None" = None) -> None:
        self._within = within
        self._starts: list[int] = []
        self._origins: list[Span] = []
        texts, length = [], 0
        for text, low, high in pieces:
            if text:
                self._starts.append(length)
                self._origins.append((low, high))
                texts.append(text)
                length += len(text)
        self.text = "".join(texts)

    def origin(self, low: int, high: int) -> Span:
        """Return where the non-empty ``self.text[low:high]`` came from, in the text that all began with."""
        span = self._origin(low)[0], self._origin(high - 1)[1]
        return span if self._within is None else self._within.origin(*span)

    def _origin(self, at: int) -> Span:
        number = bisect_right(self._starts, at) - 1
        start, (low, high) = self._starts[number], self._origins[number]
        following = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.text)
        return (low + at - start, low + at - start + 1) if following - start == high - low else (low, high)


def _longest_run(wanted: str) -> str:
    return max(_ASCII_RUN.findall(wanted), key=len, default="")


def _foldings(text: str) -> Iterator[Folding]:
    yield Folding(_folded(text))
    if "\\" in text:
        unescaped = Folding(_pieces(text, _ESCAPE, _unescaped))
        yield Folding(_folded(unescaped.text), within=unescaped)


def _folded(text: str) -> Iterator[tuple[str, int, int]]:
    return _pieces(text, _SPECIAL, _compared)


def _pieces(
    text: str, special: re.Pattern[str], change: Callable[[re.Match[str]], Iterator[tuple[str, int, int]]]
) -> Iterator[tuple[str, int, int]]:
    at = 0
    for match in special.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], at, match.start()
        yield from change(match)
        at = match.end()
    if at < len(text):
        yield text[at:], at, len(text)


def _compared(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    run, low = match[0], match.start()
    if match["blank"] is not None:
        yield (" " if _HAS_SPACE.search(run) else ""), low, match.end()
        return
    begin = 0
    while begin < len(run):
        end = _boundary(run, begin)
        yield from _normalised(run[begin:end], low + begin)
        begin = end


def _boundary(run: str, begin: int) -> int:
    """Return where a piece of a run may end: if possible before a character that does not join the one before it."""
    end = min(begin + _PIECE, len(run))
    for cut in range(end, begin, -1):
        if cut == len(run) or not _joins(run[cut]):
            return cut
    return end


def _normalised(run: str, low: int) -> Iterator[tuple[str, int, int]]:
    alike = run.translate(_ALIKE)
    if unicodedata.is_normalized("NFKC", alike):
        yield alike, low, low + len(run)
        return
    begin = 0
    for end in range(1, len(run) + 1):
        if end == len(run) or not _joins(run[end]):
            yield unicodedata.normalize("NFKC", alike[begin:end]), low + begin, low + end
            begin = end


def _joins(character: str) -> bool:
    return unicodedata.combining(character) != 0 or _JAMO_TAIL[0] <= character <= _JAMO_TAIL[1]


def _unescaped(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    escape = match[0][1:]
    if escape[0] == "u":
        code = bytes.fromhex(escape.replace("\\u", "")[1:]).decode("utf-16-be", "replace")
        meant = code.replace("\0", "\ufffd")
    else:
        meant = _SHORT_ESCAPES.get(escape, escape)
    yield meant, match.start(), match.end()
