"""The stub itself: what other tests rely on."""

from typing import Any

import jsonschema_rs
import pytest

from app.llm.endpoint import ChatEndpoint
from app.llm.judge_model import OpenAIJudgeModel
from tests.llm.conftest import PROMPT
from tests.stub_answers import failing_answer, passing_answer
from tests.stub_misbehaviour import BEHAVIOURS
from tests.stub_model import StubModel, stub_process

NESTED: dict[str, Any] = {
    "$defs": {"quote": {"type": "object", "properties": {"event": {"type": "string"}, "quote": {"type": "string"}}}},
    "type": "object",
    "properties": {
        "label": {"enum": ["cannot_determine", "fail", "1", "pass", "5"]},
        "score": {"type": "integer", "minimum": 2},
        "sure": {"type": "boolean"},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "evidence": {"type": "array", "items": {"$ref": "#/$defs/quote"}},
    },
    "required": ["label", "score", "sure", "note", "evidence"],
}


def test_its_answers_satisfy_the_schema() -> None:
    good, bad = passing_answer(NESTED), failing_answer(NESTED, 3, "words")
    for answer in (good, bad):
        jsonschema_rs.validate(NESTED, answer)
    assert (good["label"], good["evidence"]) == ("pass", [])
    assert (bad["label"], bad["evidence"]) == ("fail", [{"event": "e3", "quote": "words"}])


def test_a_behaviour_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no such behaviour"):
        StubModel().script("nonsense")
    assert "nonsense" not in BEHAVIOURS


async def test_as_a_process_it_is_scripted_over_http() -> None:
    with stub_process() as stub:
        stub.control("/__script", [{"answer": {"reasoning": "scripted", "label": "fail"}, "contains": "What of it?"}])
        endpoint = ChatEndpoint(base_url=stub.base_url, api_key="")
        assert (await OpenAIJudgeModel(endpoint, "stub").ask(PROMPT)).value["reasoning"] == "scripted"
        stub.control("/__reset", {})
        assert (await OpenAIJudgeModel(endpoint, "stub").ask(PROMPT)).value["label"] == "pass"
        await endpoint.aclose()
        assert stub.control("/__stats")["requests"] == 1
