"""What is lost on the way is done all the same, and once: workers killed, Redis emptied, Redis away."""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis as redis_client

from tests.databases import throwaway_postgres
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


def in_the_middle(stack: Stack, evaluation_id: str, completed: int = 1) -> None:
    """Return when some conversations have ended; most have not, at a worker's pace of 150 ms a question."""
    deadline = time.monotonic() + 30
    while True:
        progress = stack.get(f"{FORENSIC}/{evaluation_id}")["progress"]
        if progress["completed"] >= completed:
            assert progress["completed"] < CONVERSATIONS, "the fault comes too late to hit anything"
            return
        assert time.monotonic() < deadline, progress
        time.sleep(0.05)


@dataclass
class Scene:
    """A stack to break, and what an undisturbed run of the body decides."""

    stack: Stack
    redis: PrivateRedis
    undisturbed: list[tuple[Any, ...]]

    def submit(self) -> str:
        """Submit the body with one worker alive, and return the evaluation's id."""
        if all(worker.poll() is not None for worker in self.stack.workers):
            self.stack.start_worker()
        evaluation_id: str = self.stack.submit(BODY).json()["id"]
        return evaluation_id

    def survived(self, evaluation_id: str) -> None:
        """Check that the evaluation ended as if nothing had happened."""
        assert examined(self.stack, evaluation_id) == self.undisturbed
        assert len(self.undisturbed) > CONVERSATIONS * 6

    @property
    def worker(self) -> subprocess.Popen[bytes]:
        """The worker that lives."""
        return next(worker for worker in self.stack.workers if worker.poll() is None)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Run a stack whose judge model takes its time, so that faults hit in the middle."""
    with contextlib.ExitStack() as enter:
        url = enter.enter_context(throwaway_postgres()) if request.param == "postgres" else None
        stub = enter.enter_context(stub_process(latency_ms=150))
        redis = enter.enter_context(private_redis())
        stack = enter.enter_context(
            running(
                tmp_path_factory.mktemp(request.param), database_url=url, redis_url=redis.url,
                judge_base_url=stub.base_url, judge_api_key="none", judge_model="stub", judge_concurrency="4",
                worker_max_jobs="4", lease_seconds="2", max_attempts="2",
            )
        )  # fmt: skip
        yield Scene(stack, redis, examined(stack, stack.submit(BODY).json()["id"]))


def test_a_killed_worker_is_replaced(scene: Scene) -> None:
    evaluation_id = scene.submit()
    in_the_middle(scene.stack, evaluation_id)
    scene.worker.send_signal(signal.SIGKILL)
    scene.stack.start_worker()
    scene.survived(evaluation_id)


def test_redis_forgets_everything(scene: Scene) -> None:
    evaluation_id = scene.submit()
    in_the_middle(scene.stack, evaluation_id)
    client = redis_client.Redis.from_url(scene.redis.url)
    assert client.keys("arq:job:*")
    client.flushall()
    scene.survived(evaluation_id)


def test_redis_is_away_while_a_request_comes_in(scene: Scene) -> None:
    scene.redis.stop()
    started = time.monotonic()
    evaluation_id = scene.submit()
    assert time.monotonic() - started < 5
    time.sleep(0.5)
    scene.redis.start()
    scene.survived(evaluation_id)


def test_redis_dies_in_the_middle_and_stays_dead(scene: Scene) -> None:
    evaluation_id = scene.submit()
    in_the_middle(scene.stack, evaluation_id)
    scene.redis.stop()
    scene.survived(evaluation_id)
    scene.redis.start()


# A stopped writer holds SQLite's one lock until it wakes, so there nobody could replace it.
@pytest.mark.parametrize("scene", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_a_worker_that_slept_past_its_lease_writes_nothing(scene: Scene) -> None:
    evaluation_id = scene.submit()
    in_the_middle(scene.stack, evaluation_id)
    sleeper = scene.worker
    sleeper.send_signal(signal.SIGSTOP)
    scene.stack.start_worker()
    scene.stack.wait(evaluation_id, 60)
    sleeper.send_signal(signal.SIGCONT)
    time.sleep(1)
    scene.survived(evaluation_id)
    sleeper.terminate()
    assert sleeper.wait(20) == 0


def test_a_worker_told_to_stop_gives_its_work_back(scene: Scene) -> None:
    evaluation_id = scene.submit()
    for completed in (1, 4, 7):  # more often than a conversation has attempts
        in_the_middle(scene.stack, evaluation_id, completed)
        worker = scene.worker
        worker.terminate()
        assert worker.wait(20) == 0
        scene.stack.start_worker()
    scene.survived(evaluation_id)
