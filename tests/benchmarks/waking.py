"""From the ring of the bell to the message in the hand of the process that waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from agentmail.bells import Bells
from agentmail.operations.send import Draft, send
from tests.benchmarks import waiter
from tests.benchmarks.measure import Pairs, Row, paired
from tests.benchmarks.resident import BODY
from tests.benchmarks.workshop import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.workshop import Workshop

SETTLE_SECONDS = 0.1  # from "it waits" to "it is blocked"


class StampedBells(Bells):
    """Bells that remember when, after the commit, one was last struck."""

    struck = 0

    def strike(self, name: str) -> None:
        self.struck = time.monotonic_ns()
        super().strike(name)


def ring_to_claimed(shop: Workshop, rounds: int) -> Pairs:
    """Our send and wait against a loop of inotify and SQLite that makes the same transactions."""
    place = shop.place(agents=6, use="waking")
    bells = place.spool.bells = StampedBells(place.spool.bells.directory)
    bare_path = f"{shop.directory}/waking.db"

    def ring() -> int:
        send(place.me, Draft("agent-2", BODY))
        return bells.struck

    bare_ring = _bare_sender(bare_path)
    return paired(
        rounds,
        lambda: _wake("ours", place.spool.path, ring),
        lambda: _wake("bare", bare_path, bare_ring),
    )


def _bare_sender(path: str) -> Callable[[], int]:
    connection = waiter.connect(path)
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT, state TEXT)")
    with open(f"{path}-bell", "wb"):
        pass

    def ring() -> int:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO messages (body, state) VALUES (?, 'claimed')", (BODY,))
        connection.execute("COMMIT")
        struck = time.monotonic_ns()
        bell = os.open(f"{path}-bell", os.O_WRONLY)
        os.pwrite(bell, b"!", 0)
        os.close(bell)
        return struck

    return ring


def _wake(kind: str, path: str, ring: Callable[[], int]) -> float:
    """Milliseconds until a fresh process that is blocked has the message."""
    words = [sys.executable, "-m", "tests.benchmarks.waiter", kind, path]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        time.sleep(SETTLE_SECONDS)
        struck = ring()
        return (int(process.stdout.readline()) - struck) / 1e6


ROWS = [
    Row(
        "ring to claimed by a blocked waiter",
        "the same with inotify and SQLite alone",
        ring_to_claimed,
        1.5,
        limit=2,
        pairs=3,
    )
]
