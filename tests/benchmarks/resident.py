"""Sending from a process that stays: the Python API."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from agentmail.operations.send import Draft, send
from tests.benchmarks.measure import Pairs, Row, paired, timed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.workshop import Place, Workshop

BODY = "the parser is done, the tests are next"
MANY = 1000


def direct(place: Place) -> Callable[[], float]:
    """Time a send to one agent."""
    return timed(lambda: send(place.me, Draft("agent-2", BODY)))


def to_all(place: Place) -> Callable[[], float]:
    """Time a send to everybody."""
    return timed(lambda: send(place.me, Draft("all", BODY)))


def bare_insert(directory: str) -> Callable[[], float]:
    """Time the least that is durable."""
    connection = sqlite3.connect(f"{directory}/bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, body TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO messages (body) VALUES (?)", (BODY,))
        connection.execute("COMMIT")

    return timed(insert)


def one_send(shop: Workshop, rounds: int) -> Pairs:
    """A send against a bare insert."""
    place = shop.place(agents=6)
    return paired(rounds, direct(place), bare_insert(shop.directory), prepare=place.read)


def everybody(shop: Workshop, rounds: int) -> Pairs:
    """A send to a thousand against a send to one."""
    place = shop.place(agents=1 + MANY)
    return paired(rounds, to_all(place), direct(place), prepare=place.empty)


ROWS = [
    Row("resident send", "BEGIN IMMEDIATE; INSERT; COMMIT", one_send, 2.5, pairs=14),
    Row("send to all (1,000 live agents)", "a direct send", everybody, 40),
]
