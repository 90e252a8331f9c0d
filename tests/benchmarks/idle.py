"""What those who wait cost while nothing comes, and how many of them a message wakes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from agentmail.operations.send import Draft, send
from tests.benchmarks.measure import Pairs, Row, paired
from tests.benchmarks.resident import BODY
from tests.benchmarks.workshop import command, stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.workshop import Place, Workshop

    Process = subprocess.Popen[bytes]

WAITERS, BATCH = 200, 10
SETTLE_SECONDS, WATCHED_SECONDS = 30, 30
WINDOW_SECONDS = 0.03
SLEEP = [sys.executable, "-c", "import sqlite3, time; time.sleep(600)"]


def cpu(shop: Workshop, _: int) -> Pairs:
    """Percent of a core that all waiters take, and as many sleeping processes beside them, once they have settled."""
    place = shop.place(agents=1 + WAITERS)
    waiting = _start_waiters(shop, place)
    sleeping = [subprocess.Popen(SLEEP) for _ in range(WAITERS)]
    try:
        time.sleep(SETTLE_SECONDS)
        before = _seconds(waiting), _seconds(sleeping)
        time.sleep(WATCHED_SECONDS)
        after = _seconds(waiting), _seconds(sleeping)
    finally:
        stop(waiting + sleeping)
    ours, theirs = ((last - first) / WATCHED_SECONDS * 100 for first, last in zip(before, after, strict=True))
    return Pairs([ours], [theirs])


def memory(shop: Workshop, rounds: int) -> Pairs:
    """Resident megabytes of a waiter and of a process that sleeps."""
    place = shop.place(agents=6)
    waiting = [*command(), "wait", "--timeout-ms", "0"]
    environment = shop.environment(place, 6)
    return paired(rounds, lambda: _megabytes(waiting, environment), lambda: _megabytes(SLEEP, environment))


def woken(shop: Workshop, rounds: int) -> Pairs:
    """How many waiters run within a moment after a send, less those that run in a like moment without one."""
    place = shop.place(agents=1 + WAITERS, use="woken")
    waiting = _start_waiters(shop, place)

    def after_a_send() -> float:
        idle = _count_running(waiting, lambda: None)
        count = _count_running(waiting, lambda: send(place.me, Draft("agent-2", BODY)))
        waiting[0].wait()
        waiting[0] = _start(shop, place, 2)
        _until_waiting(place, WAITERS)
        time.sleep(0.1)
        return count - idle

    try:
        time.sleep(SETTLE_SECONDS)
        return paired(rounds, after_a_send, lambda: 1.0)
    finally:
        stop(waiting)


def _start_waiters(shop: Workshop, place: Place) -> list[Process]:
    place.spool.db.run("DELETE FROM waiters")
    waiting: list[Process] = []
    while len(waiting) < WAITERS:
        waiting += [_start(shop, place, len(waiting) + 2 + number) for number in range(BATCH)]
        _until_waiting(place, len(waiting))
    return waiting


def _start(shop: Workshop, place: Place, number: int) -> Process:
    words = [*command(), "wait", "--timeout-ms", "0"]
    return subprocess.Popen(words, env=shop.environment(place, number), stdout=subprocess.DEVNULL)


def _until_waiting(place: Place, count: int) -> None:
    deadline = time.monotonic() + 60
    while place.spool.db.value("SELECT count(*) FROM waiters") < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} waiters did not start")
        time.sleep(0.05)


def _count_running(running: list[Process], act: Callable[[], object]) -> int:
    files = [os.open(f"/proc/{process.pid}/schedstat", os.O_RDONLY) for process in running]
    try:
        before = [_runs(file) for file in files]
        end = time.monotonic() + WINDOW_SECONDS
        act()
        time.sleep(max(0.0, end - time.monotonic()))
        return sum(first != _runs(file) for first, file in zip(before, files, strict=True))
    finally:
        for file in files:
            os.close(file)


def _runs(file: int) -> bytes:
    """How often the process ran so far; nothing once it has ended."""
    try:
        return os.pread(file, 100, 0).split()[2]
    except OSError:
        return b""


def _seconds(running: list[Process]) -> float:
    """The CPU time so far: `stat` would count whole ticks of 10 ms only."""
    total = 0
    for process in running:
        with open(f"/proc/{process.pid}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def _megabytes(words: list[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(words, env=environment)
    try:
        time.sleep(1)
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            return int(next(line for line in file if line.startswith("VmRSS:")).split()[1]) / 1024
    finally:
        stop([process])


ROWS = [
    Row(f"CPU of {WAITERS} idle waiters", f"{WAITERS} that sleep", cpu, None, limit=1, unit="%"),
    Row("memory of an idle waiter", 'python -c "import sqlite3, time; …"', memory, 1.3, unit="MB"),
    Row(f"woken by a send to one of {WAITERS}", "1", woken, None, limit=1, unit="woken", pairs=5),
]
