from typing import Any

import pytest

from app.findings.model import Decision
from app.judges.tools.tool_call_integrity import TOOL_CALL_INTEGRITY
from app.transcripts.model import Transcript
from tests.judges.recordings import call, decide, output, recorded, said, user


async def _only(transcript: Transcript) -> Decision:
    (decision,) = await decide(TOOL_CALL_INTEGRITY, transcript)
    return decision


async def test_a_sound_record_passes() -> None:
    decision = await _only(recorded(call(id_="a"), call(id_="b"), output(id_="b"), output(id_="a")))
    assert decision.passed is True
    assert decision.findings == ()
    assert decision.rationale.startswith("2 tool calls recorded")


@pytest.mark.parametrize(
    ("items", "code", "event", "cited"),
    [
        ([output(id_="a"), call(id_="a")], "output_before_call", 0, ["a", "get_stock"]),
        ([call(id_="a"), user()], "call_without_output", 0, ["get_stock"]),
        ([call(None, '{"a": 1}', "a"), output(id_="a")], "malformed_call", 0, ['{"a": 1}']),
        ([call(id_="a"), output(id_="a"), output('"other"', id_="a")], "second_output", 2, ["a", "get_stock"]),
    ],
)
async def test_an_unsound_record_fails_and_shows_where(
    items: list[dict[str, Any]], code: str, event: int, cited: list[str]
) -> None:
    decision = await _only(recorded(*items))
    assert decision.passed is False
    (finding,) = decision.findings
    assert (finding.code, finding.event) == (code, event)
    assert [place.quote for place in finding.evidence] == cited


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([call(id_="a"), output(id_="a"), call(id_="a"), output(id_="a")], "duplicate_call_id"),
        ([output(id_="lost"), call(id_="a"), output(id_="a")], "orphan_output"),
    ],
)
async def test_what_may_be_usual_is_only_remarked(items: list[dict[str, Any]], code: str) -> None:
    decision = await _only(recorded(*items))
    assert decision.passed is True
    assert [(finding.code, finding.severity) for finding in decision.findings] == [(code, "info")]
    assert "Remarks:" in decision.rationale


async def test_one_id_used_often_is_one_remark() -> None:
    items = [item for _ in range(20) for item in (call(id_="a"), output(id_="a"))]
    decision = await _only(recorded(*items))
    (finding,) = decision.findings
    assert "19 calls" in finding.description
    *repeats, first = finding.evidence
    assert [place.event for place in repeats] == [2, 4, 6, 8, 10]
    assert (first.event, first.role) == (0, "support")


async def test_the_absence_of_an_output_is_context_and_the_end_of_a_recording_is_told() -> None:
    (finding,) = (await _only(recorded(call(id_="a"), user()))).findings
    assert [place.role for place in finding.evidence] == ["context"]
    transcript = recorded(said(), call(id_="a"))
    assert "ends with this call" not in (await _only(transcript)).findings[0].description


async def test_very_many_faults_are_counted_and_the_first_are_shown() -> None:
    decision = await _only(recorded(*(call(id_=f"c{n}") for n in range(200))))
    assert len(decision.findings) == 50
    assert "(200 times), of which 50 are shown" in decision.rationale


async def test_a_conversation_without_calls_has_no_verdict() -> None:
    assert await decide(TOOL_CALL_INTEGRITY, recorded(user(), output(id_="lost"))) == []
