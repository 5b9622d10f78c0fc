"""The Store adapter: SQLAlchemy Core on PostgreSQL or SQLite, and nothing of either outside.

``store`` opens transactions, ``transaction`` is one, put together from what ``submitting``, ``leasing``, ``judging``
and ``closing`` write and ``reading`` reads; ``schema`` says what there is and ``migrating`` brings it about.

Order of locks, which keeps concurrent workers, cancellations and deletions from waiting for each other in a circle:
an evaluation's ``evaluation_requests`` row (only cancel and delete take it), then conversation rows, then
``evaluations`` rows by ascending id. Who takes several conversation rows at once either holds the first lock or skips
rows that are locked.
"""
