"""For very many past runs: lists read the newest alone, a name finds its run, a start finds the leases it frees.

Never: changed after a release; what comes later is a revision of its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

LIVE = sa.text("ended_at IS NULL")
LEASED = sa.text("lease_until IS NOT NULL")


def upgrade() -> None:
    """Indexes alone: older code works with them as before."""
    op.create_index("job_new", "job", ["created_at", "id"])
    op.create_index("job_live", "job", ["created_at", "id"], sqlite_where=LIVE, postgresql_where=LIVE)
    op.create_index("job_attempt", "job", ["attempt_name"])
    op.create_index("job_leased", "job", ["lease_until"], sqlite_where=LEASED, postgresql_where=LEASED)
