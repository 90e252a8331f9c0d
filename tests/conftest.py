"""A spool of its own for every test, and real `agentmail` processes on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What would tell the commands under test that they run inside a harness, or under another name.
FOREIGN = ("AGENTMAIL_", "TMUX", "CLAUDE", "CODEX_", "GEMINI_", "OPENCODE", "XDG_", "OMPCODE", "PI_CODING")
AGENTMAIL = [sys.executable, "-m", "agentmail"]


class Result(NamedTuple):
    """What a finished command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def ok(self) -> Result:
        assert self.status == 0, (self.status, self.out, self.err)
        return self


class Mail:
    """Runs `agentmail` as a given agent, on the test's own spool, in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.spool = home / "spool" / "spool.db"
        self.started: list[subprocess.Popen[str]] = []

    def environment(self, agent: str | None = None, **extra: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        kept.update(
            HOME=str(self.home), AGENTMAIL_SPOOL=str(self.spool), PYTHONPATH=str(Path(__file__).parent.parent)
        )
        if agent:
            kept["AGENTMAIL_AGENT"] = agent
        return {**kept, **extra}

    def run(self, agent: str | None, *words: str, stdin: str | bytes | None = None, **env: str) -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [*AGENTMAIL, *words],
            env=self.environment(agent, **env),
            cwd=self.home,
            input=b"" if data is None else data,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, agent: str | None, *words: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*AGENTMAIL, *words],
            env=self.environment(agent, **env),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.started.append(process)
        return process

    def send(self, sender: str, to: str, *words: str) -> str:
        """Send, and give the message's id."""
        return str(self.run(sender, "send", to, *words, "--json").ok().json["id"])

    def register(self, *names: str) -> None:
        """Make the names known, each merely claimed, as scripts do."""
        for name in names:
            self.run(name, "inbox").ok()

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Look into the spool with a connection of one's own."""
        import sqlite3

        connection = sqlite3.connect(self.spool, timeout=10)
        try:
            with connection:
                return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def wait_until_waiting(self, agent: str, count: int = 1) -> None:
        """Return once `count` waits of the agent are registered."""
        query = "SELECT count(*) FROM waiters AS w JOIN agents AS a ON a.id = w.agent WHERE a.name = ?"
        eventually(lambda: self.spool.exists() and self.sql(query, agent)[0][0] >= count)


def finish(process: subprocess.Popen[str], timeout: float = 30) -> Result:
    out, err = process.communicate(timeout=timeout)
    return Result(process.returncode, out, err)


def eventually(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except Exception:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[Mail]:
    mail = Mail(tmp_path)
    yield mail
    for process in mail.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
