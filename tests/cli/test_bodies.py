"""Files of every shape become request bodies, and recorded JSON is never written anew."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.bodies import submissions
from app.cli.failure import CommandError

CHAT = b'{ "messages": [{"role": "user","content":"caf\\u00e9"}, {"content": "Yes", "role":"assistant"}], "n": 1.0e2 }'
OTHER = b'{"items":[{"type":"message","role":"assistant","content":"x"}]}'


def raw_conversations(body: bytes) -> list[bytes]:
    decoded = msgspec.json.decode(body, type=dict[str, list[msgspec.Raw]])
    assert list(decoded) == ["conversations"]
    return [bytes(each) for each in decoded["conversations"]]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("one.json", CHAT, [CHAT]),
        ("one", b"\xef\xbb\xbf\n" + CHAT + b"\n", [CHAT]),
        ("list.json", b"[" + CHAT + b" ,\n" + OTHER + b"]\n", [CHAT, OTHER]),
        ("lines.jsonl", CHAT + b"\r\n\n" + OTHER, [CHAT, OTHER]),
        ("lines.ndjson", OTHER + b"\n", [OTHER]),
        ("-", CHAT + b"\n" + OTHER + b"\n", [CHAT, OTHER]),
        ("wrong-suffix.json", CHAT + b"\n" + OTHER + b"\n", [CHAT, OTHER]),
    ],
)
def test_conversations_are_sent_as_they_stand(name: str, data: bytes, expected: list[bytes]) -> None:
    (submission,) = submissions([(name, data)])
    assert raw_conversations(submission.body) == expected
    assert len(submission.places) == len(expected)


def test_a_whole_request_goes_byte_for_byte() -> None:
    data = b'\xef\xbb\xbf{ "name" : "x", "conversations":[' + CHAT + b"] }\n\n"
    (submission,) = submissions([("request.json", data)])
    assert submission.body == data


def test_several_files_are_one_request_and_whole_requests_their_own() -> None:
    whole = b'{"conversations": []}'
    first, rest = submissions(
        [("a.json", CHAT), ("whole.json", whole), ("b.jsonl", OTHER + b"\n" + CHAT), ("c.json", b"[" + OTHER + b"]")]
    )
    assert first.body == whole
    assert raw_conversations(rest.body) == [CHAT, OTHER, CHAT, OTHER]
    assert rest.places == ("a.json", "b.jsonl:1", "b.jsonl:2", "c.json [0]")


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), min_size=1))
def test_any_recorded_line_survives(conversations: list[dict[str, object]]) -> None:
    lines = [
        json.dumps({"messages": [], **each}, ensure_ascii=False).encode("utf-8", "replace") for each in conversations
    ]
    lines = [line for line in lines if b"conversations" not in line]
    if lines:
        (submission,) = submissions([("x.jsonl", b"\n".join(lines))])
        assert raw_conversations(submission.body) == lines


def test_what_the_fast_parser_refuses_is_sent_all_the_same() -> None:
    strange = b'{"messages": [{"role": "assistant", "content": "\\ud800 " }], "n": NaN}'
    (submission,) = submissions([("a.json", b"[ " + strange + b" ]"), ("b.json", strange)])
    assert submission.body == b'{"conversations":[' + strange + b"," + strange + b"]}"
    assert submission.places == ("a.json [0]", "b.json")


def test_yaml_becomes_json() -> None:
    text = b"""
messages:
  - {role: user, content: 2026-01-31}
  - role: assistant
    content: |
      two
      lines
"""
    (submission,) = submissions([("talk.yaml", text)])
    assert json.loads(submission.body)["conversations"] == [
        {"messages": [{"role": "user", "content": "2026-01-31"}, {"role": "assistant", "content": "two\nlines\n"}]}
    ]


def test_yaml_documents_are_conversations() -> None:
    (submission,) = submissions([("-", b"--- \nmessages: []\n---\nitems: []\n")])
    assert json.loads(submission.body)["conversations"] == [{"messages": []}, {"items": []}]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.json", b'{"messages": [}', "a.json: is not JSON: Expecting value at line 1, column 15"),
        ("a.jsonl", b'{"items": []}\n{"items": [\n', "a.jsonl, line 2: is not JSON"),
        ("a.yaml", b"a: [1\nb: 2", "a.yaml: is not YAML"),
        ("a.yaml", b"!!python/object:os.system x", "a.yaml: is not YAML"),
        ("a.yaml", b"a: &x [*x]", "a.yaml: cannot be read as YAML"),
        ("a.yaml", b"a: .nan", "a.yaml: cannot be read as YAML"),
        ("a.json", b"7", "a.json: holds neither"),
        ("empty.jsonl", b"\n\n", "There is no conversation"),
        ("empty.json", b"[]", "There is no conversation"),
        ("a\x1b[2J.json", b'"x"', r"a\x1b[2J.json: holds neither"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(name: str, data: bytes, told: str) -> None:
    with pytest.raises(CommandError) as caught:
        submissions([(name, data)])
    assert str(caught.value).startswith(told)


def test_a_small_yaml_cannot_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.bodies.LARGEST_YAML_BYTES", 100_000)
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    with pytest.raises(CommandError, match="too large"):
        submissions([("bomb.yaml", bomb.encode())])


def test_the_examples_that_come_with_the_program_are_one_request() -> None:
    folder = Path(__file__).parents[2] / "app" / "demo" / "data"
    files = [(path.name, path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    (submission,) = submissions(files)
    assert raw_conversations(submission.body) == [data.strip() for _, data in files]


@given(st.lists(st.lists(st.sampled_from([b" ", b"\n", "é".encode(), b"x"]), max_size=6), min_size=1, max_size=4))
def test_a_place_in_the_body_is_found_again_in_its_file(texts: list[list[bytes]]) -> None:
    # What stands at a place of the body stands at the place that is told, in the file that is told.
    lists = [b' \n [\n {"a": "' + b"".join(text).replace(b"\n", b'",\n"b": "') + b'@"}]' for text in texts]
    (one,) = submissions([(f"{index}.json", data) for index, data in enumerate(lists)])
    lines = one.body.decode().split("\n")
    marks = [(row, at) for row, line in enumerate(lines, 1) for at, sign in enumerate(line, 1) if sign == "@"]
    assert len(marks) == len(lists)
    for index, mark in enumerate(marks):
        name, line, column = one.locate(*mark).split(", ")
        assert name == f"{index}.json"
        row = lists[index].decode().split("\n")[int(line.removeprefix("line ")) - 1]
        assert row[int(column.removeprefix("column ")) - 1] == "@"


def test_what_was_yaml_has_no_lines_of_its_own() -> None:
    (one,) = submissions([("a.yaml", b"messages: [{role: user, content: x}]")])
    assert one.locate(1, 30) == "a.yaml"
