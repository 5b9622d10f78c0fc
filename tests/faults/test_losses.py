"""What is lost on the way is done all the same, and once: workers killed, Redis emptied, Redis away."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis as redis_client

from tests.processes import PrivateRedis, private_redis
from tests.stack import FORENSIC, Stack, running
from tests.stub_model import stub_process

CONVERSATIONS = 16


def conversation(number: int) -> dict[str, Any]:
    """Return a small conversation with two calls, one of them against its schema."""
    schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    return {
        "id": f"order-{number}",
        "items": [
            {"type": "message", "role": "user", "content": f"Where is order {number}?"},
            {"type": "function_call", "call_id": "a", "name": "track", "arguments": json.dumps({"order": str(number)})},
            {"type": "function_call_output", "call_id": "a", "output": '{"place": "Bremen"}'},
            {"type": "function_call", "call_id": "b", "name": "track", "arguments": json.dumps({"order": number})},
            {"type": "function_call_output", "call_id": "b", "output": '{"error": "order must be text"}'},
            {"type": "message", "role": "assistant", "content": "It is in Bremen."},
        ],
        "tools": [{"type": "function", "name": "track", "parameters": schema}],
    }


BODY = json.dumps({"conversations": [conversation(number) for number in range(CONVERSATIONS)]}).encode()


def examined(stack: Stack, evaluation_id: str) -> list[tuple[Any, ...]]:
    """Return what was decided about what, in order, and check that it is whole."""
    evaluation = stack.wait(evaluation_id, 60)
    assert evaluation["status"] == "completed", evaluation
    assert evaluation["progress"]["completed"] == CONVERSATIONS, evaluation["progress"]
    verdicts = stack.every(f"{FORENSIC}/{evaluation_id}/verdicts")
    assert sum(evaluation["verdicts"].values()) == len(verdicts)
    findings = stack.every(f"{FORENSIC}/{evaluation_id}/findings")
    assert sum(evaluation["findings"].values()) == len(findings)
    decided = [
        (each["conversation"], each["dimension"], each["subject"]["event"], each["status"], each["passed"])
        for each in verdicts
    ]
    assert len(set(decided)) == len(decided)
    found = [(each["conversation"], each["dimension"], each["code"], each["evidence"][0]["event"]) for each in findings]
    assert len(set(found)) == len(found)
    return sorted([*decided, *found], key=str)


def in_the_middle(stack: Stack, evaluation_id: str) -> None:
    """Return when some conversations have ended and some have not."""
    deadline = time.monotonic() + 30
    while True:
        progress = stack.get(f"{FORENSIC}/{evaluation_id}")["progress"]
        if progress["completed"] >= 2:
            assert progress["completed"] < CONVERSATIONS, "too quick for the fault to hit"
            return
        assert time.monotonic() < deadline, progress
        time.sleep(0.05)


def survive(
    directory: Path, database_url: str | None, fault: Callable[[Stack, PrivateRedis, str], None], **settings: str
) -> None:
    """Run the same body undisturbed and under a fault; both must end alike."""
    with (
        stub_process(latency_ms=150) as stub,
        private_redis() as redis,
        running(
            directory,
            database_url=database_url,
            redis_url=redis.url,
            judge_base_url=stub.base_url,
            judge_api_key="none",
            judge_model="stub",
            judge_concurrency="4",
            worker_max_jobs="4",
            lease_seconds="2",
            **settings,
        ) as stack,
    ):
        undisturbed = examined(stack, stack.submit(BODY).json()["id"])
        evaluation_id = stack.submit(BODY).json()["id"]
        fault(stack, redis, evaluation_id)
        assert examined(stack, evaluation_id) == undisturbed
        assert len(undisturbed) > CONVERSATIONS * 6


def test_a_killed_worker_is_replaced(tmp_path: Path, database_url: str | None) -> None:
    def fault(stack: Stack, _: PrivateRedis, evaluation_id: str) -> None:
        in_the_middle(stack, evaluation_id)
        stack.workers[0].send_signal(signal.SIGKILL)
        stack.start_worker()

    survive(tmp_path, database_url, fault)


def test_redis_forgets_everything(tmp_path: Path, database_url: str | None) -> None:
    def fault(stack: Stack, redis: PrivateRedis, evaluation_id: str) -> None:
        in_the_middle(stack, evaluation_id)
        redis_client.Redis.from_url(redis.url).flushall()

    survive(tmp_path, database_url, fault)


def test_redis_is_away_while_a_request_comes_in(tmp_path: Path, database_url: str | None) -> None:
    def fault(stack: Stack, redis: PrivateRedis, evaluation_id: str) -> None:
        examined(stack, evaluation_id)
        redis.stop()
        started = time.monotonic()
        answer = stack.submit(BODY)
        assert answer.status_code == 202
        assert time.monotonic() - started < 5
        time.sleep(1)
        redis.start()
        examined(stack, answer.json()["id"])

    survive(tmp_path, database_url, fault)


def test_a_worker_that_slept_past_its_lease_writes_nothing(tmp_path: Path, database_url: str | None) -> None:
    def fault(stack: Stack, _: PrivateRedis, evaluation_id: str) -> None:
        in_the_middle(stack, evaluation_id)
        stack.workers[0].send_signal(signal.SIGSTOP)
        stack.start_worker()
        stack.wait(evaluation_id, 60)
        stack.workers[0].send_signal(signal.SIGCONT)
        time.sleep(1)

    survive(tmp_path, database_url, fault)


def test_a_worker_told_to_stop_gives_its_work_back(tmp_path: Path, database_url: str | None) -> None:
    def fault(stack: Stack, _: PrivateRedis, evaluation_id: str) -> None:
        in_the_middle(stack, evaluation_id)
        stack.workers[0].terminate()
        assert stack.workers[0].wait(10) == 0
        stack.start_worker()

    survive(tmp_path, database_url, fault, max_attempts="1")
