"""The first form: runs, their journal, asked effects, messages, the library, readings.

Never: changed after a release; what comes later is a revision of its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

TIME = sa.BigInteger()
"""Whole microseconds since the epoch (`tables.UtcTime`)."""

DATA = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create every table."""
    _runs()
    _what_happened()
    _what_is_remembered()


def _runs() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("wake_at", TIME, nullable=True),
        sa.Column("deadline_at", TIME, nullable=True),
        sa.Column("seen_at", TIME, nullable=True),
        sa.Column("look_s", sa.Float(), nullable=True),
        sa.Column("look_s_max", sa.Float(), nullable=True),
        sa.Column("story", sa.String(), nullable=False),
        sa.Column("away", sa.Boolean(), nullable=False),
        sa.Column("watched", sa.Boolean(), nullable=False),
        sa.Column("attempt_name", sa.String(), nullable=False),
        sa.Column("cluster_job_id", sa.String(), nullable=False),
        sa.Column("submitted_at", TIME, nullable=True),
        sa.Column("lease_token", sa.String(), nullable=False),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("snapshot", DATA, nullable=False),
        sa.Column("board", DATA, nullable=False),
        sa.UniqueConstraint("request_id"),
    )
    op.create_index("job_due", "job", ["wake_at"])
    op.create_index("job_state", "job", ["state"])


def _what_happened() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("job_id", sa.String(), sa.ForeignKey("job.id"), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("body", DATA, nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("to", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.UniqueConstraint("job_id", "key"),
        sa.UniqueConstraint("job_id", "seq"),
    )
    op.create_table(
        "effect",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("job_id", sa.String(), sa.ForeignKey("job.id"), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("body", DATA, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("asked_at", TIME, nullable=False),
        sa.Column("not_before", TIME, nullable=False),
        sa.Column("begun_at", TIME, nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.UniqueConstraint("job_id", "seq", "n"),
    )
    op.create_index("effect_open", "effect", ["not_before"], sqlite_where=sa.text("done_at IS NULL"))
    op.create_index("ix_effect_job_id", "effect", ["job_id"])
    op.create_table(
        "message",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("job_id", sa.String(), sa.ForeignKey("job.id"), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("must_not_miss", sa.Boolean(), nullable=False),
    )
    op.create_index("message_job", "message", ["job_id", "at"])


def _what_is_remembered() -> None:
    op.create_table(
        "library",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("settings", DATA, nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("worked", sa.Integer(), nullable=False),
        sa.Column("first_at", TIME, nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("stale_at", TIME, nullable=True),
        sa.Column("stale_why", sa.Text(), nullable=False),
        sa.Column("notes", DATA, nullable=False),
        sa.UniqueConstraint("purpose", "digest"),
    )
    op.create_index("ix_library_purpose", "library", ["purpose"])
    op.create_table(
        "library_key",
        sa.Column("id", sa.String(), primary_key=True),
    )
    op.create_table(
        "reading",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("stop_reason", sa.String(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cache_read_tokens", sa.Integer(), nullable=False),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
    )
    op.create_index("reading_at", "reading", ["at"])
    op.create_index("reading_job", "reading", ["job_id"])
    op.create_index("reading_key", "reading", ["key"])
