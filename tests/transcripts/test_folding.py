import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcripts.folding import words

WRITTEN = st.text(alphabet="abc 7.\n\"'\\-é\u0301\u2013“\u2019\u00a0\u200bﬁ中한ß😀…", max_size=40)


@given(WRITTEN, WRITTEN, WRITTEN)
def test_words_are_found_where_they_stand(before: str, quote: str, after: str) -> None:
    wanted = words(quote)
    if wanted is None:
        assert not any(character.isalnum() for character in quote)
        return
    text = before + quote + after
    low, high = wanted.find(text) or (0, 0)
    assert text[low:high] == quote


@given(
    st.lists(
        st.sampled_from(["parcel", "7", "Köln", "—", "“so”", "naïve", "中文", "a-b", "don\u2019t"]),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_words_that_read_alike_are_found_in_the_texts_own_spelling(spoken: list[str], data: st.DataObject) -> None:
    blanks = st.sampled_from([" ", "  ", "\n", "\t ", "\u00a0", "\u200b ", " \u2009"])
    original = "".join(word + data.draw(blanks) for word in spoken)
    quoted = " ".join(word.translate({0x2014: "-", 0x201C: '"', 0x201D: '"', 0x2019: "'"}) for word in spoken)
    if data.draw(st.booleans()):
        quoted = json.dumps(quoted)[1:-1]
    wanted = words(quoted)
    if wanted is None:
        return
    text = "«Before» " + original + "\nafter"
    span = wanted.find_alike(text)
    assert span is not None
    assert text[slice(*span)] == original.rstrip(" \n\t\u00a0\u200b\u2009")


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ('{"note": "He said \\"hi\\"\\nand left"}', 'He said "hi" and left', 'He said \\"hi\\"\\nand left'),
        ('He said "hi"', 'He said \\"hi\\"', 'He said "hi"'),
        ("caf\\u00e9 7", "café 7", "caf\\u00e9 7"),
        ("\\ud83d\\ude00 ok", "😀 ok", "\\ud83d\\ude00 ok"),
        ("C:\\\\new", "C:\\new", "C:\\\\new"),
        ("cafe\u0301 au lait", "café au lait", "cafe\u0301 au lait"),
        ("ﬁne", "fine", "ﬁne"),
        ("\uff11\uff12 yen", "12 yen", "\uff11\uff12 yen"),
        ("wait…", "wait...", "wait…"),
        ("co\u00adop", "coop", "co\u00adop"),
        ("a\u200b\u200bb c", "ab c", "a\u200b\u200bb c"),
        ("xx  a \n\n b", "a b", "a \n\n b"),
        ("10\u201312", "10-12", "10\u201312"),
        ("각 ok", "각 ok", "각 ok"),
    ],
)
def test_spellings(text: str, quote: str, found: str) -> None:
    wanted = words(quote)
    assert wanted
    span = wanted.find_alike(text)
    assert span is not None
    assert text[slice(*span)] == found


@pytest.mark.parametrize("quote", ["", "  ", "...", "“—”", "\u200b", "\\n"[0]])
def test_a_quote_without_letter_or_digit_says_nothing(quote: str) -> None:
    assert words(quote) is None


@pytest.mark.parametrize("quote", ["parcel 8", "Parcel 7", "parcel 77"])
def test_other_words_are_not_found(quote: str) -> None:
    wanted = words(quote)
    assert wanted
    assert wanted.find("the parcel 7 is") is None
    assert wanted.find_alike("the parcel  7 is\\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "a" * 2_000_000,
        "a\u0301\u0316" * 300_000,
        "\u0316\u0301" * 300_000,
        "ab  " * 300_000,
        "\\\\" * 500_000,
        "中" * 1_000_000,
    ],
)
def test_texts_made_to_be_slow_are_not(text: str) -> None:
    wanted = words("a" * 2000 + "b")
    assert wanted
    began = time.process_time()
    assert wanted.find_alike(text) is None
    assert time.process_time() - began < 6
