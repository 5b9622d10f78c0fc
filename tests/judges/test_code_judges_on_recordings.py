"""The code judges on conversations that were really recorded: what is known to be wrong, and nothing else."""

import json
from collections import Counter

import pytest

from app.findings.model import Finding
from app.judges.contract import Bench
from app.judges.tools.argument_validity import ARGUMENT_VALIDITY
from app.judges.tools.tool_call_integrity import TOOL_CALL_INTEGRITY
from app.judges.tools.tool_redundancy import TOOL_REDUNDANCY
from app.transcripts.parsing import parse
from tests.judges.recordings import decide
from tests.shared import lines

pytestmark = pytest.mark.shared


async def _findings(name: str, bench: Bench) -> list[Finding]:
    found: list[Finding] = []
    for document in lines(name):
        transcript = parse(json.dumps(document).encode())
        for judge in (ARGUMENT_VALIDITY, TOOL_CALL_INTEGRITY, TOOL_REDUNDANCY):
            for decision in await decide(judge, transcript, bench):
                found += decision.findings
    return found


async def test_service_agents_reuse_ids_and_retry_what_was_refused(bench: Bench) -> None:
    found = await _findings("corpus/tau-bench/gpt-4o-airline.jsonl", bench)
    assert {finding.code for finding in found} <= {
        "duplicate_call_id",
        "retry_loop",
        "identical_repeat",
        "identical_recheck",
    }
    assert Counter(finding.code for finding in found)["retry_loop"] == 1


async def test_the_only_violations_of_gold_calls_come_from_a_mistake_in_their_catalogue(bench: Bench) -> None:
    found = await _findings("corpus/tooltalk/gold.jsonl", bench)
    assert found
    for finding in found:
        assert finding.code == "enum_violation"
        assert finding.evidence[1].pointer == "/parameters/properties/name/enum"
