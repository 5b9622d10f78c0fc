"""A process that does nothing but read bodies and present conversations, one after the other.

The compiled decoder holds the interpreter lock, so a thread would stall the service as much as its own loop would.
A process does not; and a body that exhausts the memory or the time takes nothing with it but this process. It ends
with its parent, because its questions then end, and a question that takes too long ends it, parent or not.
"""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from app.evaluation.reading import Refusal, read
from app.intake.jobs import LENGTH_BYTES, Accepted, AdmitJob, Job, Presented, Refused, Reply, decode_job, encode
from app.intake.packing import write
from app.intake.presenting import present

LONGEST_JOB_SECONDS = 60


def main() -> None:
    """Answer until there are no more questions."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process by hanging up
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not garble the answers
    gc.disable()  # reading makes no cycles, and a pass over millions of objects would double its cost
    while job := _next_job(sys.stdin.buffer):
        signal.setitimer(signal.ITIMER_REAL, LONGEST_JOB_SECONDS)
        reply = encode(_reply(job))
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(len(reply).to_bytes(LENGTH_BYTES))
        answers.write(reply)
        answers.flush()
        del job, reply
        gc.collect()


def _next_job(questions: BinaryIO) -> Job | None:
    length = questions.read(LENGTH_BYTES)
    return decode_job(questions.read(int.from_bytes(length))) if len(length) == LENGTH_BYTES else None


def _reply(job: Job) -> Reply:
    if not isinstance(job, AdmitJob):
        return Presented(present(job.stored, job.known))
    body = job.data if job.path is None else Path(job.path).read_bytes()
    reading = read(body, job)
    if isinstance(reading, Refusal):
        return Refused(reading.violations, reading.count, reading.line, reading.column)
    with Path(job.rows_path).open("r+b") as file:  # it is there; one that is not there any more stays away
        write(file, reading)
    return Accepted(reading.request, len(reading.conversations), reading.warnings)
