"""The steps of an evaluation's life: submit, judge, finish, recover, read; and the ports they need.

Transactions open and close here and nowhere else, one a step, none while a model or a webhook is called.
"""
