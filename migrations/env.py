"""Alembic's entry point: runs revisions on the connection that ``app.storage.migrating`` opened, in its transaction.

A new revision is written by hand; the test of the migrations prints what still separates them from the schema.
"""

from alembic import context

from app.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, compare_type=True)
context.run_migrations()
