"""Do the arguments of a call satisfy the schema of the tool it calls?

Code decides. A call's arguments are JSON in a string; they are checked as the agent wrote them, in the sandbox, and
every violation is cited in the agent's own text, beside the part of the schema that it breaks. Nothing is repaired:
an optional value passed as null is a violation unless the schema admits null, however common that is.

The declared schema is the yardstick. If it is wrong, so is the finding, which therefore shows the schema's words too.
Where there is no schema, or one that judges nothing, nothing is scored: an unchecked call has not passed.
"""

import re
from collections.abc import Mapping, Sequence

from app.findings.model import Decision, Evidence, Finding, Subject, failed, not_applicable, not_scored, passed
from app.judges.contract import Bench, Case, Judge, SchemaViolation
from app.judges.question import Fault
from app.judges.reporting import count, report, severities, shown
from app.judges.tools.argument_places import argument_place
from app.judges.tools.calls import arguments_text, call_of, call_subjects
from app.judges.tools.places import call_place, short_cite
from app.judges.tools.tool_schema import schema_place, schema_text
from app.transcripts import pointer as pointers
from app.transcripts.model import Json, Tool, ToolCall, Transcript

FAULTS: Mapping[str, Fault] = {
    "args_unparsable": Fault(
        "high",
        "The arguments are not a JSON object",
        "The tool cannot have received what the agent meant: whatever ran, it ran on a guess or not at all.",
    ),
    "missing_required_argument": Fault(
        "high",
        "A required argument is missing",
        "The tool cannot do its work without it; most reject the call, some act on a default nobody chose.",
    ),
    "wrong_argument_type": Fault(
        "high",
        "An argument has the wrong type",
        "The tool rejects the call or silently reads the value as something else.",
    ),
    "enum_violation": Fault(
        "high",
        "An argument is not one of the allowed values",
        "The tool knows no such option: it rejects the call or falls back to another one.",
    ),
    "constraint_violation": Fault(
        "high",
        "An argument breaks a constraint of its schema",
        "The value lies outside of what the tool is built for: a limit, a pattern, a required combination.",
    ),
    "unexpected_argument": Fault(
        "medium",
        "The tool has no such argument",
        "A strict tool rejects the call; another ignores the value, so what the agent asked for is not what was done.",
    ),
    "format_violation": Fault(
        "low",
        "An argument is not in the declared format",
        "Many tools read it all the same, but the next one may misread it: a date, an address or an id.",
    ),
}

_CODES = {
    "required": "missing_required_argument",
    "dependentRequired": "missing_required_argument",
    "dependencies": "missing_required_argument",
    "type": "wrong_argument_type",
    "additionalProperties": "unexpected_argument",
    "unevaluatedProperties": "unexpected_argument",
    "enum": "enum_violation",
    "const": "enum_violation",
    "format": "format_violation",
}
"""By keyword of the schema; any other keyword is a constraint."""

_REASONS = {
    "builtin_tool": "The platform's own tools publish no schema; it checks their arguments itself.",
    "free_text_tool": "The tool takes free text, which has no schema.",
    "no_tool_catalogue": "The recording does not say which tools the agent could have called, so no schema is known.",
    "unknown_tool": "The tool called is in no catalogue of the conversation, so its schema is unknown.",
    "no_schema": "The catalogue names the tool but gives no schema for its arguments.",
    "empty_schema": "The schema allows anything, so satisfying it says nothing.",
    "schema_unusable": "The schema is broken, refers to something outside of it, or cannot be evaluated.",
    "schema_timeout": "Holding the arguments against the schema takes too long.",
    "schema_too_large": "The schema is larger than what is checked.",
}

_SHOWN = 5
"""Places named in a rationale."""
_INDEX = re.compile(r"/\d+(?=/|$)")


async def _decide(case: Case, subject: Subject, bench: Bench) -> Decision:
    call = call_of(case, subject)
    if call.kind == "custom":
        return not_applicable("free_text_tool", f"{_name(call)} takes free text.")
    if call.kind not in ("function", "mcp"):
        return not_applicable("builtin_tool", f"{_name(call)} is a tool of the platform.")
    if call.arguments_error is not None:
        return _unparsable(case.transcript, call, call.arguments_error)
    if call.tool is None or call.tool.parameters is None:
        return _without_schema(case.transcript, call)
    if call.tool.parameters in ({}, True):
        return not_scored("empty_schema", f"The schema of {_name(call)} allows anything.")
    return await _against_schema(case.transcript, call, call.tool, bench)


def _unparsable(transcript: Transcript, call: ToolCall, problem: str) -> Decision:
    description = f"What was passed to {_name(call)} cannot be read as arguments: {problem}."
    evidence = [_raw_arguments(transcript, call) or call_place(transcript, call, "violation")]
    finding = report(FAULTS, "args_unparsable", description, evidence, event=call.event, turn=call.turn)
    return failed(description, [finding])


def _raw_arguments(transcript: Transcript, call: ToolCall) -> Evidence | None:
    return short_cite(transcript, transcript.source, call.event, call.arguments_pointer, "violation")


def _without_schema(transcript: Transcript, call: ToolCall) -> Decision:
    if call.tool is not None:
        return not_scored("no_schema", f"The catalogue gives no schema for {_name(call)}.")
    if not transcript.catalogue_declared:
        return not_scored("no_tool_catalogue", "The recording does not say which tools the agent could have called.")
    return not_scored("unknown_tool", f"{_name(call)} is in no catalogue of this conversation.")


async def _against_schema(transcript: Transcript, call: ToolCall, tool: Tool, bench: Bench) -> Decision:
    schema = schema_text(transcript, tool)
    if schema is None:
        return not_scored("schema_too_large", f"The schema of {_name(call)} is too large to be checked.")
    (result,) = await bench.schemas.check([(schema, arguments_text(transcript, call))])
    if result.unusable is not None:
        code = result.unusable_code or "schema_unusable"
        return not_scored(code, f"The schema of {_name(call)} cannot judge this call: {result.unusable}.")
    if result.violations:
        return _violated(transcript, call, tool, result.violations)
    return passed(_satisfied(call, tool.parameters))


def _violated(transcript: Transcript, call: ToolCall, tool: Tool, violations: Sequence[SchemaViolation]) -> Decision:
    groups: dict[tuple[str, str], list[SchemaViolation]] = {}
    for violation in violations:
        # The same mistake in each element of a list is one mistake.
        key = (_INDEX.sub("/*", violation.instance_pointer), violation.keyword)
        groups.setdefault(key, []).append(violation)
    findings = [_finding(transcript, call, tool, group) for group in groups.values()]
    shown = "; ".join(_told(group[0]) for group in list(groups.values())[:_SHOWN])
    more = f"; and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return failed(f"{count(len(groups), 'violation')} of the schema of {_name(call)}: {shown}{more}.", findings)


def _finding(transcript: Transcript, call: ToolCall, tool: Tool, group: Sequence[SchemaViolation]) -> Finding:
    first = group[0]
    code = _code(first)
    more = f", and the same in {count(len(group) - 1, 'other place')}" if len(group) > 1 else ""
    return report(
        FAULTS,
        code,
        f"{_name(call)}: {_told(first)}{more}.",
        [_argument(transcript, call, first, code), _schema_place(transcript, tool, first)],
        event=call.event,
        turn=call.turn,
    )


def _argument(transcript: Transcript, call: ToolCall, violation: SchemaViolation, code: str) -> Evidence:
    if code == "missing_required_argument":
        around, _, _ = violation.instance_pointer.rpartition("/")
        return argument_place(transcript, call, around, "context")
    return argument_place(
        transcript, call, violation.instance_pointer, "violation", with_key=code == "unexpected_argument"
    )


def _schema_place(transcript: Transcript, tool: Tool, violation: SchemaViolation) -> Evidence | None:
    """Cite the words of the schema that are broken; of a list of required names the one that is missing."""
    place = violation.schema_pointer
    if violation.keyword == "required":
        name = pointers.split(violation.instance_pointer)[-1:]
        required = _value_at(tool.parameters, place)
        if name and isinstance(required, list) and name[0] in required:
            place = f"{place}/{required.index(name[0])}"
    return schema_place(transcript, tool, place)


def _value_at(value: Json, pointer: str) -> Json:
    for token in pointers.split(pointer):
        number = pointers.position(token) if isinstance(value, list) else None
        if isinstance(value, dict):
            value = value.get(token)
        else:
            value = value[number] if number is not None and number < len(value) else None
    return value


def _told(violation: SchemaViolation) -> str:
    place = violation.instance_pointer
    if _code(violation) in ("missing_required_argument", "unexpected_argument"):
        around, _, _ = place.rpartition("/")  # the message names the argument itself
        return f"{violation.message} in {shown(around)}" if around else violation.message
    return f"{shown(place, 'the arguments')}: {violation.message}"


def _code(violation: SchemaViolation) -> str:
    return _CODES.get(violation.keyword, "constraint_violation")


def _satisfied(call: ToolCall, schema: Json) -> str:
    required = schema.get("required") if isinstance(schema, dict) else None
    given = count(len(call.arguments), "argument")
    if not isinstance(required, list) or not required:
        return f"{_name(call)} requires no argument; the {given} given satisfy its schema."
    return (
        f"{len(required)} of {count(len(required), 'required argument')} of {_name(call)} present; "
        f"the {given} given satisfy its schema."
    )


def _name(call: ToolCall) -> str:
    return shown(call.tool_name)


ARGUMENT_VALIDITY = Judge(
    name="argument_validity",
    family="tool",
    version="1",
    question="Do the arguments of the call satisfy the JSON Schema of the tool?",
    level="call",
    method="deterministic",
    subjects=call_subjects,
    decide=_decide,
    severities=severities(FAULTS),
    reasons=_REASONS,
)
