"""Hostile schemas and instances: none may hang, reach anything, or cost anybody else an answer."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.sandbox.checker import SandboxChecker
from app.sandbox.lanes import Sandbox

_DOUBLING: dict[str, Any] = {
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
    "$ref": "#/$defs/d0",
}
_MUTUAL = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
_BACKTRACKING = {"pattern": "^(?=a)(a|a)+\\1$"}
_REDOS_TEXT = json.dumps("a" * 60 + "!")

HOSTILE: dict[str, tuple[str, str]] = {
    "linear engine redos": (json.dumps({"pattern": "^(a+)+$"}), _REDOS_TEXT),
    "backtracking redos": (json.dumps(_BACKTRACKING), _REDOS_TEXT),
    "backtracking redos in not": (json.dumps({"not": _BACKTRACKING}), _REDOS_TEXT),
    "backtracking redos in property names": (
        json.dumps({"patternProperties": {_BACKTRACKING["pattern"]: False}}),
        json.dumps({"a" * 60 + "!": 1}),
    ),
    "huge repetition": (json.dumps({"pattern": "(?:(?:a{1000}){1000}){1000}"}), '"a"'),
    "huge unicode repetition": (json.dumps({"pattern": "(?:(?:\\p{L}{50}){50}){50}"}), '"a"'),
    "doubling references": (json.dumps(_DOUBLING), "1"),
    "mutual recursion": (json.dumps(_MUTUAL), "1"),
    "recursive properties": (json.dumps({"properties": {"a": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}]}), '{"a": {}}'),
    "dynamic reference loop": (json.dumps({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}), "{}"),
    "deep schema": ("[" * 100_000 + "]" * 100_000, "1"),
    "deep instance": ('{"type": "array"}', "[" * 500_000 + "]" * 500_000),
    "long enum": (json.dumps({"enum": list(range(40_000))}), "-1"),
    "unknown type": ('{"type": "strng"}', "1"),
    "not a schema": ("[1, 2]", "1"),
    "not json": ("{", "1"),
    "nan": ('{"maximum": NaN}', "1"),
    "empty text": ("", ""),
    "lone surrogate": ('{"const": "\\ud800"}', '"\\udfff"'),
    "surrogate character": ('{"const": "x"}', '"\ud800"'),
    "huge exponent": ('{"multipleOf": 1e-300}', "1e300"),
    "huge number": ('{"type": "integer"}', "9" * 5000),
    "unique items": ('{"uniqueItems": true}', json.dumps([{"n": n} for n in range(50_000)])),
    "memory bomb": ('{"type": "array"}', "[" + "[]," * 9_000_000 + "[]]"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_jobs_end_and_the_innocent_beside_them_are_answered(checker: SandboxChecker, name: str) -> None:
    innocent = ('{"type": "object", "required": ["a"]}', "{}")
    before, _, after = await checker.check([innocent, HOSTILE[name], innocent])
    for result in (before, after):
        assert [found.keyword for found in result.violations] == ["required"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("backtracking redos", "schema_timeout"),
        ("backtracking redos in not", "schema_timeout"),
        ("backtracking redos in property names", "schema_timeout"),
        ("doubling references", "schema_timeout"),
        ("deep schema", "schema_unusable"),
        ("deep instance", "schema_unusable"),
        ("not json", "schema_unusable"),
        ("nan", "schema_unusable"),
        ("huge number", "schema_unusable"),
    ],
)
async def test_what_cannot_be_checked_is_never_called_valid(checker: SandboxChecker, name: str, code: str) -> None:
    (result,) = await checker.check([HOSTILE[name]])
    assert (result.unusable_code, result.violations) == (code, ())
    assert result.unusable


async def test_a_schema_that_eats_memory_ends_alone() -> None:
    checker = SandboxChecker(Sandbox(memory_bytes=160 << 20))
    try:
        bomb = json.dumps({"items": {"type": "string"}})
        fat = json.dumps(["x" * 100] * 2_000_000)
        results = await checker.check([(bomb, '["a"]'), (bomb, fat), (bomb, "[1]")])
    finally:
        await checker.aclose()
    assert [result.unusable_code for result in results] == [None, "schema_unusable", None]
    assert len(results[2].violations) == 1


class _Canary(BaseHTTPRequestHandler):
    hits: list[str]

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"type": "string"}')

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def canary() -> Iterator[tuple[str, list[str]]]:
    hits: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (_Canary,), {"hits": hits}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", hits
    server.shutdown()
    thread.join()
    server.server_close()


async def test_nothing_is_fetched_and_no_file_is_read(
    checker: SandboxChecker, canary: tuple[str, list[str]], tmp_path: Path
) -> None:
    url, hits = canary
    secret = tmp_path / "schema.json"
    secret.write_text('{"const": "s3cret-content"}')
    schemas: list[dict[str, Any]] = [
        {"$ref": f"{url}/ref"},
        {"$schema": f"{url}/schema", "type": "object"},
        {"$id": f"{url}/id", "$ref": "other"},
        {"$id": f"{url}/id", "properties": {"a": {"$ref": "./relative"}}},
        {"properties": {"a": {"$dynamicRef": f"{url}/dynamic#x"}}},
        {"$defs": {"x": {"$id": "x", "$schema": f"{url}/nested", "$ref": f"{url}/inner"}}, "$ref": "#/$defs/x"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$ref": f"{url}/seven"}}},
        {"$ref": secret.as_uri()},
        {"$ref": str(secret)},
        {"$schema": secret.as_uri()},
        {"$ref": "file:///etc/hostname"},
    ]
    results = await checker.check([(json.dumps(schema), '{"a": 1}') for schema in schemas])
    assert hits == []
    assert "s3cret" not in repr(results)
    followed = [schemas[index] for index, result in enumerate(results) if result.unusable_code is None]
    # An unknown draft is no reference: it is read as 2020-12, without being looked up.
    assert followed == [schemas[1], schemas[9]]
