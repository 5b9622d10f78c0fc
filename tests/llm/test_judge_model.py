"""A question taken to its end: adaptation, repair, accounting, limits."""

import asyncio
from dataclasses import replace

import pytest

from app.judges.contract import JudgeModelError
from tests.llm.conftest import PROMPT, MakeModel
from tests.stub_model import StubModel


async def test_what_is_sent(stub: StubModel, make_model: MakeModel) -> None:
    await make_model("judge-1").ask(PROMPT)
    sent = stub.seen[0]
    assert sent.model == "judge-1"
    assert [message.role for message in sent.messages] == ["system", "user"]
    assert sent.messages[0].content == PROMPT.system
    assert sent.messages[1].content.startswith(PROMPT.transcript)
    assert sent.messages[1].content.endswith(PROMPT.question)
    assert sent.temperature == 0
    assert sent.max_completion_tokens == 4096
    assert b'"strict":true' in bytes(sent.response_format)
    assert stub.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("refusals", "extra_requests"),
    [
        (["no_temperature"], 1),
        (["no_max_completion_tokens"], 1),
        (["no_max_completion_tokens", "no_max_tokens"], 2),
        (["no_json_schema"], 1),
        (["no_response_format"], 2),
        (["no_temperature", "no_max_completion_tokens", "no_response_format"], 4),
    ],
)
async def test_refused_parameters_are_given_up_and_remembered(
    stub: StubModel, make_model: MakeModel, refusals: list[str], extra_requests: int
) -> None:
    for refusal in refusals:
        stub.script(refusal)
    model = make_model()
    assert (await model.ask(PROMPT)).attempts == 1 + extra_requests
    assert (await model.ask(PROMPT)).attempts == 1


async def test_a_schema_that_may_not_be_sent_is_told(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("no_response_format")
    await make_model().ask(PROMPT)
    assert bytes(stub.seen[-1].response_format) == b"null"
    assert '"enum":["fail","pass","cannot_determine"]' in stub.seen[-1].text


async def test_a_malformed_answer_gets_one_repair_turn(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("wrong_enum", times=1)
    answer = await make_model(prices={"stub": (1.0, 0.5, 2.0)}).ask(PROMPT)
    assert answer.value["label"] == "pass"
    assert answer.usage.requests == answer.attempts == 2
    assert answer.usage.prompt_tokens == 200
    repair = stub.seen[-1].messages
    assert [message.role for message in repair] == ["system", "user", "assistant", "user"]
    assert "excellent" in repair[-1].content


async def test_a_model_that_thinks_too_long_keeps_its_larger_budget(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("overthinks")
    model = make_model()
    assert (await model.ask(PROMPT)).attempts == 2
    assert (await model.ask(PROMPT)).attempts == 1
    assert stub.seen[-1].max_completion_tokens == 4 * PROMPT.max_output_tokens


async def test_usage_and_cost_add_up_over_all_attempts(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("server_error", times=1)
    stub.script("wrong_enum", times=1)
    usage = (await make_model(prices={"stub": (1.0, 0.5, 2.0)}).ask(PROMPT)).usage
    assert (usage.requests, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (3, 200, 80, 40)
    assert usage.cost_usd == pytest.approx((120 * 1.0 + 80 * 0.5 + 40 * 2.0) / 1e6)


@pytest.mark.parametrize("behaviour", ["missing_usage", "odd_usage"])
async def test_unreported_usage_leaves_the_cost_unknown(stub: StubModel, make_model: MakeModel, behaviour: str) -> None:
    stub.script(behaviour)
    usage = (await make_model(prices={"stub": (1.0, 0.5, 2.0)}).ask(PROMPT)).usage
    assert (usage.requests, usage.prompt_tokens, usage.cost_usd) == (1, 0, None)


async def test_a_model_without_a_price_has_no_cost(stub: StubModel, make_model: MakeModel) -> None:
    usage = (await make_model(prices={"another": (1.0, 0.5, 2.0)}).ask(PROMPT)).usage
    assert (usage.prompt_tokens, usage.cost_usd) == (100, None)
    assert stub.stats.requests == 1


async def test_an_answer_in_prose_is_found(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("prose")
    assert (await make_model().ask(PROMPT)).value == {"reasoning": "stub", "label": "pass"}


async def test_concurrency_and_connections_are_bounded(stub: StubModel, make_model: MakeModel) -> None:
    stub.latency_seconds = 0.01
    model = make_model(concurrency=8)
    await asyncio.gather(*(model.ask(PROMPT) for _ in range(100)))
    assert stub.stats.requests == 100
    assert stub.stats.max_in_flight == 8
    assert stub.stats.connections <= 9


async def test_the_fingerprint_tells_questions_apart_and_is_stable(stub: StubModel, make_model: MakeModel) -> None:
    model, other = make_model("a"), make_model("b")
    first = (await model.ask(PROMPT)).prompt_sha256
    stub.script("no_temperature")
    assert (await model.ask(PROMPT)).prompt_sha256 == first
    variants = [
        replace(PROMPT, system="s"),
        replace(PROMPT, transcript="t"),
        replace(PROMPT, question="q"),
        replace(PROMPT, max_output_tokens=9),
        replace(PROMPT, answer_schema={**PROMPT.answer_schema, "title": "another"}),
    ]
    seen = {(await model.ask(variant)).prompt_sha256 for variant in variants}
    seen |= {first, (await other.ask(PROMPT)).prompt_sha256}
    assert len(seen) == len(variants) + 2


async def test_failed_questions_tell_what_they_cost(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("wrong_enum")
    with pytest.raises(JudgeModelError) as caught:
        await make_model(prices={"stub": (1.0, 1.0, 1.0)}).ask(PROMPT)
    assert caught.value.usage.prompt_tokens == 200
    assert caught.value.usage.cost_usd == pytest.approx(240 / 1e6)
