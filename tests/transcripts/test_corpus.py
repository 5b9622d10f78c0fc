"""Recorded and synthetic conversations, where the corpus is there."""

import json
from typing import Any

import pytest

from app.transcripts.parsing import parse
from app.transcripts.recording import NotAdmittedError
from tests.shared import lines, shared_path
from tests.transcripts.test_parsing import sound

pytestmark = pytest.mark.shared

RECORDED = [
    "tau-bench/gpt-4o-airline",
    "tooltalk/gold",
    "inspect-logs/items",
    "inspect-logs/messages",
    "pydantic-ai-cassettes/recorded-items",
    "pydantic-ai-cassettes/recorded-messages",
    "langchain-openai-cassettes/recorded-items",
    "langchain-openai-cassettes/recorded-messages",
]


def raw_lines(name: str) -> list[bytes]:
    return shared_path(f"corpus/{name}.jsonl").read_bytes().splitlines()


def labels(name: str) -> list[dict[str, Any]]:
    return [line["label"] for line in lines(f"corpus/{name}.labels.jsonl")]


def test_shapes_normalise_to_their_expected_calls() -> None:
    for raw, label in zip(raw_lines("shapes/shapes"), labels("shapes/shapes"), strict=True):
        made = parse(raw)
        assert len(made.calls) == len(label["expected_calls"]), label["name"]
        for found, expected in zip(made.calls, label["expected_calls"], strict=True):
            wanted = {key: value for key, value in expected.items() if key != "note"}
            assert {key: getattr(found, key) for key in wanted} == wanted, label["name"]


def test_oddities_are_let_through_or_not_as_labelled() -> None:
    for raw, label in zip(raw_lines("oddities/oddities"), labels("oddities/oddities"), strict=True):
        if label["http"] == 200:
            sound(parse(raw))
        else:
            with pytest.raises(NotAdmittedError):
                parse(raw)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_conversations_parse_and_can_be_cited(name: str) -> None:
    for raw in raw_lines(name)[:60]:
        made = parse(raw)
        sound(made)
        assert made.document == json.loads(raw)


def test_reused_ids_of_real_agents_keep_their_results() -> None:
    repeated = 0
    for raw in raw_lines("tau-bench/gpt-4o-airline"):
        made = parse(raw)
        repeated += sum(fact.code == "duplicate_call_id" for fact in made.facts)
        for item in made.calls:
            assert item.output_event in (None, item.event + 1)
    assert repeated > 20
