"""Every way in which an endpoint is known to fail ends as one classified outcome, in bounded time and memory."""

import asyncio
import logging
import time
import tracemalloc

import pytest

from app.judges.contract import JudgeModelError
from tests.llm.conftest import KEY, PROMPT, MakeModel
from tests.stub_misbehaviour import bomb
from tests.stub_model import StubModel


@pytest.fixture(autouse=True, scope="module")
def packed_bomb() -> None:
    """Packing it takes a second that no exchange should have to wait for."""
    bomb()


OUTCOMES = {
    # behaviour: (reason code, requests made)
    "invalid_json": ("invalid_judge_output", 2),
    "wrong_enum": ("invalid_judge_output", 2),
    "extra_key": ("invalid_judge_output", 2),
    "missing_key": ("invalid_judge_output", 2),
    "wrong_type": ("invalid_judge_output", 2),
    "null_content": ("invalid_judge_output", 2),
    "length": ("invalid_judge_output", 2),
    "refusal": ("invalid_judge_output", 1),
    "content_filter": ("invalid_judge_output", 1),
    "html": ("provider_error", 3),
    "null": ("provider_error", 3),
    "empty_choices": ("provider_error", 3),
    "wrong_types": ("provider_error", 3),
    "broken_body": ("provider_error", 3),
    "empty_body": ("provider_error", 3),
    "server_error": ("provider_error", 3),
    "unavailable": ("provider_error", 3),
    "half_body": ("provider_error", 3),
    "reset": ("provider_error", 3),
    "huge_body": ("provider_error", 1),
    "gzip_bomb": ("provider_error", 1),
    "rate_limit": ("rate_limited", 3),
    "quota": ("rate_limited", 1),
    "garbage": ("provider_error", 3),
    "hang": ("timeout", 2),
    "drip": ("timeout", 2),
    "bad_request": ("bad_request", 1),
    "redirect": ("bad_request", 1),
    "unauthorized": ("unauthorized", 1),
    "forbidden": ("unauthorized", 1),
    "not_found": ("not_found", 1),
    "context_overflow": ("context_overflow", 1),
}


@pytest.mark.parametrize("behaviour", OUTCOMES)
async def test_trouble_is_classified_counted_and_over_soon(
    stub: StubModel, make_model: MakeModel, behaviour: str, caplog: pytest.LogCaptureFixture
) -> None:
    stub.script(behaviour)
    model = make_model(timeout_seconds=0.3)
    started = time.monotonic()
    with caplog.at_level(logging.DEBUG), pytest.raises(JudgeModelError) as caught:
        await model.ask(PROMPT)
    reason, requests = OUTCOMES[behaviour]
    assert (caught.value.reason_code, caught.value.usage.requests) == (reason, requests)
    assert stub.stats.requests == requests
    assert time.monotonic() - started < 3
    assert KEY not in str(caught.value)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("behaviour", "times"),
    [("server_error", 2), ("html", 2), ("reset", 2), ("half_body", 2), ("rate_limit", 2), ("hang", 1)],
)
async def test_trouble_that_passes_leaves_an_answer(
    stub: StubModel, make_model: MakeModel, behaviour: str, times: int
) -> None:
    stub.script(behaviour, times=times)
    answer = await make_model(timeout_seconds=0.3).ask(PROMPT)
    assert answer.value == {"reasoning": "stub", "label": "pass"}
    assert answer.attempts == answer.usage.requests == times + 1
    assert answer.usage.prompt_tokens == 100


@pytest.mark.parametrize("behaviour", ["huge_body", "gzip_bomb"])
async def test_a_body_without_end_costs_little_memory(stub: StubModel, make_model: MakeModel, behaviour: str) -> None:
    model = make_model(max_response_bytes=1 << 20)
    await model.ask(PROMPT)
    stub.script(behaviour)
    tracemalloc.start()
    try:
        with pytest.raises(JudgeModelError):
            await model.ask(PROMPT)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


async def test_an_endpoint_that_is_not_there_is_a_provider_error(make_model: MakeModel, stub: StubModel) -> None:
    model = make_model()
    await stub.__aexit__()
    try:
        with pytest.raises(JudgeModelError) as caught:
            await model.ask(PROMPT)
        assert caught.value.reason_code == "provider_error"
    finally:
        stub.port = 0
        await stub.__aenter__()


async def test_short_waits_are_sat_out_long_ones_are_told(stub: StubModel, make_model: MakeModel) -> None:
    model = make_model()
    stub.script("rate_limit", seconds=0.2, times=1)
    started = time.monotonic()
    await model.ask(PROMPT)
    assert time.monotonic() - started >= 0.2

    stub.script("rate_limit", seconds=90, times=1)
    with pytest.raises(JudgeModelError) as caught:
        await model.ask(PROMPT)
    assert (caught.value.reason_code, caught.value.retry_after_seconds) == ("rate_limited", 90)

    stub.script("unavailable", seconds=120, times=1)
    with pytest.raises(JudgeModelError) as caught:
        await model.ask(PROMPT)
    assert (caught.value.reason_code, caught.value.retry_after_seconds) == ("provider_error", 120)


async def test_limits_that_last_put_the_conversation_back_but_spent_quota_does_not(
    stub: StubModel, make_model: MakeModel
) -> None:
    model = make_model()
    stub.script("rate_limit", times=3)
    with pytest.raises(JudgeModelError) as caught:
        await model.ask(PROMPT)
    assert caught.value.retry_after_seconds == 0.5

    stub.script("quota")
    with pytest.raises(JudgeModelError) as caught:
        await model.ask(PROMPT)
    assert caught.value.retry_after_seconds is None


async def test_a_drip_frees_its_slot(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("drip", times=1)
    model = make_model(concurrency=1, timeout_seconds=0.3)
    started = time.monotonic()
    answers = await asyncio.gather(*(model.ask(PROMPT) for _ in range(5)))
    assert len(answers) == 5
    assert time.monotonic() - started < 2


async def test_cancelling_a_question_frees_its_slot(stub: StubModel, make_model: MakeModel) -> None:
    stub.script("hang", times=1)
    model = make_model(concurrency=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await model.ask(PROMPT)
    assert (await model.ask(PROMPT)).value["label"] == "pass"
