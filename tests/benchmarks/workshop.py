"""The place where it is measured: spools of any size in a directory on a disk, and the processes of their agents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from agentmail import processes
from agentmail.clock import now
from agentmail.identity import Caller
from agentmail.operations import receive, session
from agentmail.operations.send import Draft, send
from agentmail.spool import agents, open_spool
from agentmail.spool.mail import EPOCH, LOW_BITS

if TYPE_CHECKING:
    from agentmail.operations.session import Session
    from agentmail.spool import Spool

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOREIGN = ("AGENTMAIL_", "CLAUDE", "CODEX_", "GEMINI_", "OPENCODE", "XDG_", "OMPCODE", "PI_CODING")
WRITERS = 2  # the agents whose mail the history is

_MESSAGES = """
    WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < :history)
    INSERT INTO messages (id, sender, body, ts, verified)
    SELECT (:start + i * 1000 - :epoch) << :low_bits, 1 + i % :writers,
           'message ' || i || ' says that the parser is done and the tests are next', :start + i * 1000, 1
    FROM numbers
"""
_RECEIPTS = """
    INSERT INTO receipts (message, recipient, n, state, outcome, offered, read)
    SELECT id, 1 + sender % :writers, row_number() OVER (PARTITION BY sender ORDER BY id), 'read', 'queued', ts, ts
    FROM messages
"""


class Place(NamedTuple):
    """A spool, and two of its agents as this process may act for them."""

    spool: Spool
    me: Session
    peer: Session

    def empty(self) -> None:
        """Have all mail read and all bells silent."""
        self.spool.db.run("UPDATE receipts SET state = 'read', holder = NULL WHERE state = 'pending'")
        for name in os.listdir(self.spool.bells.directory):
            if self.spool.bells.is_ringing(name):
                self.spool.bells.silence(name)

    def refill(self) -> None:
        """Two messages in my mailbox, none elsewhere."""
        self.empty()
        for body in ("the parser is done", "the tests are next"):
            send(self.peer, Draft(self.me.me.name, body))

    def read(self) -> None:
        """Have the peer's mail read the usual way."""
        with receive.inbox(self.peer):
            pass


class Workshop:
    """A temporary directory, and all that was made in it; leaving it removes everything."""

    def __init__(self) -> None:
        # /tmp may be memory, where a commit costs nothing.
        self.directory = tempfile.mkdtemp(prefix="agentmail-bench-", dir=os.environ.get("TMPDIR") or "/var/tmp")
        self._places: dict[tuple[int, int, str], Place] = {}
        self._sleepers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        for place in self._places.values():
            place.spool.close()
        stop(self._sleepers)
        shutil.rmtree(self.directory, ignore_errors=True)

    def place(self, *, agents: int, history: int = 10, use: str = "") -> Place:
        """A spool with that many agents, each with a living process, and messages that were read; made once."""
        wanted = (agents, history, use)
        if wanted not in self._places:
            self._places[wanted] = self._build(agents, history)
        return self._places[wanted]

    def environment(self, place: Place, number: int = 1) -> dict[str, str]:
        """What a tool call of agent `number`'s session sees."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith((*FOREIGN, "PYTHON"))}
        return {
            **kept,
            "HOME": self.directory,
            "AGENTMAIL_SPOOL": place.spool.path,
            "CLAUDECODE": "1",
            "CLAUDE_CODE_SESSION_ID": f"session-{number}",
        }

    def _build(self, count: int, history: int) -> Place:
        path = f"{self.directory}/{len(self._places)}/spool.db"
        spool = open_spool(path)
        spool.db.run("PRAGMA synchronous = OFF")
        with spool.transaction():
            for number in range(1, count + 1):
                self._add(spool, number)
            self._fill(spool, history)
        spool.db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        spool.db.run("PRAGMA synchronous = FULL")
        return Place(spool, self._session(spool, 1), self._session(spool, 2))

    def _add(self, spool: Spool, number: int) -> None:
        if number > len(self._sleepers):
            self._sleepers.append(subprocess.Popen(["sleep", "3600"]))
        spool.bells.hang(f"agent-{number}")
        agents.add(
            spool.db,
            now=now(),
            name=f"agent-{number}",
            display=f"agent-{number}",
            kind="claude",
            bound=1,
            session=f"session-{number}",
            directory=self.directory,
            process=processes.identify(self._sleepers[number - 1].pid),
        )

    def _fill(self, spool: Spool, history: int) -> None:
        start = now() - history * 1000 - 60_000
        spool.db.run(_MESSAGES, history=history, start=start, epoch=EPOCH, low_bits=LOW_BITS, writers=WRITERS)
        spool.db.run(_RECEIPTS, writers=WRITERS)
        spool.db.run("UPDATE agents SET last_n = (SELECT count(*) FROM receipts WHERE recipient = agents.id)")

    def _session(self, spool: Spool, number: int) -> Session:
        return session.enter(spool, Caller.of_hook("claude", f"session-{number}", self.directory))


def command() -> list[str]:
    """The installed command beside this interpreter, else the module."""
    script = os.path.join(os.path.dirname(sys.executable), "agentmail")
    return [script] if os.access(script, os.X_OK) else [sys.executable, "-m", "agentmail"]


def stop(running: list[subprocess.Popen[bytes]]) -> None:
    """End processes that this one started."""
    for process in running:
        process.kill()
    for process in running:
        process.communicate()
