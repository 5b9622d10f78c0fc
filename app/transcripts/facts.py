"""What is unsound about a record of tool calls. Facts are kept for judges to weigh; none is a reason to refuse it.

Only calls that are judged count: a tool search or an approval that was left unanswered is the platform's affair.
"""

from collections.abc import Iterator, Mapping, Sequence

from app.transcripts.items import ITEM_TYPES
from app.transcripts.model import RecordFact, ToolCall
from app.transcripts.pairing import Pairing
from app.transcripts.tool_item import ToolItem

_PLUMBING = {spec.family for spec in ITEM_TYPES.values() if spec.plumbing}


def find_facts(items: Mapping[int, ToolItem], calls: Sequence[ToolCall], pairing: Pairing) -> list[RecordFact]:
    """Return the facts in the order of the events they are about.

    Args:
        items: the tool items of a conversation, by event.
        calls: its calls.
        pairing: what answers what.
    """
    found = [*_about_calls(items, calls, pairing), *_about_outputs(items, calls, pairing)]
    return sorted(found, key=lambda fact: fact.event)


def _about_calls(items: Mapping[int, ToolItem], calls: Sequence[ToolCall], pairing: Pairing) -> Iterator[RecordFact]:
    repeated = set(pairing.repeated)
    for number, call in enumerate(calls):
        if call.plumbing:
            continue
        item = items[call.event]
        if call.tool_name is None:
            message = f"a {item.entry.item['type']} item names no tool"
            yield RecordFact("malformed_call", call.event, message, number)
        if call.event in repeated:
            message = "an earlier call carries the same id; outputs were paired in order"
            yield RecordFact("duplicate_call_id", call.event, message, number, item.id_pointer)
        if call.output_event is None and item.spec.role == "call":
            yield RecordFact("call_without_output", call.event, "no output is recorded for it", number, item.id_pointer)


def _about_outputs(items: Mapping[int, ToolItem], calls: Sequence[ToolCall], pairing: Pairing) -> Iterator[RecordFact]:
    number_of = {call.event: number for number, call in enumerate(calls)}
    call_of = {output: call for call, output in pairing.outputs.items()}
    unsound = [(event, "output_before_call", "it stands before the call it answers") for event in pairing.early]
    unsound += [(event, "second_output", "its call was answered before") for event in pairing.second]
    unsound += [(event, "orphan_output", "it answers no recorded call") for event in pairing.orphans]
    for event, code, message in unsound:
        item = items[event]
        if item.spec.family in _PLUMBING:
            continue
        call = call_of.get(event, pairing.second.get(event))
        number = None if call is None else number_of.get(call)
        yield RecordFact(code, event, message, number, item.id_pointer)
