"""The judge contract: everything a new judge has to provide, and everything it may use.

To add one: write ``judges/output/<name>.py`` or ``judges/tools/<name>.py`` with one ``Judge`` value, and add it to the
tuple in ``judges/catalogue.py``. The run loop asks ``subjects`` what there is to decide, skips what was decided before
(an earlier attempt's verdicts are checkpoints) and calls ``decide`` for each of the rest.

A judge is pure but for the two collaborators on its ``Bench``. It never stores, retries or logs; trouble with the
model arrives as ``JudgeModelError`` and is turned into an ``error`` verdict by the run loop.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.findings.model import Decision, Family, Level, Method, Scale, Severity, Subject, Usage
from app.transcripts.model import Json, Transcript


@dataclass(frozen=True, slots=True)
class Principle:
    """A rule the client's agent must follow."""

    name: str
    description: str
    importance: int | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A text the client vouches for."""

    title: str
    content: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What the client says about the agent that was recorded."""

    description: str | None = None
    principles: tuple[Principle, ...] = ()
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What a judge sees of one conversation."""

    transcript: Transcript
    nonce: str
    """HMAC of the conversation under a server secret; fences the transcript inside prompts."""
    target: Target | None = None
    scope: str = "all_turns"
    """``all_turns`` or ``last_turn``: which turns' subjects are decided; what is about the whole conversation always
    is. The run loop sees to it."""


class JudgeModelError(Exception):
    """The model's infrastructure failed.

    ``reason_code`` is one of rate_limited, timeout, provider_error, invalid_judge_output, context_overflow,
    bad_request, unauthorized, not_found.
    ``retry_after_seconds`` is set when the endpoint asks for a wait too long to sit out: the conversation then goes
    back to the queue. ``usage`` is what the failed attempts cost.
    """

    def __init__(
        self,
        reason_code: str,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.reason_code = reason_code
        self.retry_after_seconds = retry_after_seconds
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a judge model.

    The transcript part comes first and is the same for every dimension of a conversation, so that providers' prompt
    caches work; the question comes last.
    """

    dimension: str
    system: str
    transcript: str
    question: str
    answer_schema: Mapping[str, Json]
    """JSON Schema (strict structured output) of the answer."""
    max_output_tokens: int = 4096


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed answer: ``value`` satisfies the prompt's schema."""

    value: Mapping[str, Any]
    model: str
    prompt_sha256: str
    usage: Usage
    attempts: int = 1


class JudgeModel(Protocol):
    """A model that answers structured questions.

    Promises: the answer satisfies ``prompt.answer_schema`` or ``JudgeModelError`` is raised; transient trouble has
    been retried; usage counts every attempt; at most the configured number of calls are in flight per process.
    """

    async def ask(self, prompt: Prompt) -> Answer:
        """Return a validated answer.

        Raises:
            JudgeModelError: after retries, or at once where retrying cannot help.
        """
        ...


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """Where and how an instance breaks a JSON Schema."""

    instance_pointer: str
    """Of the value; of a missing property where it should be; of a property that should not be there its own."""
    schema_pointer: str
    keyword: str
    message: str


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """The result of holding one instance against one schema.

    ``unusable`` says why the schema cannot judge anything (does not compile, remote reference, ran out of time or
    memory); then ``violations`` is empty and means nothing.
    """

    violations: tuple[SchemaViolation, ...] = ()
    unusable: str | None = None
    unusable_code: str | None = None
    """schema_unusable, schema_timeout, schema_too_large."""


MAX_SCHEMA_BYTES = 256 * 1024
"""JSON text of the largest schema that is checked."""


class SchemaChecker(Protocol):
    """Holds instances against client-supplied JSON Schemas without ever hanging, fetching or reading a file."""

    async def check(self, jobs: Sequence[tuple[str, str]]) -> list[SchemaCheck]:
        """Check ``(schema JSON text, instance JSON text)`` pairs; one result a pair, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Bench:
    """What a judge may use. ``model`` is None when no endpoint is configured."""

    schemas: SchemaChecker
    model: JudgeModel | None = None


Subjects = Callable[[Case], Sequence[Subject]]
Decide = Callable[[Case, Subject, Bench], Awaitable[Decision]]


@dataclass(frozen=True, slots=True)
class Judge:
    """One dimension: its question, when it arises and how it is decided."""

    name: str
    family: Family
    version: str
    """Bump it when the prompt or the rule changes; every verdict stores it."""
    question: str
    level: Level
    method: Method
    subjects: Subjects
    decide: Decide
    severities: Mapping[str, Severity]
    """Every finding code it can give, with its severity."""
    scale: Scale = "binary"
    threshold: float | None = None
    default: bool = True
    labels: tuple[str, ...] = ()
    """The closed set a model chooses from, where one is asked."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Every reason code it can give for not scoring, with what it means."""
    details_schema: Mapping[str, Json] = field(default_factory=dict)
    """JSON Schema of ``verdict.details``; empty when it has none."""
