"""What the checker says about ordinary schemas and arguments."""

import json
from typing import Any

import pytest

from app.judges.contract import SchemaCheck
from app.sandbox.checker import SandboxChecker


async def _check(checker: SandboxChecker, schema: Any, instance: str) -> SchemaCheck:
    (result,) = await checker.check([(json.dumps(schema), instance)])
    return result


def _brief(result: SchemaCheck) -> list[tuple[str, str, str]]:
    assert result.unusable is None
    return [(found.keyword, found.instance_pointer, found.schema_pointer) for found in result.violations]


ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}}},
        "total": {"type": "number", "minimum": 0},
        "when": {"type": "string", "format": "date-time"},
    },
    "required": ["id", "total"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ('{"id": "7", "total": 1.5}', []),
        ('{"id": "7"}', [("required", "/total", "/required")]),
        ('{"id": 7, "total": 1}', [("type", "/id", "/properties/id/type")]),
        ('{"id": "x", "total": 1}', [("pattern", "/id", "/properties/id/pattern")]),
        ('{"id": "7", "total": -1}', [("minimum", "/total", "/properties/total/minimum")]),
        (
            '{"id": "7", "total": 1, "lines": [{}, {"size": "XL"}]}',
            [("enum", "/lines/1/size", "/properties/lines/items/properties/size/enum")],
        ),
        (
            '{"id": "7", "total": 1, "a/b": 1, "c~": 2}',
            [("additionalProperties", place, "/additionalProperties") for place in ("/a~1b", "/c~0")],
        ),
        ("[]", [("type", "", "/type")]),
    ],
)
async def test_each_violation_has_a_place(
    checker: SandboxChecker, instance: str, expected: list[tuple[str, str, str]]
) -> None:
    assert sorted(_brief(await _check(checker, ORDER, instance))) == sorted(expected)


@pytest.mark.parametrize(
    ("when", "accepted"),
    [
        ("2026-05-20T10:00:00Z", True),
        ("2026-05-20T10:00:00", True),
        ("2026-05-20 10:00", True),
        ("2026-05-20", False),
        ("tomorrow", False),
    ],
)
async def test_date_times_are_read_as_tools_read_them(checker: SandboxChecker, when: str, accepted: bool) -> None:
    found = _brief(await _check(checker, ORDER, json.dumps({"id": "7", "total": 1, "when": when})))
    assert found == ([] if accepted else [("format", "/when", "/properties/when/format")])


async def test_the_alternative_that_was_meant_is_reported(checker: SandboxChecker) -> None:
    optional = {"anyOf": [{"type": "object", "required": ["city"]}, {"type": "null"}]}
    assert _brief(await _check(checker, optional, "{}")) == [("required", "/city", "/anyOf/0/required")]
    assert _brief(await _check(checker, optional, "null")) == []
    assert _brief(await _check(checker, optional, "3")) == [("type", "", "/anyOf")]
    tagged = {
        "oneOf": [
            {"properties": {"kind": {"const": "card"}, "digits": {"type": "string"}}},
            {"properties": {"kind": {"const": "cash"}, "digits": {"type": "null"}}},
        ]
    }
    found = _brief(await _check(checker, tagged, '{"kind": "card", "digits": 4}'))
    assert found == [("type", "/digits", "/oneOf/0/properties/digits/type")]
    neither = {"anyOf": [{"minimum": 5}, {"multipleOf": 7}]}
    assert _brief(await _check(checker, neither, "3")) == [("anyOf", "", "/anyOf")]


async def test_nullable_admits_null_and_nothing_else(checker: SandboxChecker) -> None:
    schema = {"type": "string", "nullable": True, "enum": ["a"]}
    assert _brief(await _check(checker, schema, "null")) == []
    assert [keyword for keyword, *_ in _brief(await _check(checker, schema, "3"))] == ["type", "enum"]


@pytest.mark.parametrize(
    ("schema", "instance", "valid"),
    [
        ({"type": "integer"}, "1.0", True),
        ({"type": "number"}, "1e400", True),
        ({"maximum": 5}, "1e400", False),
        ({"maximum": 5}, "9" * 4000, False),
        ({"type": "string"}, '"\\ud800"', True),
        ({"maxLength": 1}, '"\\ud83d"', True),
        ({"maxLength": 1}, '"\\ud83d\\ude00"', True),
        ({"maxLength": 1}, '"\\\\ud83d"', False),
        ({"required": ["a"]}, '{"a": 1, "a": 2}', True),
        (True, "1", True),
        (False, "1", False),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}, "3", False),
        ({"$schema": "https://example.com/unknown-draft", "type": "string"}, "3", False),
        ({"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}}, '"x"', True),
        ({"$ref": "#"}, "1", True),
    ],
)
async def test_json_and_schema_corners(checker: SandboxChecker, schema: Any, instance: str, valid: bool) -> None:
    result = await _check(checker, schema, instance)
    assert result.unusable is None
    assert (not result.violations) is valid


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "dict"}, "/type"),
        ({"type": "object", "properties": {"a": {"required": True}}}, "/properties/a/required"),
        ({"pattern": "("}, "/pattern"),
        ([1], "an object or a boolean"),
        (3, "an object or a boolean"),
        ('{"type": "object"}', "an object or a boolean"),
        (None, "an object or a boolean"),
        ({"$ref": "#/$defs/none"}, "/$defs/none"),
    ],
)
async def test_a_broken_schema_judges_nothing_and_says_where(checker: SandboxChecker, schema: Any, reason: str) -> None:
    result = await _check(checker, schema, '{"a": 1}')
    assert result.violations == ()
    assert result.unusable_code == "schema_unusable"
    assert reason in (result.unusable or "")


async def test_size_and_depth_are_limited(checker: SandboxChecker) -> None:
    deep: Any = {"type": "object"}
    for _ in range(70):
        deep = {"not": deep}
    large = {"description": "x" * (256 * 1024)}
    wide = {"description": "é" * (129 * 1024)}
    results = [await _check(checker, schema, "1") for schema in (deep, large)]
    (in_bytes,) = await checker.check([(json.dumps(wide, ensure_ascii=False), "1")])
    assert [result.unusable_code for result in (*results, in_bytes)] == [
        "schema_unusable",
        "schema_too_large",
        "schema_too_large",
    ]


async def test_at_most_fifty_violations_are_told_and_messages_stay_short(checker: SandboxChecker) -> None:
    many = await _check(checker, {"items": {"type": "string"}}, json.dumps(list(range(300))))
    assert len(many.violations) == 50
    name = "\u202e\x00" + "n" * 5000
    schema = {"type": "object", "additionalProperties": False, "required": ["r" * 5000]}
    hostile = await _check(checker, schema, json.dumps({name: 1}))
    assert {found.keyword for found in hostile.violations} == {"required", "additionalProperties"}
    for found in hostile.violations:
        assert len(found.message) <= 300
        assert found.message.isprintable()
        assert len(found.instance_pointer) <= 2000


async def test_a_large_instance_with_very_many_errors_is_answered_by_its_first(checker: SandboxChecker) -> None:
    result = await _check(checker, {"items": {"type": "string"}}, json.dumps(list(range(100_000))))
    assert _brief(result) == [("type", "/0", "/items/type")]


async def test_results_come_in_the_order_of_the_jobs(checker: SandboxChecker) -> None:
    jobs = [('{"type": "string"}', json.dumps(number if number % 3 else str(number))) for number in range(200)]
    jobs[50] = ('{"type": "dict"}', "1")
    jobs[60] = (json.dumps({"description": "x" * (256 * 1024)}), "1")
    results = await checker.check(jobs)
    assert results[50].unusable_code == "schema_unusable"
    assert results[60].unusable_code == "schema_too_large"
    others = [number for number in range(200) if number not in (50, 60)]
    assert all(bool(results[number].violations) == bool(number % 3) for number in others)
    assert await checker.check([]) == []
