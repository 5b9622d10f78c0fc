import asyncio
from collections.abc import Sequence

import pytest

from app.judges.contract import SchemaCheck
from app.judges.tools import schema_patience
from app.judges.tools.schema_patience import MOST_OVERRUNS, PatientSchemas

SLOW = SchemaCheck(unusable="too long", unusable_code="schema_timeout")


class _Schemas:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.checked = 0

    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        self.checked += len(jobs)
        await asyncio.sleep(self.seconds)
        return [SchemaCheck() if schema == "good" else SLOW for schema, _ in jobs]


async def test_after_many_overruns_a_conversation_is_not_tried_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_patience, "_OVERRUN_SECONDS", 0.001)
    real = _Schemas(0.002)
    schemas = PatientSchemas(real)
    for _ in range(MOST_OVERRUNS + 5):
        (result,) = await schemas.check([("bad", "{}")])
        assert result.unusable_code == "schema_timeout"
    assert real.checked == MOST_OVERRUNS
    assert (await PatientSchemas(real).check([("good", "{}")])) == [SchemaCheck()]


async def test_what_is_broken_but_quick_costs_no_patience() -> None:
    schemas = PatientSchemas(_Schemas(0))
    await schemas.check([("bad", "{}")] * 500)
    assert await schemas.check([("good", "{}"), ("bad", "{}")]) == [SchemaCheck(), SLOW]


async def test_only_a_few_checks_of_a_conversation_are_under_way_at_once() -> None:
    under_way = most = 0

    class Counting:
        async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            return [SchemaCheck()] * len(jobs)

    schemas = PatientSchemas(Counting())
    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(schemas.check([("good", "{}")]))
    assert 1 < most <= 8
