"""A body is read as the rules say, whatever it is, and every refusal names its place."""

import hashlib
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.evaluation.reading import MOST_VIOLATIONS, Reading, Refusal, read
from app.evaluation.request_values import MOST_COUNTED
from app.transcripts.admission.codes import VIOLATIONS
from app.transcripts.parsing import parse
from tests import shared
from tests.evaluation.bodies import CHAT, ITEMS, REPLY, RULES, Pairs, body, position, reference, resolves, written
from tests.evaluation.strategies import conversation, message, requests


def accepted(raw: bytes) -> Reading:
    reading = read(raw, RULES)
    assert isinstance(reading, Reading), reading
    return reading


def refused(raw: bytes) -> Refusal:
    reading = read(raw, RULES)
    assert isinstance(reading, Refusal)
    assert {each.code for each in reading.violations} <= set(VIOLATIONS)
    assert all(len(each.message) <= 300 and each.message.isprintable() for each in reading.violations)
    return reading


def found(raw: bytes) -> list[tuple[tuple[str | int, ...], str]]:
    return [(each.loc, each.code) for each in refused(raw).violations]


@settings(max_examples=400, deadline=None)
@given(requests, st.sampled_from(["", " ", "\n\t "]), st.booleans())
def test_a_plain_reading_of_the_rules_agrees(request: Any, gap: str, as_ascii: bool) -> None:
    text = written(request, gap, ascii_only=as_ascii or "\\ud800" in written(request))
    raw = text.encode()
    expected = sorted(map(repr, reference(text)))
    reading = read(raw, RULES)
    if isinstance(reading, Refusal):
        assert sorted(repr((each.loc, each.code)) for each in reading.violations) == expected
        assert reading.count == len(reading.violations)
    else:
        assert not expected
        assert [parse(each).format for each in reading.received] == [each.format for each in reading.conversations]


@settings(max_examples=200, deadline=None)
@given(st.lists(conversation, min_size=1, max_size=4), st.sampled_from(["", " ", "\r\n"]))
def test_slices_are_the_bytes_that_were_sent(conversations: list[Any], gap: str) -> None:
    slices = [written(each, gap).strip().encode() for each in conversations]
    raw = b'{"conversations":' + gap.encode() + b"[" + f"{gap},{gap}".encode().join(slices) + b"] }"
    reading = read(raw, RULES)
    if isinstance(reading, Reading):
        assert list(reading.received) == slices
        kept = [each.redacted or sent for each, sent in zip(reading.conversations, slices, strict=True)]
        assert [hashlib.sha256(each).digest() for each in kept] == [hashlib.sha256(each).digest() for each in slices]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(message, max_size=3), min_size=1, max_size=4), st.booleans())
def test_violations_come_in_document_order_and_name_places_that_exist(lists: list[Any], name_first: bool) -> None:
    members: list[tuple[str, Any]] = [("conversations", [{"messages": each, "tools": 1} for each in lists])]
    members.insert(0 if name_first else 1, ("name", 5))
    raw = written(Pairs(members)).encode()
    document = json.loads(raw)
    places = [each.loc for each in refused(raw).violations]
    assert all(resolves(document, place) for place in places)
    assert places == sorted(places, key=lambda place: position(document, place))


def is_json(raw: bytes) -> bool:
    def refuse(_: str) -> None:
        raise ValueError

    try:
        json.loads(raw.removeprefix(b"\xef\xbb\xbf").decode(), parse_constant=refuse)
    except ValueError:
        return False
    return True


UNREADABLE = {"json_invalid", "encoding_invalid", "number_not_finite"}
VALID = body(CHAT, ITEMS | {"id": "c1", "v": [1, -2.5e3, True, None, "\ud83d\ude42 \ud800 \x00"]}, name="n")


@settings(max_examples=700, deadline=None)
@given(st.data())
def test_a_damaged_body_is_refused_exactly_when_it_is_no_longer_json(data: st.DataObject) -> None:
    raw = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        until = at + data.draw(st.integers(0, 3))
        raw[at:until] = data.draw(
            st.sampled_from([b"", b'"', b"\\", b"{", b"]", b",", b":", b"\xff", b"\xc3", b"\x00"])
        )
    reading = read(bytes(raw), RULES)
    unreadable = isinstance(reading, Refusal) and reading.violations[0].code in UNREADABLE
    if unreadable:
        assert isinstance(reading, Refusal)
        assert reading.line
        assert reading.column
    if raw[:1] != b"{":
        assert isinstance(reading, Refusal)
    else:
        assert unreadable == (not is_json(bytes(raw)))


TOKENS = [b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"', b"1", b"-", b"0", b".5", b"e9", b"NaN", b"true", b"null"]
TOKENS += [b" ", b"\\", b"\\ud800", b"\\ude00", b"\\u0000", b"\\u", b"\xc3\xa9", b"\xed\xa0\x80", b"\t", b"\x0b", b"/"]


@settings(max_examples=700, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(b"".join))
def test_what_counts_as_json_is_what_the_standard_library_accepts(inner: bytes) -> None:
    raw = b'{"conversations":' + inner + b"}"
    reading = read(raw, RULES)
    unreadable = isinstance(reading, Refusal) and reading.violations[0].code in UNREADABLE
    assert unreadable == (not is_json(raw))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(raw: bytes) -> None:
    assert isinstance(read(raw, RULES), Refusal | Reading)


def chat(**more: Any) -> dict[str, Any]:
    return CHAT | more


def raw_chat(member: bytes) -> bytes:
    return b'{"conversations":[{"messages":[{"role":"assistant","content":"x"}],"v":' + member + b"}]}"


EXAMPLES: dict[str, tuple[bytes, tuple[str | int, ...]]] = {
    "json_invalid": (b'{"conversations": [1,]}', ()),
    "encoding_invalid": (raw_chat(b'"\xff"'), ()),
    "nesting_too_deep": (raw_chat(b"[" * 199 + b"]" * 199), ("conversations", 0)),
    "number_too_long": (raw_chat(b"9" * 4301), ("conversations", 0)),
    "number_not_finite": (raw_chat(b"-Infinity"), ()),
    "missing": (b"{}", ()),
    "wrong_type": (body(chat(), name=5), ("name",)),
    "empty": (body(), ("conversations",)),
    "unknown_key": (body(chat(), judge=["alpha"]), ("judge",)),
    "value_not_allowed": (body(chat(), options={"votes": 2}), ("options", "votes")),
    "out_of_range": (body(chat(), options={"max_tokens": 0}), ("options", "max_tokens")),
    "too_long": (body(chat(), name="n" * 257), ("name",)),
    "too_many": (body(chat(), metadata={str(each): "" for each in range(17)}), ("metadata",)),
    "duplicate": (body(chat(), judges=["beta", "beta"]), ("judges", 1)),
    "no_container": (body({"message": []}), ("conversations", 0)),
    "both_containers": (body(CHAT | ITEMS), ("conversations", 0)),
    "role_not_allowed": (
        body({"messages": [{"role": "system", "content": "x"}, REPLY]}),
        ("conversations", 0, "messages", 0, "role"),
    ),
    "no_assistant_turn": (
        body({"messages": [{"role": "user", "content": "x"}]}),
        ("conversations", 0, "messages"),
    ),
    "expectations_unsupported": (body(chat(expectations=[])), ("conversations", 0, "expectations")),
    "unknown_judge": (body(chat(), judges=["alfa"]), ("judges", 0)),
    "model_not_allowed": (body(chat(), options={"model": "m-huge"}), ("options", "model")),
    "url_not_allowed": (body(chat(), webhook={"url": "http://example.com/hook"}), ("webhook", "url")),
    "secret_invalid": (
        body(chat(), webhook={"url": "https://example.com/hook", "secret": "whsec_c2hvcnQ="}),
        ("webhook", "secret"),
    ),
}


@pytest.mark.parametrize("code", sorted({*EXAMPLES, *VIOLATIONS}))
def test_every_code_has_an_example(code: str) -> None:
    raw, loc = EXAMPLES[code]
    assert found(raw) == [(loc, code)]


@pytest.mark.parametrize(
    ("raw", "line", "column"),
    [
        (b"", 1, 1),
        (b'{"a": 1', 1, 8),
        (b'{\n "a": [1 2]}', 2, 10),
        ('{"è🙂": +1}'.encode(), 1, 8),
        (b'{"a": NaN}', 1, 7),
        (b'{"a":\n\n"\xff"}', 3, 2),
        ('{"è": "'.encode() + b'\xc3"}', 1, 8),
        (b'{"a": ' + b"[" * 200, 1, 206),
        (b'{"a": ' + b"[" * 5000, 1, 206),
        (b'{"a":\n' + b"[" * 100_000 + b"1 2", 2, 200),
        ('{"conversations": []}'.encode("utf-16"), 1, 1),
        ('{"conversations": []}'.encode("utf-32-be"), 1, 1),
    ],
)
def test_an_unreadable_body_is_refused_at_its_line_and_column(raw: bytes, line: int, column: int) -> None:
    refusal = refused(raw)
    assert (refusal.line, refusal.column) == (line, column)
    assert [each.loc for each in refusal.violations] == [()]


@pytest.mark.parametrize(("depth", "code"), [(200, "json_invalid"), (201, "nesting_too_deep")])
@pytest.mark.parametrize("end", [b"", b"1 2", b'"[', b"}" * 150])
def test_nesting_too_deep_is_told_before_what_is_wrong_further_on(depth: int, code: str, end: bytes) -> None:
    assert found(b'{"a":' + b"[" * (depth - 1) + end) == [((), code)]


def test_a_fault_behind_a_window_border_is_found_where_it_is() -> None:
    padding = "è".encode() * (1 << 19)  # the second window begins in the middle of the fault's character
    assert refused(b'{"a":"x' + padding + b'\xc3"}').column == len('{"a":"x') + (1 << 19) + 1
    assert found(b'{"conversations": [], "x": "' + padding + b'"}') == [
        (("conversations",), "empty"),
        (("x",), "unknown_key"),
    ]


@pytest.mark.parametrize("depth", [196, 197, 198])
@pytest.mark.parametrize("opening", [b"[", b'{"\\"]":'])
def test_nesting_is_counted_from_the_body_outside_strings(depth: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    nested = opening * depth + b'"[[[[\\"{{{{"' + closing * depth
    reading = read(raw_chat(nested), RULES)
    assert isinstance(reading, Refusal) == (depth + 3 > 200)
    member = b'{"target":' + nested + b',"conversations":[' + json.dumps(CHAT).encode() + b"]}"
    codes = [each.code for each in refused(member).violations]
    assert ("nesting_too_deep" in codes) == (depth + 1 > 200)


@pytest.mark.parametrize("number", [b"1e400", b"-1E+400", b"9" * 4300, b"0." + b"1" * 9000, b'"' + b"9" * 9000 + b'"'])
def test_numbers_that_json_allows_come_in(number: bytes) -> None:
    accepted(raw_chat(number))


def test_one_byte_order_mark_is_allowed_and_no_second() -> None:
    accepted(b"\xef\xbb\xbf" + body(CHAT))
    assert found(b"\xef\xbb\xbf" * 2 + body(CHAT)) == [((), "json_invalid")]


def test_the_last_of_repeated_keys_counts_and_is_told() -> None:
    raw = b'{"conversations": [5], "name": 12, "name": "1", "conversations": [' + json.dumps(CHAT).encode() + b"]}"
    reading = accepted(raw)
    assert reading.request.name == "1"
    assert [(each.warning.pointer, each.warning.code) for each in reading.warnings] == [
        ("/name", "repeated_key"),
        ("/conversations", "repeated_key"),
    ]


def test_replaced_characters_are_counted_where_they_are_and_change_no_byte() -> None:
    odd = b'{"messages":[{"role":"assistant","content":"a\\ud800\\u0000 \\\\ud800 \\ud83d\\ude42"}]}'
    plain = json.dumps(CHAT).encode()
    raw = b'{"name":"\\udfff!","conversations":[ ' + plain + b" ,\n" + odd + b"]}"
    reading = accepted(raw)
    assert list(reading.received) == [plain, odd]
    assert reading.request.name == "\ufffd!"
    told = [(each.conversation, each.warning.code, each.warning.count) for each in reading.warnings]
    assert told == [(None, "replaced_characters", 1), (1, "replaced_characters", 2)]


def test_a_conversation_between_equal_ones_is_cut_where_it_stands() -> None:
    """The array's text after replacing is also the text of an earlier member of the same name."""
    one = b'[{"messages":[{"role":"assistant","content":"\\ufffd"}]}]'
    two = b'[{"messages":[{"role":"assistant","content":"\\udabc"}]}]'
    for first, last in ((one, two), (two, one)):
        reading = accepted(b'{"conversations":' + first + b',"conversations":' + last + b"}")
        assert list(reading.received) == [last[1:-1]]


def test_as_many_problems_are_told_and_counted_as_help() -> None:
    few = refused(body(*[{}] * 300))
    assert len(few.violations) == MOST_VIOLATIONS
    assert few.count == 300
    many = refused(body(*[{}] * (MOST_COUNTED + 1)))
    assert len(many.violations) == MOST_VIOLATIONS
    assert many.count is None
    assert refused(b'{"conversations":[' + b"1," * 5_000_000 + b"1]}").count is None
    members = refused(body(CHAT, target={"documents": [1] * (MOST_COUNTED + 1)}))
    assert members.count is None
    assert members.violations[0].loc == ("target", "documents", 0)


def test_warnings_of_many_conversations_end_in_a_number() -> None:
    reading = accepted(body(*[CHAT | {"id": 7}] * 250))
    assert len(reading.warnings) == 100
    assert reading.warnings[98].conversation == 98
    assert (reading.warnings[99].conversation, reading.warnings[99].warning.count) == (None, 151)
    assert all(each.warnings for each in reading.conversations)


SECRET = "whsec_" + "A" * 32


def test_a_whole_request_is_read() -> None:
    reading = accepted(
        body(
            CHAT,
            name="Nightly",
            metadata={"run": "7"},
            target={
                "description": "Finds parcels.",
                "principles": [{"name": "Honest", "description": "No guesses.", "importance": 5, "tags": ["t"]}],
                "documents": [{"title": "Rates", "content": "Turin: 5", "url": "https://example.com/rates"}],
            },
            judges=["gamma", "alpha"],
            options={"model": "m-small", "votes": 3, "scope": "last_turn", "max_tokens": 9, "max_cost_usd": 0.5},
            webhook={"url": "https://example.com:8443/hook?x=1", "secret": SECRET},
        )
    )
    request = reading.request
    assert (request.name, request.metadata, request.judges) == ("Nightly", {"run": "7"}, ("alpha", "gamma"))
    assert request.target is not None
    assert request.target.principles[0].tags == ("t",)
    assert request.target.documents[0].url == "https://example.com/rates"
    assert request.options.votes == 3
    assert request.options.max_cost_usd == 0.5
    assert request.webhook is not None
    assert request.webhook.secret == SECRET
    assert SECRET not in repr(request)


def test_null_is_leaving_it_out_and_the_default_set_judges() -> None:
    nothing = dict.fromkeys(["name", "metadata", "target", "judges", "options", "webhook"])
    assert accepted(body(CHAT, **nothing)).request == accepted(body(CHAT)).request
    assert accepted(body(CHAT)).request.judges == ("alpha", "beta")
    assert accepted(body(CHAT, options={"model": None, "votes": None})).request.options.votes == 1


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"target": {"principles": [{"name": "x"}], "goal": ""}}, ["missing", "unknown_key"]),
        ({"target": {"documents": [{"title": "", "content": 1}]}}, ["empty", "wrong_type"]),
        ({"target": {"principles": [{"name": "x", "description": "y", "importance": 6, "tags": [1]}]}}, None),
        ({"target": {"description": "d" * (1 << 20)}}, ["too_long"]),
        ({"metadata": {"k" * 65: "v", "k": "v" * 513, "n": 1}}, ["too_long", "too_long", "wrong_type"]),
        ({"metadata": ["x"]}, ["wrong_type"]),
        ({"judges": []}, ["empty"]),
        ({"judges": "alpha"}, ["wrong_type"]),
        ({"options": {"max_tokens": True, "max_cost_usd": "1"}}, ["wrong_type", "wrong_type"]),
        ({"options": {"votes": True, "scope": "turns"}}, ["value_not_allowed", "value_not_allowed"]),
        ({"options": {"max_cost_usd": -1, "max_tokens": 10**16}}, ["out_of_range", "out_of_range"]),
        ({"options": []}, ["wrong_type"]),
        ({"webhook": {}}, ["missing"]),
        ({"webhook": {"url": ""}}, ["empty"]),
        ({"webhook": {"url": "https://example.com", "secret": "x", "retry": 1}}, ["secret_invalid", "unknown_key"]),
        ({"webhook": {"url": "https://example.com", "secret": "whsec_" + "A" * 90}}, ["secret_invalid"]),
    ],
)
def test_request_members_are_held_to_their_rules(members: dict[str, Any], expected: list[str] | None) -> None:
    codes = [code for _, code in found(body(CHAT, **members))]
    assert codes == (expected or ["out_of_range", "wrong_type"])


@pytest.mark.parametrize(
    "url",
    [
        "example.com/hook",
        "ftp://example.com",
        "https://",
        "https:///hook",
        "https://user:pw@example.com",
        "https://example.com/#part",
        "https://example.com#",
        "https://exa mple.com",
        "https://example.com/\u0007",
        "https://example.com:99999",
        "https://[::1",
        "https://example.com\\@evil.example",
        "javascript:alert(1)",
    ],
)
def test_webhooks_go_to_plain_https_urls_only(url: str) -> None:
    assert found(body(CHAT, webhook={"url": url})) == [(("webhook", "url"), "url_not_allowed")]


def test_http_webhooks_are_for_installations_that_allow_them() -> None:
    class Open:
        judges = RULES.judges
        models = RULES.models
        webhook_http_hosts = True

    reading = read(body(CHAT, webhook={"url": "http://10.0.0.7/hook"}), Open())
    assert isinstance(reading, Reading)


def test_likely_intentions_are_named_and_foreign_text_is_tamed() -> None:
    messages = [
        each.message for each in refused(body({"items": []}, judge=1, messages=[], **{"\x1b[2J" * 99: 1})).violations
    ]
    assert 'did you mean "judges"?' in messages[1]
    assert 'belongs inside an entry of "conversations"' in messages[2]
    assert "\\u001b[2J" in messages[3]
    assert len(messages[3]) < 200
    assert '{"conversations": [...]}' in refused(b"[]").violations[0].message


def test_a_crowd_of_unknown_keys_costs_no_more_than_their_first_ones() -> None:
    crowd = b"{" + b",".join(b'"k%d":[[{}]]' % each for each in range(200_000)) + b',"conversations":[]}'
    assert refused(crowd).count is None


SETS = [
    "tau-bench/gpt-4o-airline",
    "tooltalk/gold",
    "inspect-logs/items",
    "inspect-logs/messages",
    "langchain-openai-cassettes/recorded-items",
    "langchain-openai-cassettes/recorded-messages",
    "pydantic-ai-cassettes/recorded-items",
    "pydantic-ai-cassettes/recorded-messages",
    "begin/wow",
    "halueval/general",
    "shapes/shapes",
]


def lines_of(name: str) -> list[bytes]:
    return shared.shared_path(f"corpus/{name}.jsonl").read_bytes().splitlines()


@pytest.mark.shared
@pytest.mark.parametrize("name", SETS)
def test_recorded_conversations_come_in_as_they_are(name: str) -> None:
    lines = lines_of(name)
    reading = accepted(b'{"conversations": [' + b",\n".join(lines) + b"]}")
    assert list(reading.received) == [line.strip() for line in lines]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["langchain-openai-cassettes", "pydantic-ai-cassettes"])
def test_raw_exports_are_refused_with_cause_and_index(name: str) -> None:
    lines = lines_of(f"{name}/raw-exports-rejected")
    labels = shared.lines(f"corpus/{name}/raw-exports-rejected.labels.jsonl")
    for line, label in zip(lines, labels, strict=True):
        refusal = refused(b'{"conversations":[' + line + b"]}")
        expected = {re.sub(r"\]\.type missing/empty", "]", each) for each in label["label"]["violations"]}
        told = {
            f"items[{each.loc[3]}]" if each.code != "no_assistant_turn" else "no assistant message item"
            for each in refusal.violations
        }
        assert told >= expected  # a label lists at most six
        assert len(expected) >= 6 or told == expected
        for each in refusal.violations:
            if each.code == "missing":
                assert each.message == f'items[{each.loc[3]}]: has role but no type; add "type": "message"'


@pytest.mark.shared
def test_oddities_end_as_their_labels_say() -> None:
    labels = shared.lines("corpus/oddities/oddities.labels.jsonl")
    for line, label in zip(lines_of("oddities/oddities"), labels, strict=True):
        reading = read(b'{"conversations":[' + line + b"]}", RULES)
        assert isinstance(reading, Refusal) == (label["label"]["http"] == 422), label["label"]["name"]
        if isinstance(reading, Refusal):
            assert all(each.loc[:2] == ("conversations", 0) for each in reading.violations)
        else:
            parse(line)


RAW = {
    "ok": [],
    "bom": [],
    "dup-keys": [],
    "lone-surrogate": [],
    "nul-escape": [],
    "array": ["wrong_type"],
    "bad-utf8": ["encoding_invalid"],
    "bigint-5000": ["number_too_long"],
    "conversations-empty": ["empty"],
    "deep-1000": ["nesting_too_deep"],
    "empty": ["json_invalid"],
    "nan": ["number_not_finite"],
    "trailing-comma": ["json_invalid"],
}


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(RAW))
def test_odd_bodies_end_as_decided(name: str) -> None:
    raw = shared.shared_path(f"corpus/oddities/raw/{name}.json").read_bytes()
    if RAW[name]:
        assert [code for _, code in found(raw)] == RAW[name]
    else:
        accepted(raw)


def test_what_has_no_effect_is_said_to_have_none() -> None:
    asked = {"target": {"description": "An agent."}, "webhook": {"url": "https://example.com/hook"}}
    told = accepted(json.dumps({"conversations": [CHAT], **asked}).encode()).warnings
    assert {(each.conversation, each.warning.pointer, each.warning.code) for each in told} == {
        (None, "/target", "target_unheeded"),
        (None, "/webhook", "webhook_unheeded"),
    }
    assert accepted(json.dumps({"conversations": [CHAT]}).encode()).warnings == ()
