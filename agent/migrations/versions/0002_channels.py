"""What is on its way to the channels, and how each channel stands.

Never: changed after a release; what comes later is a revision of its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TIME = sa.BigInteger()
"""Whole microseconds since the epoch (`tables.UtcTime`)."""


def upgrade() -> None:
    """Add two tables; messages are also found by their time. Messages from before are sent to no channel."""
    op.create_index("message_at", "message", ["at"])
    op.create_table(
        "channel",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("since", TIME, nullable=False),
        sa.Column("upto", TIME, nullable=False),
        sa.Column("sent_at", TIME, nullable=True),
        sa.Column("failing_since", TIME, nullable=True),
        sa.Column("fails", sa.Integer(), nullable=False),
        sa.Column("told_at", TIME, nullable=True),
        sa.Column("said", sa.Text(), nullable=False),
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("loud", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("parcel", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("held_until", TIME, nullable=True),
        sa.Column("begun_at", TIME, nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
    )
    op.create_index("delivery_due", "delivery", ["channel", "done_at", "due_at"])
    op.create_index("delivery_run", "delivery", ["channel", "job_id"])
    op.create_index("delivery_place", "delivery", ["channel", "place"])
