"""Recorded conversations of real agents through the whole product, on both databases."""

import json

import pytest

from tests import shared
from tests.recut import recut
from tests.stack import FORENSIC, Stack

SETS = [
    "tau-bench/gpt-4o-airline",
    "tooltalk/gold",
    "inspect-logs/items",
    "inspect-logs/messages",
    "langchain-openai-cassettes/recorded-items",
    "langchain-openai-cassettes/recorded-messages",
    "pydantic-ai-cassettes/recorded-items",
    "pydantic-ai-cassettes/recorded-messages",
]
REJECTED = ["langchain-openai-cassettes/raw-exports-rejected", "pydantic-ai-cassettes/raw-exports-rejected"]
RAW = {
    "ok": 202,
    "bom": 202,
    "dup-keys": 202,
    "lone-surrogate": 202,
    "nul-escape": 202,
    "array": 422,
    "bad-utf8": 422,
    "bigint-5000": 422,
    "conversations-empty": 422,
    "deep-1000": 422,
    "empty": 422,
    "nan": 422,
    "trailing-comma": 422,
}


def raw_lines(name: str) -> list[bytes]:
    return [line for line in shared.shared_path(f"corpus/{name}.jsonl").read_bytes().split(b"\n") if line]


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_recorded_set_is_examined_in_one_request(stack: Stack, name: str) -> None:
    sent = raw_lines(name)
    answer = stack.submit(b'{"conversations":[' + b",".join(sent) + b"]}")
    assert answer.status_code == 202, answer.text
    evaluation = stack.wait(answer.json()["id"])
    assert evaluation["status"] == "completed"
    assert evaluation["progress"]["completed"] == len(sent)
    assert evaluation["verdicts"]["error"] == 0
    base = f"{FORENSIC}/{evaluation['id']}"
    findings = stack.every(f"{base}/findings")
    assert sum(evaluation["findings"].values()) == len(findings)
    originals: dict[int, bytes] = {}
    for finding in findings:
        index = finding["conversation"]
        if index not in originals:
            originals[index] = stack.client.get(f"{base}/conversations/{index}/original").content
        for evidence in finding["evidence"]:
            there, quoted = recut(originals[index], evidence)
            assert there == quoted, finding
    verdicts = stack.every(f"{base}/verdicts")
    keys = {(each["conversation"], each["dimension"], json.dumps(each["subject"])) for each in verdicts}
    assert len(keys) == len(verdicts) == sum(evaluation["verdicts"].values())


@pytest.mark.shared
@pytest.mark.parametrize("name", REJECTED)
def test_every_raw_export_is_refused_with_cause_and_place(stack: Stack, name: str) -> None:
    labels = shared.lines(f"corpus/{name}.labels.jsonl")
    for line, label in zip(raw_lines(name), labels, strict=True):
        answer = stack.submit(b'{"conversations":[' + line + b"]}")
        assert answer.status_code == 422, label
        problem = answer.json()
        told = json.dumps(problem["errors"])
        for violation in label["label"]["violations"]:
            assert violation_named(violation, told), (violation, told)


def violation_named(violation: str, told: str) -> bool:
    """Whether a labelled violation ("items[3].type missing/empty", "no assistant message item") was named."""
    if violation == "no assistant message item":
        return "no_assistant_turn" in told
    index = violation.removeprefix("items[").removesuffix("].type missing/empty")
    return f'"/conversations/0/items/{int(index)}' in told and "type" in told


@pytest.mark.shared
def test_oddities_have_the_outcome_of_their_label(stack: Stack) -> None:
    labels = shared.lines("corpus/oddities/oddities.labels.jsonl")
    wrong = []
    accepted = []
    for line, label in zip(raw_lines("oddities/oddities"), labels, strict=True):
        answer = stack.submit(b'{"conversations":[' + line + b"]}")
        expected = 202 if label["label"]["http"] == 200 else 422
        if answer.status_code != expected:
            wrong.append((label["label"]["name"], answer.status_code, answer.text[:200]))
        elif expected == 202:
            accepted.append((answer.json()["id"], line))
    assert wrong == []
    for evaluation_id, line in accepted:
        assert stack.wait(evaluation_id)["status"] == "completed"
        original = stack.client.get(f"{FORENSIC}/{evaluation_id}/conversations/0/original")
        assert original.content == line
        stack.get(f"{FORENSIC}/{evaluation_id}/conversations/0")


@pytest.mark.shared
@pytest.mark.parametrize("name", RAW)
def test_raw_bodies(stack: Stack, name: str) -> None:
    answer = stack.submit(shared.shared_path(f"corpus/oddities/raw/{name}.json").read_bytes())
    assert answer.status_code == RAW[name], answer.text
    if answer.status_code == 202:
        assert stack.wait(answer.json()["id"])["status"] == "completed"
    else:
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert answer.json()["errors"]


SHOWN = ("tool_name", "kind", "arguments", "output", "output_available", "error", "schema_checkable")


@pytest.mark.shared
def test_shapes_are_shown_as_their_expected_calls(stack: Stack) -> None:
    labels = shared.lines("corpus/shapes/shapes.labels.jsonl")
    answer = stack.submit(b'{"conversations":[' + b",".join(raw_lines("shapes/shapes")) + b"]}")
    evaluation = stack.wait(answer.json()["id"])
    for index, label in enumerate(labels):
        calls = stack.get(f"{FORENSIC}/{evaluation['id']}/conversations/{index}")["calls"]
        expected = label["label"]["expected_calls"]
        assert len(calls) == len(expected), label["label"]["name"]
        for call, wanted in zip(calls, expected, strict=True):
            assert {key: call[key] for key in SHOWN} == {key: wanted[key] for key in SHOWN}, label["label"]["name"]
            assert (call["outcome"] == "failed") == wanted["failed"], label["label"]["name"]
