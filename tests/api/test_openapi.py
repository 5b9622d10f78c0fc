"""The OpenAPI document: current, complete, and true of its own examples."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.api.openapi import text
from app.api.problems import ITEM_CODES, KINDS
from app.api.routes.about import PUBLIC
from app.api.schema.document import VERSION
from app.transcripts.admission.codes import VIOLATIONS
from tests.api.conftest import PATH, an_api, client_of
from tests.api.contract import described, validator
from tests.shared import lines, shared_path

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "openapi" / "examples").glob("*.json"))
REQUESTS = [path for path in EXAMPLES if path.stem.startswith("ForensicRequest.")]
OPERATIONS = [
    (method, path, operation) for path, methods in described()["paths"].items() for method, operation in methods.items()
]


def loaded(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_the_committed_document_is_current() -> None:
    committed = (ROOT / "openapi" / "openapi.json").read_text()
    assert committed == text(), "run: python -m app.api.openapi > openapi/openapi.json"


def test_it_carries_the_version_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


async def test_it_is_served() -> None:
    async with client_of(an_api(), key=None) as client:
        answer = await client.get("/openapi.json")
    assert answer.json() == described()
    assert answer.headers["content-type"] == "application/json"


def test_every_reference_leads_somewhere() -> None:
    components = described()["components"]["schemas"]
    references = {part.split('"')[0] for part in json.dumps(described()).split("#/components/schemas/")[1:]}
    assert references == set(components)


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_every_operation_says_what_it_is_and_who_may(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["description"]
    assert operation["tags"]
    assert operation["operationId"].isidentifier()
    assert ("security" in operation) == (path not in PUBLIC)
    if path not in PUBLIC:
        assert {"401", "403", "422", "500", "503"} <= set(operation["responses"])
    for status, response in operation["responses"].items():
        problems = [media_type for media_type in response.get("content", {}) if media_type.endswith("problem+json")]
        assert bool(problems) == (int(status) >= 400), (method, path, status)


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(ids)) == len(ids)


def test_every_code_is_listed_with_its_meaning() -> None:
    schemas = described()["components"]["schemas"]
    assert set(schemas["Problem"]["properties"]["code"]["enum"]) == set(KINDS)
    item = schemas["ProblemItem"]["properties"]["code"]
    assert set(item["enum"]) == {*VIOLATIONS, *ITEM_CODES}
    for code in item["enum"]:
        assert f"`{code}`: " in item["description"]


def test_wire_objects_are_closed_and_complete() -> None:
    optional = {"line", "column", "parameter"}  # of a problem's item: they are only there where they mean something
    requests = {"ForensicRequest", "MessagesConversation", "ItemsConversation", "ChatMessage", "ResponseItem"}
    asked = {"Target", "Principle", "Document", "RequestOptions", "RequestWebhook"}
    for name, schema in described()["components"]["schemas"].items():
        if name in requests | asked:
            continue
        assert schema["additionalProperties"] is False, name
        assert set(schema["required"]) >= set(schema["properties"]) - optional, name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_one(path: Path) -> None:
    component = path.stem.split(".")[0]
    validator(component).validate(loaded(path))
    assert loaded(path) in described()["components"]["schemas"][component]["examples"]


def test_the_examples_of_a_request_are_offered_by_name() -> None:
    body = described()["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]
    assert {name: each["value"] for name, each in body["examples"].items()} == {
        path.stem.removeprefix("ForensicRequest."): loaded(path) for path in REQUESTS
    }
    assert set(body["examples"]) >= {"messages", "items", "mixed"}


def test_an_example_of_evidence_quotes_what_stands_there() -> None:
    [request] = [loaded(path) for path in REQUESTS if path.stem.endswith("items")]
    finding = loaded(ROOT / "openapi" / "examples" / "Finding.json")
    violation = finding["evidence"][0]
    arguments = request["conversations"][0]["items"][violation["event"]]["arguments"]
    assert arguments[violation["start"] : violation["end"]] == violation["quote"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"conversations": []},
        {"conversations": [{}]},
        {"conversations": [{"messages": []}]},
        {"conversations": [{"messages": [{"role": "tool", "content": "x"}]}]},
        {"conversations": [{"items": [{"type": ""}]}]},
        {"conversations": [{"messages": [{"role": "assistant", "content": "x"}]}], "nmae": "x"},
        {"conversations": [{"messages": [{"role": "assistant", "content": "x"}]}], "options": {"votes": 2}},
    ],
)
def test_what_is_refused_is_not_described_as_acceptable(body: dict[str, Any]) -> None:
    assert not validator("ForensicRequest").is_valid(body)


@pytest.mark.shared
def test_real_recordings_fit_the_description() -> None:
    check = validator("ForensicRequest")
    found = 0
    corpus = shared_path("corpus")
    sets = [path for pattern in ("t*/*", "*cassettes/recorded-*", "inspect-logs/*") for path in corpus.glob(pattern)]
    for path in sets:
        if not path.name.endswith(".labels.jsonl"):
            for conversation in lines(str(path.relative_to(corpus.parent))):
                check.validate({"conversations": [conversation]})
                found += 1
    assert found > len(sets)
