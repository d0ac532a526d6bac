"""What alembic runs: the revisions, on the connection and in the transaction of the caller (`agent.migrations`).

Never: a connection of its own.
"""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

from agent import tables

assert tables.SCHEMA_VERSION  # imported so that the metadata is complete

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=SQLModel.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
