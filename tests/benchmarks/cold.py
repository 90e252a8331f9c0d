"""A command of its own process, as a harness starts it: its standard output is a pipe that is read."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.benchmarks.measure import Pairs, Row, paired, timed
from tests.benchmarks.workshop import Workshop, command

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.workshop import Place

SEND = ("send", "agent-2", "the parser is done, the tests are next")
INBOX = ("inbox",)
LIST = ("list",)
FLOOR = [sys.executable, "-c", "import sqlite3"]
FLOOR_NAME = 'python -c "import sqlite3"'
PEERS = 5


def call(shop: Workshop, place: Place, words: tuple[str, ...]) -> Callable[[], float]:
    """Time one command, by agent 1."""
    environment = shop.environment(place)
    return timed(lambda: _run([*command(), *words], environment))


def against_floor(words: tuple[str, ...]) -> Callable[[Workshop, int], Pairs]:
    """A command against the start of an interpreter that does nothing."""

    def measure(shop: Workshop, rounds: int) -> Pairs:
        place = shop.place(agents=1 + PEERS)
        environment = shop.environment(place)
        floor = timed(lambda: _run(FLOOR, environment))
        return paired(rounds, call(shop, place, words), floor, prepare=place.refill)

    return measure


def _run(words: list[str], environment: dict[str, str]) -> None:
    subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)


ROWS = [
    Row("cold send", FLOOR_NAME, against_floor(SEND), 1.6),
    Row("cold inbox (2 messages)", FLOOR_NAME, against_floor(INBOX), 1.6),
    Row(f"cold list ({PEERS} peers)", FLOOR_NAME, against_floor(LIST), 1.6),
]
