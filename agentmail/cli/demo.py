"""``agentmail demo``: two agents in two processes exchange a question and an answer, as a person would see it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from threading import Event, Thread
from typing import TYPE_CHECKING

from agentmail.cli import output

if TYPE_CHECKING:
    from agentmail.cli.call import Call

QUESTION = "Which port does the dev server listen on?"
ANSWER = "8080. It is in .env as PORT."


def demo_(_: Call) -> int:
    """Run ``agentmail demo``: real commands in real processes, on a spool that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="agentmail-demo-") as directory:
        spool = os.path.join(directory, "spool.db")
        alice, bob = _Terminal("alice", spool), _Terminal("bob", spool)
        bob.run("register", "bob")
        bob.run("status", "keeping the dev server running")
        alice.run("list")
        asking = Thread(target=alice.run, args=("send", "bob", QUESTION, "--await", "--timeout", "20s"))
        alice.sent.clear()
        asking.start()
        alice.sent.wait(20)  # so that the two terminals read in order
        bob.run("wait", "--timeout", "20s")
        bob.run("reply", "1", ANSWER)
        asking.join()
    failed = alice.failures + bob.failures
    if failed:
        output.warn(f"the demo failed: {failed[0]}; is {tempfile.gettempdir()} writable?")
        return 1
    output.write("\nTwo agents have exchanged a question and an answer. Next: agentmail --help")
    return 0


class _Terminal:
    """One agent's terminal: shows each command, and what it prints, as it happens."""

    def __init__(self, name: str, spool: str) -> None:
        self.name = name
        self.failures: list[str] = []
        self.sent = Event()  # the receipt of a send was printed
        self._environment = {**os.environ, "AGENTMAIL_AGENT": name, "AGENTMAIL_SPOOL": spool}

    def run(self, *words: str) -> None:
        shown = shlex.join(["agentmail", *words])
        self._show(f"$ {shown}")
        process = subprocess.Popen(
            [sys.executable, "-m", "agentmail", *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        with process:
            for line in process.stdout or ():
                self._show(line.rstrip("\n"))
                if line.startswith("- "):
                    self.sent.set()
        self.sent.set()
        if process.returncode:
            self.failures.append(f"{shown!r} exited with {process.returncode}")

    def _show(self, line: str) -> None:
        output.write(f"{self.name:>5} │ {line}")
