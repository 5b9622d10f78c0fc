"""Evaluations, their conversations, what was found about them, and who may ask.

Revision ID: 0001
Revises:
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Compared byte by byte; the default collation of a PostgreSQL may be slow and differ between machines.
IDENTIFIER = sa.Text().with_variant(sa.String(collation="C"), "postgresql")
INSTANT = sa.DateTime(timezone=True)
ZERO = sa.text("0")


def upgrade() -> None:
    _workspaces()
    _evaluations()
    _conversations()
    _verdicts()
    _findings()
    _others()


def downgrade() -> None:
    for table in (
        "idempotency_keys",
        "deliveries",
        "findings",
        "verdicts",
        "conversation_bodies",
        "conversations",
        "evaluation_requests",
        "evaluations",
        "api_keys",
        "workspaces",
    ):
        op.drop_table(table)


def _workspaces() -> None:
    op.create_table("workspaces", _identifier("id"), _now("created_at"), _primary("workspaces", "id"))
    op.create_table(
        "api_keys",
        _identifier("id"),
        _identifier("workspace_id"),
        _text("name"),
        _identifier("key_sha256"),
        _text("scopes"),
        _now("created_at"),
        sa.Column("revoked_at", INSTANT),
        sa.Column("last_used_at", INSTANT),
        _primary("api_keys", "id"),
        _child("api_keys", "workspace_id", "workspaces"),
        sa.UniqueConstraint("key_sha256", name="uq_api_keys_key_sha256"),
    )
    op.create_index("ix_api_keys_workspace_id", "api_keys", ["workspace_id"])


def _evaluations() -> None:
    op.create_table(
        "evaluations",
        _identifier("id"),
        _identifier("workspace_id"),
        _text("name", null=True),
        _identifier("status", server_default="queued"),
        _identifier("result", null=True),
        _identifier("result_reason", null=True),
        _now("created_at"),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        *(_integer(name) for name in ("total", "remaining", "queued")),
        *(_integer(name, server_default=ZERO) for name in ("in_progress", "completed", "failed", "canceled")),
        *(_count(f"verdicts_{key}") for key in ("passed", "failed", "not_applicable", "not_scored", "error")),
        *(_count(f"findings_{severity}") for severity in ("info", "low", "medium", "high", "critical")),
        _count("failed_expectations"),
        *_usage(),
        _count("unpriced_requests"),
        sa.Column("cost_usd", sa.Float(), nullable=False, server_default=ZERO),
        _text("by_dimension"),
        _text("webhook_url", null=True),
        sa.Column("webhook_secret", sa.LargeBinary()),
        _count("revision"),
        _primary("evaluations", "id"),
        _child("evaluations", "workspace_id", "workspaces"),
        sa.CheckConstraint("remaining >= 0 AND queued >= 0 AND in_progress >= 0", name=op.f("ck_evaluations_counted")),
        sa.CheckConstraint("remaining = queued + in_progress", name=op.f("ck_evaluations_remaining")),
        sa.CheckConstraint("total = remaining + completed + failed + canceled", name=op.f("ck_evaluations_total")),
    )
    op.create_index("ix_evaluations_list", "evaluations", ["workspace_id", "id"])
    op.create_table(
        "evaluation_requests",
        _identifier("evaluation_id"),
        _text("judges"),
        _text("options"),
        _text("metadata", null=True),
        _text("warnings"),
        _text("target", null=True),
        _primary("evaluation_requests", "evaluation_id"),
        _child("evaluation_requests", "evaluation_id", "evaluations"),
    )


def _conversations() -> None:
    op.create_table(
        "conversations",
        _identifier("id"),
        _identifier("workspace_id"),
        _identifier("evaluation_id"),
        _integer("idx"),
        _identifier("status", server_default="queued"),
        _identifier("result", null=True),
        _integer("attempt", server_default=ZERO),
        _identifier("lease_token", null=True),
        sa.Column("lease_until", INSTANT),
        _now("next_run_at"),
        sa.Column("published_at", INSTANT),
        *(_identifier(name) for name in ("format", "sha256", "stored_sha256")),
        _integer("bytes"),
        *(_text(name, null=True) for name in ("client_id", "metadata", "redactions", "warnings")),
        _primary("conversations", "id"),
        _child("conversations", "evaluation_id", "evaluations"),
        sa.CheckConstraint(
            "(status = 'in_progress') = (lease_token IS NOT NULL)", name=op.f("ck_conversations_leased")
        ),
        sa.UniqueConstraint("evaluation_id", "idx", name="uq_conversations_evaluation_id_idx"),
    )
    _partial_index("ix_conversations_due", "conversations", ["idx", "id"], "status = 'queued'")
    _partial_index(
        "ix_conversations_published",
        "conversations",
        ["published_at"],
        "status = 'queued' AND published_at IS NOT NULL",
    )
    _partial_index("ix_conversations_leased", "conversations", ["lease_until"], "status = 'in_progress'")
    op.create_table(
        "conversation_bodies",
        _identifier("conversation_id"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _primary("conversation_bodies", "conversation_id"),
        _child("conversation_bodies", "conversation_id", "conversations"),
    )
    if op.get_bind().dialect.name == "postgresql":  # it is compressed already
        op.execute("ALTER TABLE conversation_bodies ALTER COLUMN body SET STORAGE EXTERNAL")


def _verdicts() -> None:
    op.create_table(
        "verdicts",
        *(_identifier(name) for name in ("id", "workspace_id", "evaluation_id", "conversation_id")),
        _integer("idx"),
        _integer("position"),
        _identifier("key_sha256"),
        *(_text(name) for name in ("dimension", "family", "judge_version", "level")),
        sa.Column("turn", sa.Integer()),
        sa.Column("event", sa.Integer()),
        _text("call_id", null=True),
        _text("expectation", null=True),
        _text("scale"),
        sa.Column("threshold", sa.Float()),
        _text("status"),
        _text("reason_code", null=True),
        sa.Column("passed", sa.Boolean()),
        _text("label", null=True),
        sa.Column("score", sa.Float()),
        _text("rationale"),
        _text("method"),
        *(_text(name, null=True) for name in ("model", "prompt_sha256", "coverage", "votes")),
        sa.Column("disputed", sa.Boolean(), nullable=False),
        _integer("dropped_findings"),
        _text("details"),
        *_usage(),
        sa.Column("cost_usd", sa.Float()),
        _integer("attempts"),
        _now("created_at"),
        _primary("verdicts", "id"),
        _child("verdicts", "conversation_id", "conversations"),
        sa.UniqueConstraint("conversation_id", "key_sha256", name="uq_verdicts_conversation_id_key_sha256"),
    )
    op.create_index("ix_verdicts_list", "verdicts", ["evaluation_id", "idx", "position", "id"])


def _findings() -> None:
    op.create_table(
        "findings",
        *(_identifier(name) for name in ("id", "workspace_id", "evaluation_id", "verdict_id")),
        *(_integer(name) for name in ("ordinal", "idx", "position")),
        *(_text(name) for name in ("dimension", "family", "code", "severity")),
        sa.Column("severity_rank", sa.SmallInteger(), nullable=False),
        *(_text(name) for name in ("title", "description", "why_it_matters", "evidence")),
        sa.Column("event", sa.Integer()),
        sa.Column("turn", sa.Integer()),
        _primary("findings", "id"),
        _child("findings", "verdict_id", "verdicts"),
        sa.UniqueConstraint("verdict_id", "ordinal", name="uq_findings_verdict_id_ordinal"),
    )
    op.create_index("ix_findings_list", "findings", ["evaluation_id", "idx", "position", "id"])


def _others() -> None:
    op.create_table(
        "deliveries",
        *(_identifier(name) for name in ("id", "evaluation_id", "event_type", "webhook_id")),
        _identifier("state", server_default="pending"),
        _integer("attempts", server_default=ZERO),
        _now("next_attempt_at"),
        _now("created_at"),
        _primary("deliveries", "id"),
        _child("deliveries", "evaluation_id", "evaluations"),
        sa.UniqueConstraint("webhook_id", name="uq_deliveries_webhook_id"),
        sa.UniqueConstraint("evaluation_id", "event_type", name="uq_deliveries_evaluation_id_event_type"),
    )
    _partial_index("ix_deliveries_due", "deliveries", ["next_attempt_at"], "state = 'pending'")
    op.create_table(
        "idempotency_keys",
        *(_identifier(name) for name in ("workspace_id", "key_sha256", "body_sha256", "evaluation_id")),
        _now("created_at"),
        _primary("idempotency_keys", "workspace_id", "key_sha256"),
        _child("idempotency_keys", "workspace_id", "workspaces"),
        _child("idempotency_keys", "evaluation_id", "evaluations"),
    )
    op.create_index("ix_idempotency_keys_evaluation_id", "idempotency_keys", ["evaluation_id"])


def _identifier(name: str, *, null: bool = False, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, IDENTIFIER, nullable=null, **rest)


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _integer(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False, **rest)


def _count(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default=ZERO)


def _usage() -> list[sa.Column[Any]]:
    return [_count(name) for name in ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")]


def _now(name: str) -> sa.Column[Any]:
    sqlite = op.get_bind().dialect.name == "sqlite"
    default = "(strftime('%Y-%m-%d %H:%M:%f000', 'now'))" if sqlite else "now()"
    return sa.Column(name, INSTANT, nullable=False, server_default=sa.text(default))


def _primary(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _child(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))
