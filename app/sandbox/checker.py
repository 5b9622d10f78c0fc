"""The judges' ``SchemaChecker`` by way of the sandbox: what a schema may cost, and what is told when it is more."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.judges.contract import MAX_SCHEMA_BYTES, SchemaCheck, SchemaViolation
from app.sandbox.lanes import Fault, Sandbox
from app.sandbox.process import Task

_TOO_LARGE = SchemaCheck(
    unusable=f"the schema is larger than {MAX_SCHEMA_BYTES // 1024} KB", unusable_code="schema_too_large"
)
_FAULTS: Mapping[Fault, SchemaCheck] = {
    "timeout": SchemaCheck(
        unusable="holding the arguments against the schema takes too long", unusable_code="schema_timeout"
    ),
    "died": SchemaCheck(
        unusable="holding the arguments against the schema takes too much memory, or crashes the validator",
        unusable_code="schema_unusable",
    ),
}


class SandboxChecker:
    """Holds instances against client-supplied JSON Schemas without ever hanging, fetching or reading a file."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()

    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        """Check ``(schema JSON text, instance JSON text)`` pairs; one result a pair, in order.

        Raises:
            SandboxError: the sandbox cannot be started, or is closed.
        """
        tasks = [Task("schema", schema, instance) for schema, instance in jobs if not _is_too_large(schema)]
        replies = iter(await self._sandbox.run(tasks))
        return [_TOO_LARGE if _is_too_large(schema) else _result(next(replies)) for schema, _ in jobs]

    async def aclose(self) -> None:
        """End the sandbox; checks under way fail with ``SandboxError``."""
        await self._sandbox.aclose()


def _is_too_large(schema: str) -> bool:
    return len(schema) > MAX_SCHEMA_BYTES or (not schema.isascii() and len(schema.encode()) > MAX_SCHEMA_BYTES)


def _result(reply: Mapping[str, Any] | Fault) -> SchemaCheck:
    if isinstance(reply, str):
        return _FAULTS[reply]
    if "unusable" in reply:
        return SchemaCheck(unusable=reply["message"], unusable_code=reply["unusable"])
    return SchemaCheck(tuple(SchemaViolation(**violation) for violation in reply["violations"]))
