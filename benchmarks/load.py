"""Many users at once on loopback: errors, latencies against one user's, memory, a killed worker.

``python -m benchmarks.load --users 200 --seconds 60 --kill`` serves the explorer with gunicorn and asks it
what pages ask. A user asks, reads for a moment, and asks again; a failed request is tried once more.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.ratios import machine

#: What a user does, and how often: trips and permalinks most, batches least.
ACTIONS = {
    "trip": ("/api/trip?scenario=six-cuts&token.position={n}", 5),
    "permalink": ("/?scenario=six-cuts&token.position={n}&hop=4", 3),
    "traffic": ("/api/traffic?scenario=six-cuts&tokens={n}", 2),
    "batch": ("/api/batch?scenario=six-cuts&tokens=256&skew=0.{n}", 1),
}
THINK_SECONDS = (4.0, 12.0)
TIMEOUT_SECONDS = 60


@dataclass(slots=True)
class Tally:
    """Seconds of every answer by action, requests tried again, and what failed twice."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ACTIONS})
    retried: int = 0
    failed: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take in another user's tally."""
        for name, values in other.seconds.items():
            self.seconds[name] += values
        self.retried += other.retried
        self.failed += other.failed

    def lines(self, alone: Tally) -> Iterator[str]:
        """A table: this run's percentiles, and one user's median."""
        yield f"{'action':<12}{'answers':>8}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}{'one user p50':>15}"
        for name, values in self.seconds.items():
            shown = [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)]
            cells = "".join(f"{1e3 * value:>6.0f} ms" for value in shown)
            yield f"{name:<12}{len(values):>8}{cells}{1e3 * percentile(alone.seconds[name], 0.5):>12.0f} ms"
        yield f"tried again: {self.retried}; failed after one retry: {len(self.failed)}"
        yield from self.failed[:5]


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of them do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Workers:
    """A gunicorn and its workers."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port, self.process = port, process

    def pids(self) -> list[int]:
        """Process ids of the workers alive."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text(encoding="ascii").split()]

    def kill_one(self) -> int:
        """Kill a worker where it stands."""
        victim = self.pids()[0]
        os.kill(victim, signal.SIGKILL)
        return victim

    def rss_mb(self) -> list[float]:
        """Resident memory of each living worker, in MB."""
        found = []
        for pid in self.pids():
            try:
                pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
            except OSError:
                continue
            if pages:  # one that was just killed holds none
                found.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
        return found


@contextmanager
def served(workers: int) -> Iterator[Workers]:
    """Gunicorn with the explorer on a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "gunicorn", "--workers", str(workers), "--threads", "8", "--backlog", "1024",
        "--timeout", "60", "--limit-request-line", "0", "--bind", f"127.0.0.1:{port}", "--log-level", "error",
        "tokentrip:create_server()",
    ]  # fmt: skip
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _await(port, process)
            yield Workers(port, process)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        try:
            return _ask(port, "/api/batch?tokens=256")
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)
    raise RuntimeError("gunicorn did not answer")


def _ask(port: int, path: str) -> None:
    """One request on a connection of its own; anything but a whole answer with status 200 raises."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or b'"error":' in body[:200]:
            raise http.client.HTTPException(f"{answer.status} {body[:100]!r}")
    finally:
        connection.close()


def use(port: int, until: float, seed: int, think: tuple[float, float]) -> Tally:
    """What one user sees until a time."""
    draw, tally = random.Random(seed), Tally()
    names = [name for name, (_, often) in ACTIONS.items() for _ in range(often)]
    time.sleep(draw.uniform(0, think[1]))
    while time.monotonic() < until:
        name = draw.choice(names)
        path = ACTIONS[name][0].format(n=draw.randint(1, 63))
        start = time.monotonic()
        for attempt in (0, 1):
            try:
                _ask(port, path)
                tally.seconds[name].append(time.monotonic() - start)
                break
            except (OSError, http.client.HTTPException) as error:
                tally.retried += 1 - attempt
                if attempt:
                    tally.failed.append(f"{path}: {error!r}")
        time.sleep(draw.uniform(*think))
    return tally


def crowd(
    workers: Workers,
    users: int,
    seconds: float,
    *,
    kill: bool = False,
    think: tuple[float, float] = THINK_SECONDS,
) -> tuple[Tally, list[list[float]]]:
    """(what all users saw, resident memory of the workers ten times); ``kill`` ends a worker midway."""
    total, lock, until = Tally(), threading.Lock(), time.monotonic() + seconds

    def run(seed: int) -> None:
        own = use(workers.port, until, seed, think)
        with lock:
            total.add(own)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(users)]
    for thread in threads:
        thread.start()
    memory = []
    for part in range(10):
        time.sleep(max(0.0, until - seconds * (9 - part) / 10 - time.monotonic()))
        memory.append(workers.rss_mb())
        if kill and part == 4:
            workers.kill_one()
    for thread in threads:
        thread.join()
    return total, memory


def main() -> None:
    """Serve, ask as one user, ask as many, and print what they saw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--minutes", type=float, help="Instead of --seconds.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", action="store_true", help="SIGKILL a worker midway.")
    chosen = parser.parse_args()
    seconds = 60 * chosen.minutes if chosen.minutes else chosen.seconds
    print(f"{machine()}; load average {os.getloadavg()[0]:.1f}", flush=True)
    with served(chosen.workers) as workers:
        alone, _ = crowd(workers, 1, min(20.0, seconds), think=(0.05, 0.1))
        seen, memory = crowd(workers, chosen.users, seconds, kill=chosen.kill)
    print(f"{chosen.users} users, {chosen.workers} workers, {seconds:.0f} s, killed: {chosen.kill}")
    print("\n".join(seen.lines(alone)))
    for part, sizes in enumerate(memory, 1):
        print(f"after {part * seconds / 10:>5.0f} s: " + " ".join(f"{size:.0f} MB" for size in sizes))
    print(f"load average {os.getloadavg()[0]:.1f}")
    sys.exit(1 if seen.failed else 0)


if __name__ == "__main__":
    main()
