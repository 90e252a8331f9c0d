"""Commands that wake agents, for the tests: each notes what it was started with."""

from __future__ import annotations

import json
import os
import sys
from fcntl import LOCK_EX, flock
from typing import TYPE_CHECKING, Any

from tests.stub_harness import write_program

if TYPE_CHECKING:
    from tests.conftest import Mail, Result

# As a Python program, so that its own shell or sed does not change what is looked at.
_NOTE = """
import json, os, sys, time
facts = {
    "arguments": sys.argv[1:], "directory": os.getcwd(), "environment": dict(os.environ), "time": time.time(),
    "pid": os.getpid(), "leads": os.getsid(0) == os.getpid(), "stdin": os.read(0, 100).decode(),
    "terminal": os.isatty(1),
}
with open(FILE, "a") as file:
    file.write(json.dumps(facts) + "\\n")
"""


class Command:
    """A program that notes its starts, then does what `rest`, in Python, says."""

    def __init__(self, mail: Mail, name: str = "rouse", rest: str = "") -> None:
        self.notes = mail.home / f"{name}.notes"
        text = f"#!{sys.executable} -IS{_NOTE.replace('FILE', repr(str(self.notes)))}{rest}\n"
        self.path = write_program(mail.home / name, text)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def starts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []


class Turn:
    """Keeps everybody from waking an agent: a sender stands between storing and waking while this is held."""

    def __init__(self, mail: Mail, name: str) -> None:
        directory = mail.spool.with_name("spool.db-locks")
        directory.mkdir(0o700, exist_ok=True)
        number = mail.sql("SELECT id FROM agents WHERE name = ?", name)[0][0]
        self._fd = os.open(directory / f"wake-{number}", os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> None:
        flock(self._fd, LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def interval(mail: Mail, milliseconds: int) -> None:
    mail.sql("UPDATE settings SET value = ? WHERE name = 'wake_interval_ms'", milliseconds)


def outcome(sent: Result, to: str = "bob") -> tuple[str, str | None]:
    """(outcome, error) of a recipient in a receipt in JSON."""
    receipt = next(item for item in sent.json["receipts"] if item["to"] == to)
    return receipt["outcome"], receipt.get("error")


def send(
    mail: Mail, to: str = "bob", body: str = "wake up", sender: str = "alice", **env: str
) -> tuple[str, str | None]:
    return outcome(mail.run(sender, "send", to, body, "--json", **env).ok(), to)


def pending(mail: Mail, name: str = "bob") -> list[str]:
    return [
        str(body)
        for (body,) in mail.sql(
            "SELECT m.body FROM receipts AS r JOIN messages AS m ON m.id = r.message"
            " JOIN agents AS a ON a.id = r.recipient WHERE a.name = ? AND r.state = 'pending' ORDER BY m.id",
            name,
        )
    ]


def status(mail: Mail, name: str = "bob") -> str:
    return str(mail.sql("SELECT status FROM agents WHERE name = ?", name)[0][0])
