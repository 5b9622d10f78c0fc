from typing import Any

import pytest

from app.findings.model import Decision
from app.judges.tools.tool_redundancy import TOOL_REDUNDANCY
from tests.judges.recordings import call, called, decide, output, recorded, tool, user

STOCK = called("get_stock", {"sku": "A1", "site": 2}, '{"stock": 3, "place": "aisle 14"}')
REFUSED = called("book_room", {"room": 4}, "Error: the amount paid does not add up")
TIMED_OUT = called("book_room", {"room": 4}, "Error: upstream timed out")
WRITTEN = called("update_stock", {"sku": "A1"}, '{"ok": true}')
READ = called("list_rooms", {}, '["blue", "green"]')


async def _only(*items: dict[str, Any]) -> Decision:
    (decision,) = await decide(TOOL_REDUNDANCY, recorded(user(), *items))
    return decision


async def _found(*items: dict[str, Any]) -> list[tuple[str, list[int | None]]]:
    """Return code and violating events of each finding."""
    decision = await _only(*items)
    return [
        (found.code, [place.event for place in found.evidence if place.role == "violation"])
        for found in decision.findings
    ]


async def test_the_same_question_again_is_a_repeat() -> None:
    decision = await _only(*STOCK, *READ, *STOCK)
    assert decision.passed is False
    (finding,) = decision.findings
    assert (finding.code, finding.severity, finding.event) == ("identical_repeat", "medium", 5)
    assert [(place.event, place.role) for place in finding.evidence] == [
        (5, "violation"),
        (1, "support"),
        (2, "support"),
        (6, "support"),
    ]
    assert "get_stock is called 2 times" in finding.description
    assert decision.rationale == "1 of 3 tool calls repeat an earlier one with nothing changed between."


async def test_arguments_are_compared_as_values() -> None:
    again = called("get_stock", '{ "site": 2, "sku": "\\u0041\\u0031" }', '{"place": "aisle 14", "stock": 3}')
    assert await _found(*STOCK, *again) == [("identical_repeat", [3])]


@pytest.mark.parametrize(
    "between",
    [
        WRITTEN,
        called("refresh", {}, "{}"),
        called("get_or_create_user", {}, "{}"),
        [call("update_stock", {"sku": "A1"})],
        [{"type": "local_shell_call", "call_id": "x", "action": {"type": "exec", "command": ["make"]}}],
    ],
)
async def test_after_something_that_may_have_changed_it_is_none(between: list[dict[str, Any]]) -> None:
    assert (await _only(*STOCK, *between, *STOCK)).passed is True


@pytest.mark.parametrize("between", [READ, REFUSED, called("searchRooms", {"q": 1}, "none")])
async def test_reading_and_failing_change_nothing(between: list[dict[str, Any]]) -> None:
    assert await _found(*STOCK, *between, *STOCK) == [("identical_repeat", [5])]


@pytest.mark.parametrize(
    "again",
    [
        called("get_stock", {"sku": "A1", "site": 3}, '{"stock": 3, "place": "aisle 14"}'),
        called("get_stock", {"sku": "A1", "site": 2}, '{"stock": 2, "place": "aisle 14"}'),
        called("find_stock", {"sku": "A1", "site": 2}, '{"stock": 3, "place": "aisle 14"}'),
    ],
)
async def test_other_arguments_results_or_tools_are_none(again: list[dict[str, Any]]) -> None:
    assert (await _only(*STOCK, *again)).passed is True


@pytest.mark.parametrize(
    "items",
    [
        [*STOCK, user("Check again, please."), *STOCK],
        called("get_job_status", {"job": 1}, "still there, nothing new to tell") * 2,
        called("get_job", {"job": 1}, '{"state": "in progress", "since": "ten minutes"}') * 2,
        TIMED_OUT * 2,
        called("frobnicate", {"a": 1}, '{"long": "result with more than an acknowledgement in it"}') * 2,
        [{"type": "compaction", "encrypted_content": "x"}, *STOCK, *STOCK],
    ],
)
async def test_where_a_reason_is_at_hand_it_weighs_little(items: list[dict[str, Any]]) -> None:
    decision = await _only(*items)
    assert [(found.code, found.severity) for found in decision.findings] == [("identical_recheck", "low")]


async def test_acting_twice_is_not_asking_twice() -> None:
    assert (await _only(*called("press_key", {"key": "tab"}, "ok") * 3)).passed is True
    assert (await _only(*called("add_item", {"sku": "A1"}, '{"ok": true}') * 2)).passed is True


async def test_a_retry_loop_swallows_its_repeats() -> None:
    assert await _found(*REFUSED * 4) == [("retry_loop", [3, 5, 7])]
    assert await _found(*REFUSED * 2) == [("identical_repeat", [3])]
    assert await _found(*REFUSED, *WRITTEN, *REFUSED, *REFUSED) == [("identical_repeat", [7])]
    changing = [item for n in range(3) for item in called("book_room", {"room": 4}, f"Error: attempt {n} refused")]
    assert await _found(*changing) == [("retry_loop", [3, 5])]
    assert await _found(*TIMED_OUT * 3) == [("identical_recheck", [3, 5])]


async def test_a_loop_does_not_reach_across_turns() -> None:
    assert await _found(*REFUSED, user(), *REFUSED, user(), *REFUSED) == [("identical_recheck", [4, 7])]


async def test_a_long_run_is_one_finding() -> None:
    decision = await _only(*STOCK * 9)
    (finding,) = decision.findings
    assert "9 times" in finding.description
    assert "and 4 more" in finding.description
    assert decision.rationale.startswith("8 of 9")


async def test_parallel_twins_are_repeats() -> None:
    twins = [
        call("get_stock", {"sku": "A"}, "a"),
        call("get_stock", {"sku": "A"}, "b"),
        output(id_="a"),
        output(id_="b"),
    ]
    assert await _found(*twins) == [("identical_repeat", [2])]


async def test_a_single_call_cannot_be_repeated() -> None:
    decision = await _only(*STOCK)
    assert (decision.status, decision.reason_code) == ("not_applicable", "single_call")


async def test_without_results_nothing_is_known_about_equal_calls() -> None:
    unanswered = await _only(call("get_stock", id_="a"), call("get_stock", id_="b"))
    assert (unanswered.status, unanswered.reason_code) == ("not_scored", "output_not_recorded")
    assert (await _only(call("get_stock", id_="a"), call("get_rooms", id_="b"))).passed is True


async def test_screens_are_never_the_same_twice() -> None:
    click = {"type": "computer_call", "call_id": "c1", "action": {"type": "scroll", "dy": 9}, "status": "completed"}
    shot = {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "file_id": "f"}}
    assert (await _only(click, shot, click, shot, click, shot)).passed is True


async def test_thousands_of_calls_are_compared_too() -> None:
    items = [
        item for n in range(1500) for item in called("get_stock", {"sku": n % 1499}, f"there are {n % 1499} of it")
    ]
    (decision,) = await decide(TOOL_REDUNDANCY, recorded(user(), *items, tools=[tool()]))
    assert decision.rationale.startswith("1 of 1500")
