"""What the database holds. The migrations bring it about; a test proves that they and this page agree.

Text of clients and models is never indexed (a btree row of PostgreSQL holds 8 KB); where it must be unique, its hash
is. What is written again and again (counters, leases) lives apart from what is large and never changes.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    UniqueConstraint,
    and_,
    literal_column,
    text,
)

from app.findings.model import SEVERITIES
from app.findings.rollup import COUNT_KEYS
from app.storage.clock import Instant, Now
from app.storage.columns import Identifier, Json, Words

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

QUEUED: ColumnElement[str] = literal_column("'queued'")
IN_PROGRESS: ColumnElement[str] = literal_column("'in_progress'")
"""In the statement's text rather than parameters, else a planner cannot match the partial indices."""


def _id() -> Column[str]:
    return Column("id", Identifier, primary_key=True)


def _parent(name: str, target: str, **rest: Any) -> Column[str]:
    return Column(name, Identifier, ForeignKey(f"{target}.id", ondelete="CASCADE"), nullable=False, **rest)


def _words(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Words, nullable=null)


def _made(name: str = "created_at") -> Column[Any]:
    return Column(name, Instant, nullable=False, server_default=Now())


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _usage() -> list[Column[Any]]:
    return [_count("requests"), _count("prompt_tokens"), _count("cached_tokens"), _count("completion_tokens")]


workspaces = Table("workspaces", metadata, _id(), _made())

api_keys = Table(
    "api_keys",
    metadata,
    _id(),
    _parent("workspace_id", "workspaces", index=True),
    _words("name"),
    Column("key_sha256", Identifier, nullable=False, unique=True),
    Column("scopes", Json, nullable=False),
    _made(),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
)

evaluations = Table(
    "evaluations",
    metadata,
    _id(),
    _parent("workspace_id", "workspaces"),
    _words("name", null=True),
    Column("status", Identifier, nullable=False, server_default="queued"),
    Column("result", Identifier),
    Column("result_reason", Identifier),
    _made(),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("total", Integer, nullable=False),
    Column("remaining", Integer, nullable=False),
    Column("queued", Integer, nullable=False),
    *(
        Column(name, Integer, nullable=False, server_default=text("0"))
        for name in ("in_progress", "completed", "failed", "canceled")
    ),
    *(_count(f"verdicts_{key}") for key in COUNT_KEYS),
    *(_count(f"findings_{severity}") for severity in SEVERITIES),
    _count("failed_expectations"),
    *_usage(),
    _count("unpriced_requests"),
    Column("cost_usd", Float, nullable=False, server_default=text("0")),
    Column("by_dimension", Json, nullable=False),
    _words("webhook_url", null=True),
    Column("webhook_secret", LargeBinary),
    _count("revision"),
    CheckConstraint("remaining >= 0 AND queued >= 0 AND in_progress >= 0", name="counted"),
    CheckConstraint("remaining = queued + in_progress", name="remaining"),
    CheckConstraint("total = remaining + completed + failed + canceled", name="total"),
    Index("ix_evaluations_list", "workspace_id", "id"),
)

evaluation_requests = Table(
    "evaluation_requests",
    metadata,
    _parent("evaluation_id", "evaluations", primary_key=True),
    Column("judges", Json, nullable=False),
    Column("options", Json, nullable=False),
    Column("metadata", Json),
    Column("warnings", Json, nullable=False),
    Column("target", Json),
)
"""What was asked for: never written again, and perhaps large."""

conversations = Table(
    "conversations",
    metadata,
    _id(),
    Column("workspace_id", Identifier, nullable=False),
    _parent("evaluation_id", "evaluations"),
    Column("idx", Integer, nullable=False),
    Column("status", Identifier, nullable=False, server_default="queued"),
    Column("result", Identifier),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("lease_token", Identifier),
    Column("lease_until", Instant),
    _made("next_run_at"),
    Column("published_at", Instant),
    Column("format", Identifier, nullable=False),
    Column("sha256", Identifier, nullable=False),
    Column("stored_sha256", Identifier, nullable=False),
    Column("bytes", Integer, nullable=False),
    _words("client_id", null=True),
    Column("metadata", Json),
    Column("redactions", Json),
    Column("warnings", Json),
    CheckConstraint("(status = 'in_progress') = (lease_token IS NOT NULL)", name="leased"),
    UniqueConstraint("evaluation_id", "idx"),
)
"""A row in state queued is the work item."""
_queued = conversations.c.status == QUEUED
for _name, _columns, _where in (
    ("ix_conversations_due", (conversations.c.idx, conversations.c.id), _queued),
    (
        "ix_conversations_published",
        (conversations.c.published_at,),
        and_(_queued, conversations.c.published_at.is_not(None)),
    ),
    ("ix_conversations_leased", (conversations.c.lease_until,), conversations.c.status == IN_PROGRESS),
):
    Index(_name, *_columns, postgresql_where=_where, sqlite_where=_where)

conversation_bodies = Table(
    "conversation_bodies",
    metadata,
    _parent("conversation_id", "conversations", primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""zstd. Apart from the work item, so that claims and beats never rewrite it."""

verdicts = Table(
    "verdicts",
    metadata,
    _id(),
    Column("workspace_id", Identifier, nullable=False),
    Column("evaluation_id", Identifier, nullable=False),
    _parent("conversation_id", "conversations"),
    Column("idx", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("key_sha256", Identifier, nullable=False),
    *(_words(name) for name in ("dimension", "family", "judge_version", "level")),
    Column("turn", Integer),
    Column("event", Integer),
    _words("call_id", null=True),
    _words("expectation", null=True),
    _words("scale"),
    Column("threshold", Float),
    _words("status"),
    _words("reason_code", null=True),
    Column("passed", Boolean),
    _words("label", null=True),
    Column("score", Float),
    _words("rationale"),
    _words("method"),
    _words("model", null=True),
    _words("prompt_sha256", null=True),
    Column("coverage", Json),
    Column("votes", Json),
    Column("disputed", Boolean, nullable=False),
    Column("dropped_findings", Integer, nullable=False),
    Column("details", Json, nullable=False),
    *_usage(),
    Column("cost_usd", Float),
    Column("attempts", Integer, nullable=False),
    _made(),
    UniqueConstraint("conversation_id", "key_sha256"),
    Index("ix_verdicts_list", "evaluation_id", "idx", "position", "id"),
)

findings = Table(
    "findings",
    metadata,
    _id(),
    Column("workspace_id", Identifier, nullable=False),
    Column("evaluation_id", Identifier, nullable=False),
    _parent("verdict_id", "verdicts"),
    Column("ordinal", Integer, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    *(_words(name) for name in ("dimension", "family", "code", "severity")),
    Column("severity_rank", SmallInteger, nullable=False),
    *(_words(name) for name in ("title", "description", "why_it_matters")),
    Column("evidence", Json, nullable=False),
    Column("event", Integer),
    Column("turn", Integer),
    UniqueConstraint("verdict_id", "ordinal"),
    Index("ix_findings_list", "evaluation_id", "idx", "position", "id"),
)

deliveries = Table(
    "deliveries",
    metadata,
    _id(),
    _parent("evaluation_id", "evaluations"),
    Column("event_type", Identifier, nullable=False),
    Column("webhook_id", Identifier, nullable=False, unique=True),
    Column("state", Identifier, nullable=False, server_default="pending"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    _made("next_attempt_at"),
    _made(),
    UniqueConstraint("evaluation_id", "event_type"),
)
_pending = deliveries.c.state == literal_column("'pending'")
Index("ix_deliveries_due", deliveries.c.next_attempt_at, postgresql_where=_pending, sqlite_where=_pending)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _parent("workspace_id", "workspaces", primary_key=True),
    Column("key_sha256", Identifier, primary_key=True),
    Column("body_sha256", Identifier, nullable=False),
    _parent("evaluation_id", "evaluations", index=True),
    _made(),
)
