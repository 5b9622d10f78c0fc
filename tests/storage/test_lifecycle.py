"""The life of evaluations against a model of it that fits on a page: any order of steps, on both databases.

Leases are given for less than no time when they shall be found to have run out, so nothing here waits.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from app.evaluation.model import FINAL
from app.pipeline.values import Claim, EvaluationFilter, VerdictFilter
from app.storage.store import DatabaseStore
from tests.storage.making import (
    EVERYTHING,
    SECRET_KEY,
    SOME_VERDICTS,
    WORKSPACE,
    claim,
    conversation_ids,
    counts,
    finish,
    save,
    submit,
)
from tests.tallies import tally_of

MAX_ATTEMPTS = 2
NO_FILTER = EvaluationFilter()


@dataclass
class Expected:
    """What a conversation should be."""

    evaluation: str
    status: str = "queued"
    attempt: int = 0
    token: str | None = None
    ran_out: bool = False
    delayed: bool = False
    published: bool = False
    saved: set[int] = field(default_factory=set)


class Lifecycle(RuleBasedStateMachine):
    """Workers, zombies, reapers and clients in any order."""

    url = ""
    conversations = Bundle("conversations")
    evaluations = Bundle("evaluations")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = DatabaseStore(self.url, SECRET_KEY, pool_size=1)
        self.run(self._clear())
        self.model: dict[str, Expected] = {}
        self.webhooks: set[str] = set()
        self.started: set[str] = set()

    def run(self, steps: Any) -> Any:
        return self.runner.run(steps)

    async def _clear(self) -> None:
        async with self.store.begin() as tx:
            await tx.ensure_key("0" * 64, name="test", workspace_id=WORKSPACE, scopes=[])
        async with self.store.read() as reader:
            there = (await reader.evaluations(WORKSPACE, NO_FILTER, EVERYTHING)).data
        for one in there:
            async with self.store.begin() as tx:
                await tx.delete(WORKSPACE, one.id)

    def teardown(self) -> None:
        self.run(self.store.aclose())
        self.runner.close()

    @rule(target=evaluations, number=st.integers(1, 3), webhook=st.booleans())
    def submit(self, number: int, webhook: bool) -> str:
        evaluation_id: str = self.run(submit(self.store, number, webhook=webhook))
        for one in self.run(conversation_ids(self.store, evaluation_id)):
            self.model[one] = Expected(evaluation_id)
        if webhook:
            self.webhooks.add(evaluation_id)
        return evaluation_id

    @rule(target=conversations, evaluation_id=evaluations)
    def pick(self, evaluation_id: str) -> Any:
        return multiple(*(one for one, it in self.model.items() if it.evaluation == evaluation_id))

    @rule(target=claims, conversation_id=conversations, runs_out=st.booleans())
    def claim(self, conversation_id: str, runs_out: bool) -> Any:
        held: Claim | None = self.run(claim(self.store, conversation_id, -1 if runs_out else 600))
        expected = self.model.get(conversation_id)
        free = expected is not None and (
            (expected.status == "queued" and not expected.delayed)
            or (expected.status == "in_progress" and expected.ran_out)
        )
        assert (held is not None) == free
        if held is None or expected is None:
            return multiple()
        expected.status, expected.attempt, expected.published = "in_progress", expected.attempt + 1, False
        expected.token, expected.ran_out = held.lease.token, runs_out
        self.started.add(expected.evaluation)
        assert held.attempt == expected.attempt
        assert held.done == {SOME_VERDICTS[number].key for number in expected.saved}
        return held

    def owned(self, held: Claim) -> Expected | None:
        """Return the conversation if the lease still counts."""
        expected = self.model.get(held.lease.conversation_id)
        return expected if expected is not None and expected.token == held.lease.token else None

    @rule(held=claims, runs_out=st.booleans())
    def beat(self, held: Claim, runs_out: bool) -> None:
        async def beat() -> bool:
            async with self.store.begin() as tx:
                return await tx.extend(held.lease, -1 if runs_out else 600)

        expected = self.owned(held)
        assert self.run(beat()) == (expected is not None)
        if expected is not None:
            expected.ran_out = runs_out

    @rule(held=claims, numbers=st.sets(st.integers(0, len(SOME_VERDICTS) - 1)))
    def save(self, held: Claim, numbers: set[int]) -> None:
        expected = self.owned(held)
        stored = self.run(save(self.store, held, [SOME_VERDICTS[number] for number in numbers]))
        assert stored == (expected is not None)
        if expected is not None:
            expected.saved |= numbers

    @rule(held=claims, burn=st.booleans(), delayed=st.booleans())
    def put_back(self, held: Claim, burn: bool, delayed: bool) -> None:
        async def put_back() -> bool:
            async with self.store.begin() as tx:
                return await tx.put_back(held.lease, delay_seconds=600 if delayed else 0, burn_attempt=burn)

        expected = self.owned(held)
        assert self.run(put_back()) == (expected is not None)
        if expected is not None:
            expected.status, expected.token, expected.delayed = "queued", None, delayed
            expected.attempt -= not burn

    @rule(held=consumes(claims))
    def finish(self, held: Claim) -> None:
        expected = self.owned(held)
        closing = self.run(finish(self.store, held))
        assert (closing is not None) == (expected is not None)
        if expected is not None:
            expected.status, expected.token = "completed", None
            assert closing.remaining == sum(
                it.status in {"queued", "in_progress"} and it.evaluation == expected.evaluation
                for it in self.model.values()
            )

    @rule(target=claims)
    def reap(self) -> Any:
        async def reap() -> list[Claim]:
            async with self.store.begin() as tx:
                return await tx.expired(max_attempts=MAX_ATTEMPTS, lease_seconds=600)

        taken = {held.lease.conversation_id: held for held in self.run(reap())}
        for one, it in self.model.items():
            if it.status == "in_progress" and it.ran_out:
                assert (one in taken) == (it.attempt >= MAX_ATTEMPTS)
                if one in taken:
                    it.token, it.ran_out = taken[one].lease.token, False
                else:
                    it.status, it.token, it.delayed = "queued", None, False
            else:
                assert one not in taken
        return multiple(*taken.values())

    @rule(window=st.integers(0, 4), forgotten=st.booleans())
    def publish(self, window: int, forgotten: bool) -> None:
        async def publish() -> list[str]:
            async with self.store.begin() as tx:
                return await tx.due(window=window, republish_after_seconds=-1 if forgotten else 600)

        ids = self.run(publish())
        ready = [one for one, it in self.model.items() if it.status == "queued" and not it.delayed]
        rung = {one for one, it in self.model.items() if it.status == "queued" and it.published}
        free = max(window - (0 if forgotten else len(rung)), 0)
        assert set(ids) <= set(ready) - (set() if forgotten else rung)
        assert len(ids) == min(free, len(set(ready) - (set() if forgotten else rung)))
        for one in ids:
            self.model[one].published = True

    @rule(evaluation_id=evaluations)
    def cancel(self, evaluation_id: str) -> None:
        async def cancel() -> str | None:
            async with self.store.begin() as tx:
                return await tx.cancel(WORKSPACE, evaluation_id)

        them = [it for it in self.model.values() if it.evaluation == evaluation_id]
        assert self.run(cancel()) == (self.status(evaluation_id) if them else None)
        for it in them:
            if it.status not in FINAL:
                it.status, it.token = "canceled", None

    @rule(evaluation_id=consumes(evaluations))
    def delete(self, evaluation_id: str) -> None:
        async def delete() -> bool:
            async with self.store.begin() as tx:
                return await tx.delete(WORKSPACE, evaluation_id)

        assert self.run(delete())
        self.model = {one: it for one, it in self.model.items() if it.evaluation != evaluation_id}
        self.webhooks.discard(evaluation_id)

    def status(self, evaluation_id: str) -> str:
        """Return what the states of its conversations make of an evaluation."""
        them = [it for it in self.model.values() if it.evaluation == evaluation_id]
        states = {it.status for it in them}
        if states <= FINAL:
            return "canceled" if "canceled" in states else "completed"
        return "in_progress" if evaluation_id in self.started else "queued"

    @invariant()
    def agree(self) -> None:
        self.run(self._agree())

    async def _agree(self) -> None:
        async with self.store.read() as reader:
            there = (await reader.evaluations(WORKSPACE, NO_FILTER, EVERYTHING)).data
            assert {one.id for one in there} == {it.evaluation for it in self.model.values()}
            for one in there:
                them = [it for it in self.model.values() if it.evaluation == one.id]
                states = Counter(it.status for it in them)
                progress = one.progress
                assert progress.total == len(them)
                for state in ("queued", "in_progress", "completed", "canceled", "failed"):
                    assert getattr(progress, state) == states[state], state
                assert one.finished == (set(states) <= FINAL) == (one.finished_at is not None)
                ended = [it for it in them if it.status in FINAL]
                assert one.tally == tally_of(SOME_VERDICTS[number] for it in ended for number in sorted(it.saved))
                verdicts = (await reader.verdicts(WORKSPACE, one.id, VerdictFilter(), EVERYTHING)).data
                assert len(verdicts) == sum(len(it.saved) for it in them)
                assert one.status == self.status(one.id)
        closed = {one.id for one in there if one.status == "completed"}
        assert await counts(self.store, ["deliveries"]) == {"deliveries": len(closed & self.webhooks)}


@pytest.mark.parametrize(("kind", "examples"), [("sqlite", 8), pytest.param("postgres", 5, marks=pytest.mark.postgres)])
def test_any_order_of_steps_keeps_every_promise(request: pytest.FixtureRequest, kind: str, examples: int) -> None:
    machine = type("Here", (Lifecycle,), {"url": request.getfixturevalue(kind)})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None, derandomize=True)
    )
