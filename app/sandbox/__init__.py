"""Where hostile patterns and schemas run: killable child processes that know nothing and can open nothing.

``child`` is the program inside, ``process`` one such process seen from outside, ``lanes`` shares two of them fairly
between callers, and ``checker`` is the ``SchemaChecker`` port on top.
"""
