"""What it costs to take in 30 MB: our endpoint beside the obvious one, in the same run.

Ours is the real API on the real intake under uvicorn, with a store that keeps nothing (storing has a benchmark of its
own); the other is a FastAPI endpoint with nested pydantic models. Both receive the same body over loopback while
somebody else asks for ``/ping`` without a pause. CPU and peak memory are those of the server and its processes.
Compressing for the store is measured beside: the column says how much of our CPU it is, and the budgets are for the
rest. Hostile bodies go to ours alone: the other needs up to nine gigabytes for them.

Run with ``python -m benchmarks.ingest [--rounds N] [--json]`` (about three minutes). Exits 1 over budget.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app.evaluation.reading import Reading, read
from app.intake.packing import frames
from app.judges.catalogue import JUDGES
from app.pipeline.values import Rules
from benchmarks.ingest_bodies import HOSTILE, ordinary, with_lone_surrogate
from benchmarks.ingest_servers import KEY, SUBMIT
from tests.processes import free_port, wait_for_port

CPU_OF_NAIVE = 1 / 4
HOSTILE_CPU = 6.0
"""Times the ordinary body's CPU."""
PEAK_OF_BODY = 4.0
HOSTILE_PEAK_MB = 800.0
STALL_MS = 100.0
LARGEST_422 = 64 * 1024

_TICKS = os.sysconf("SC_CLK_TCK")
_MB = 1024.0 * 1024.0
_PING_SECONDS = 0.02
_WARM = b'{"conversations":[{"messages":[{"role":"assistant","content":"' + b"x" * 200_000 + b'"}]}]}'


@dataclass(frozen=True)
class Figures:
    """What one submission cost."""

    server: str
    body: str
    status: int
    cpu_seconds: float
    packing_seconds: float
    """Of the CPU: compressing and writing out for the store."""
    peak_mb: float
    stall_ms: float
    wall_seconds: float
    answer_bytes: int

    @property
    def reading_seconds(self) -> float:
        """CPU for receiving, splitting, validating and hashing."""
        return self.cpu_seconds - self.packing_seconds


class Server:
    """A server in a process of its own."""

    def __init__(self, name: str, port: int, pid: int) -> None:
        self.name = name
        self.port = port
        self.pid = pid

    def submit(self, body: bytes) -> tuple[int, int]:
        """Return status and length of the answer."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)) as connection:
            connection.request("POST", SUBMIT[self.name], body, headers)
            answer = connection.getresponse()
            return answer.status, len(answer.read())

    def pids(self) -> list[int]:
        """Return the server's process and all below it."""
        found = [self.pid]
        for pid in found:
            for listed in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, listed.read_text().split())
        return found

    def cpu_seconds(self) -> float:
        """Return what all of them have used so far."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids()]
        return sum(int(each[11]) + int(each[12]) for each in stats) / _TICKS

    def memory_mb(self, field: str) -> float:
        """Return the sum of a memory field (VmRSS, VmHWM) of all of them."""
        lines = [line for pid in self.pids() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


@contextlib.contextmanager
def running(name: str) -> Iterator[Server]:
    """Run a server for the length of a block, with all its processes started."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.ingest_servers", name, str(port)])
    try:
        wait_for_port(port, 60)
        server = Server(name, port, process.pid)
        server.submit(_WARM)
        yield server
    finally:
        process.terminate()
        process.wait(30)


class Pinger(threading.Thread):
    """Asks for ``/ping`` until told to stop, and remembers the longest answer."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._done = threading.Event()
        self.longest_seconds = 0.0

    def run(self) -> None:
        """Ask."""
        while not self._done.wait(_PING_SECONDS):
            started = time.perf_counter()
            self._connection.request("GET", "/ping")
            self._connection.getresponse().read()
            self.longest_seconds = max(self.longest_seconds, time.perf_counter() - started)
        self._connection.close()

    def stop(self) -> None:
        """End."""
        self._done.set()
        self.join()


def measure(name: str, label: str, body: bytes) -> Figures:
    """Submit a body to a fresh server."""
    with running(name) as server:
        pinger = Pinger(server.port)
        pinger.start()
        time.sleep(0.2)
        idle_mb, cpu, started = server.memory_mb("VmRSS"), server.cpu_seconds(), time.perf_counter()
        status, length = server.submit(body)
        wall, cpu = time.perf_counter() - started, server.cpu_seconds() - cpu
        peak_mb = server.memory_mb("VmHWM") - idle_mb
        pinger.stop()
    return Figures(name, label, status, cpu, 0.0, peak_mb, pinger.longest_seconds * 1000, wall, length)


def packing_seconds(body: bytes) -> float:
    """Return the CPU that compressing for the store takes, hashing not included."""
    reading = read(body, Rules({judge.name: judge.default for judge in JUDGES}))
    if not isinstance(reading, Reading):
        return 0.0
    started = time.process_time()
    for _ in frames(reading):
        pass
    packed = time.process_time()
    for received in reading.received:
        hashlib.sha256(received).hexdigest()
    return packed - started - (time.process_time() - packed)


def median(rows: list[Figures]) -> Figures:
    """Return the median of every figure."""
    figures = ("cpu_seconds", "packing_seconds", "peak_mb", "stall_ms", "wall_seconds")
    middle = {name: statistics.median(getattr(row, name) for row in rows) for name in figures}
    return replace(rows[0], **middle)


def measured(rounds: int) -> Iterator[tuple[Figures, float]]:
    """Yield the median figures of every body and its size in MB, the two servers' ordinary bodies first."""
    body = ordinary()
    ours, naive = [], []
    for _ in range(rounds):
        naive.append(measure("naive", "ordinary", body))
        ours.append(replace(measure("ours", "ordinary", body), packing_seconds=packing_seconds(body)))
    yield median(naive), len(body) / _MB
    yield median(ours), len(body) / _MB
    for name, made in HOSTILE.items():
        for label, hostile in ((name, made()), (f"{name} + lone", with_lone_surrogate(made()))):
            rows = [
                replace(measure("ours", label, hostile), packing_seconds=packing_seconds(hostile))
                for _ in range(rounds)
            ]
            yield median(rows), len(hostile) / _MB


def over_budget(naive: Figures, ordinary_: Figures, row: Figures, size_mb: float) -> list[str]:
    """Return the budgets that a row of ours breaks."""
    is_ordinary = row is ordinary_
    most_cpu = naive.cpu_seconds * CPU_OF_NAIVE if is_ordinary else ordinary_.reading_seconds * HOSTILE_CPU
    most_mb = size_mb * PEAK_OF_BODY if is_ordinary else HOSTILE_PEAK_MB
    expected = 422 if row.body.startswith("wrong") else 202
    checks = {
        "status": row.status == expected,
        "cpu": row.reading_seconds <= most_cpu,
        "memory": row.peak_mb <= most_mb,
        "stall": row.stall_ms <= STALL_MS,
        "answer": row.answer_bytes <= LARGEST_422,
    }
    return [name for name, kept in checks.items() if not kept]


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    if not arguments.json:
        print(f"{'server':7}{'body':18}{'status':>7}{'CPU s':>8}{'packing':>9}{'peak MB':>9}{'stall ms':>10}  wall s")
    for row, size_mb in measured(arguments.rounds):
        rows.append((row, size_mb))
        if not arguments.json:
            print(
                f"{row.server:7}{row.body:18}{row.status:7}{row.cpu_seconds:8.2f}{row.packing_seconds:9.2f}"
                f"{row.peak_mb:9.0f}{row.stall_ms:10.0f}{row.wall_seconds:8.2f}",
                flush=True,
            )
    naive, ours = rows[0][0], rows[1][0]
    broken = {row.body: found for row, size in rows[1:] if (found := over_budget(naive, ours, row, size))}
    ratio = ours.reading_seconds / naive.cpu_seconds
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row, _ in rows], "cpu_of_naive": ratio, "over_budget": broken}))
    else:
        print(
            f"ordinary body: {ratio:.2f} of the naive CPU (budget {CPU_OF_NAIVE}); over budget: {broken or 'nothing'}"
        )
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
