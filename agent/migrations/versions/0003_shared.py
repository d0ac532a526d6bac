"""For databases that are shared and kept: the small index of open effects on PostgreSQL too, and a mark on runs whose
journal was compacted.

Never: changed after a release; what comes later is a revision of its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

OPEN = sa.text("done_at IS NULL")
WHOLE = sa.text("ended_at IS NOT NULL AND compacted_at IS NULL")


def upgrade() -> None:
    """A column that older code need not name; on SQLite the index of open effects was partial from the beginning."""
    op.add_column("job", sa.Column("compacted_at", sa.BigInteger(), nullable=True))
    op.create_index("job_whole", "job", ["ended_at"], sqlite_where=WHOLE, postgresql_where=WHOLE)
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index("effect_open", "effect")
        op.create_index("effect_open", "effect", ["not_before"], postgresql_where=OPEN)
