"""Tool calls: the items that ask and the items that answer, brought together.

An MCP call that needed approval is up to three items (request, answer, call) and still one decision of the agent: one
call, at the event of the request, with the result of the ``mcp_call``. A request that was denied or never answered is
plumbing that came to nothing, not a failure.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.transcripts.arguments import Arguments
from app.transcripts.catalogue import Catalogue
from app.transcripts.facts import find_facts
from app.transcripts.model import Outcome, RecordFact, ToolCall
from app.transcripts.outputs import Output
from app.transcripts.pairing import Step, pair
from app.transcripts.tool_item import ToolItem


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a conversation, what is unsound about them, and the items that only execute an approved call."""

    calls: tuple[ToolCall, ...]
    facts: tuple[RecordFact, ...]
    executions: frozenset[int]
    orphans: tuple[int, ...]
    """Outputs that answer no recorded call."""


def build_calls(items: Sequence[ToolItem], catalogue: Catalogue) -> Calls:
    """Bring the calls and outputs of a conversation together; ``items`` are in order."""
    by_event = {item.event: item for item in items}
    pairing = pair([_step(item) for item in items if item.spec.role != "both"])
    executions = _executions(items)
    executed = frozenset(executions.values())
    batches = _batches(items)
    calls = []
    for item in items:
        if item.arguments is None or item.event in executed:
            continue
        if item.event in executions:
            execution = by_event[executions[item.event]]
            calls.append(replace(_call(item, execution, batches, catalogue), kind="mcp", plumbing=False))
        elif item.spec.role == "both":
            calls.append(_call(item, item, batches, catalogue))
        else:
            calls.append(_call(item, by_event.get(pairing.outputs.get(item.event, -1)), batches, catalogue))
    return Calls(tuple(calls), tuple(find_facts(by_event, calls, pairing)), executed, tuple(pairing.orphans))


def _call(item: ToolItem, answer: ToolItem | None, batches: Mapping[int, int], catalogue: Catalogue) -> ToolCall:
    arguments = item.arguments or Arguments()
    output = (answer and answer.output) or Output()
    server_label = item.entry.named("server_label")
    recorded = answer is not None and (answer is not item or output.available)
    return ToolCall(
        event=item.event,
        output_event=answer.event if answer is not None and recorded else None,
        call_id=item.label("call_id", "id")[1],
        tool_name=item.name,
        kind=item.spec.kind,
        turn=item.turn,
        arguments=arguments.value,
        arguments_raw=arguments.raw,
        arguments_pointer=arguments.pointer,
        arguments_error=arguments.error,
        output=output.value,
        output_pointer=output.pointer,
        output_available=output.available,
        outcome=_outcome(output),
        error=output.error or output.suspicion,
        namespace=item.entry.named("namespace"),
        server_label=server_label,
        parent_call_id=item.parent_call_id,
        plumbing=item.spec.plumbing,
        batch=batches[item.event],
        tool=catalogue.resolve(item.name, item.spec.kind, server_label),
    )


def _outcome(output: Output) -> Outcome:
    if output.denied:
        return "denied"
    if output.error is not None:
        return "failed"
    if not output.available:
        return "no_output"
    return "ok" if output.suspicion is None else "suspected_failure"


def _step(item: ToolItem) -> Step:
    if item.spec.role == "call":
        key = item.label("call_id", "id")[1]
        return Step(item.event, True, item.spec.family, key, item.label("id")[1], item.name)
    key_name, key = item.label(*item.spec.answers)
    return Step(item.event, False, item.spec.family, key, None, item.name, certain=key_name != "id")


def _executions(items: Sequence[ToolItem]) -> dict[int, int]:
    """Return which ``mcp_call`` item executes which request: the oldest one before it that has its id."""
    requests: dict[str | None, deque[int]] = {}
    executions: dict[int, int] = {}
    for item in items:
        _, key = item.label("id" if item.spec.kind == "approval" else "approval_request_id")
        if key is not None and item.spec.kind == "approval":
            requests.setdefault(key, deque()).append(item.event)
        elif item.spec.kind == "mcp" and requests.get(key):
            executions[requests[key].popleft()] = item.event
    return executions


def _batches(items: Sequence[ToolItem]) -> dict[int, int]:
    """Number the calls so that those issued before anything came back share a number."""
    batches: dict[int, int] = {}
    batch, returned, issuer = 0, False, None
    for item in items:
        if item.arguments is not None:
            same_issuer = issuer in (None, (item.turn, item.parent_call_id))
            batch += returned or not same_issuer
            issuer = (item.turn, item.parent_call_id)
            batches[item.event] = batch
        returned = item.output is not None
    return batches
