"""The process that waits in `waking`: `python -m tests.benchmarks.waiter ours|bare PATH`.

It says when it waits, and then at what time (`time.monotonic_ns`, the same in all processes of a machine) it had the
message in hand.
"""

from __future__ import annotations

import ctypes
import os
import select
import sqlite3
import sys
import time

from agentmail.identity import Caller
from agentmail.model import Stopped
from agentmail.operations import receive, session
from agentmail.spool import open_spool

CLOSE_WRITE = 0x8
FIND = "SELECT id, body FROM messages WHERE state = 'claimed'"
READ = "UPDATE messages SET state = 'read' WHERE state = 'claimed'"


def connect(path: str) -> sqlite3.Connection:
    """The yardstick's database."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def ours(path: str) -> None:
    """Wait as `agentmail wait` does."""
    waiting = receive.wait(session.enter(open_spool(path), Caller.of_hook("claude", "session-2", None)), asked=0)
    _say("waiting")
    got = waiting.result()
    stamp = time.monotonic_ns()
    assert not isinstance(got, Stopped)
    with got:
        _say(str(stamp))


def bare(path: str) -> None:
    """Wait with inotify and SQLite alone."""
    connection = connect(path)
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    libc.inotify_add_watch(watch, os.fsencode(path + "-bell"), CLOSE_WRITE)
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    _say("waiting")
    while not connection.execute(FIND).fetchall():
        poll.poll()
        os.read(watch, 4096)
    _say(str(time.monotonic_ns()))
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(READ)
    connection.execute("COMMIT")


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    {"ours": ours, "bare": bare}[sys.argv[1]](sys.argv[2])
