"""A write transaction: everything that reads and writes, on one connection."""

from app.storage.closing import Ending
from app.storage.leasing import Leasing
from app.storage.submitting import Submitting


class DatabaseTransaction(Submitting, Leasing, Ending):
    """The Transaction port. Its parts are the classes it is made of."""
