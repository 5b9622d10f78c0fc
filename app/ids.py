"""Identifiers that sort by the time they were made.

Every stored object carries ``prefix_`` + a UUIDv7 (RFC 9562) in hex, so that a list ordered by id is a list ordered
by creation and one primary-key index serves every cursor. Python gains ``uuid7`` only in 3.14.
"""

import itertools
import secrets
import time

_sequence = itertools.count(secrets.randbits(16))


def new_id(prefix: str) -> str:
    """Return ``prefix_`` and 32 hex digits, in the order of the clock.

    The 12 bits after the millisecond are sub-millisecond time (RFC 9562, 6.2, method 3), then a process-wide counter
    and 46 random bits.
    """
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    tail = (next(_sequence) & 0xFFFF) << 46 | secrets.randbits(46)
    value = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | tail
    return f"{prefix}_{value:032x}"
