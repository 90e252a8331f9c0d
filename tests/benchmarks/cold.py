"""A command of its own process, as a harness starts it: its standard output is a pipe that is read."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from agentmail.hooks import guard
from agentmail.operations.send import Draft, send
from agentmail.spool import agents
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
SESSION = "5d00b2aa-0000-4000-8000-000000000000"


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


def guard_without_mail(shop: Workshop, rounds: int) -> Pairs:
    """The hook that runs after every tool call, when no bell rings."""
    place = shop.place(agents=2)
    environment = {**shop.environment(place), "CLAUDE_CODE_SESSION_ID": SESSION}
    _answer(guard.hook("claude"), environment, "SessionStart")
    guarded = guard.hook_when_ringing("claude", place.spool.path, "CLAUDE_CODE_SESSION_ID")
    ours = timed(lambda: _run(["sh", "-c", guarded], environment))
    floor = timed(lambda: _run(["sh", "-c", "test -s /nonexistent || exit 0"], environment))
    return paired(rounds, ours, floor, prepare=place.empty)


def hook_with_a_message(shop: Workshop, rounds: int) -> Pairs:
    """The same hook as installed, when one message waits."""
    place = shop.place(agents=2)
    environment = {**shop.environment(place), "CLAUDE_CODE_SESSION_ID": SESSION}
    _answer(guard.hook("claude"), environment, "SessionStart")
    agent = agents.by_session(place.spool.db, SESSION, "claude")
    assert agent
    guarded = guard.hook_when_ringing("claude", place.spool.path, "CLAUDE_CODE_SESSION_ID")

    def prepare() -> None:
        place.empty()
        send(place.peer, Draft(agent.name, "the parser is done"))

    ours = timed(lambda: _answer(guarded, environment, "PostToolUse"))
    return paired(rounds, ours, timed(lambda: _run(FLOOR, environment)), prepare=prepare)


def _answer(hook: str, environment: dict[str, str], event: str) -> None:
    given = {"session_id": SESSION, "cwd": "/tmp", "hook_event_name": event, "source": "startup", "tool_name": "Bash"}
    done = subprocess.run(
        ["sh", "-c", hook], env=environment, input=json.dumps(given).encode(), stdout=subprocess.PIPE, check=True
    )
    assert b"additionalContext" in done.stdout


def _run(words: list[str], environment: dict[str, str]) -> None:
    subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)


ROWS = [
    Row("cold send", FLOOR_NAME, against_floor(SEND), 1.6),
    Row("cold inbox (2 messages)", FLOOR_NAME, against_floor(INBOX), 1.6),
    Row(f"cold list ({PEERS} peers)", FLOOR_NAME, against_floor(LIST), 1.6),
    Row("cold hook without mail", "sh -c 'test -s FILE'", guard_without_mail, 2.0),
    Row("cold hook with one message", FLOOR_NAME, hook_with_a_message, 1.4),
]
