"""Autoreply: a command answers an awaited question for an agent that is mid-turn and reaches no step boundary.

Otherwise two agents that wait for each other's turn to end would both wait for nothing (seed 000, "auto-reply").
"""

from __future__ import annotations

import os
import signal
import subprocess

from agentmail.errors import AgentmailError
from agentmail.model import Agent, Message
from agentmail.operations.send import Draft, send
from agentmail.operations.session import Session
from agentmail.operations.waking import arguments, clean_environment
from agentmail.spool import Spool, agents, mail, open_spool, settings


def is_wanted(agent: Agent) -> bool:
    """Whether the agent cannot answer itself now, and has a command that does."""
    return agent.status == "running" and bool(agent.synchronous) and bool(arguments(agent.autoreply))


class Autoreply:
    """One question, to be answered once by the recipient's command. `seconds` bounds the command."""

    def __init__(self, spool_path: str, recipient: int, message: int, seconds: float | None) -> None:
        self._spool_path = spool_path
        self._recipient = recipient
        self._message = message
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> str | None:
        """Run the command with the question on stdin and send what it prints; what went wrong, in words.

        Never for a message that was itself automatic. Opens the spool anew, as it runs beside a wait.
        """
        try:
            spool = open_spool(self._spool_path)
            try:
                return self._answer(spool)
            finally:
                spool.close()
        except AgentmailError as refused:
            return f"the autoreply could not be sent: {refused}"

    def stop(self) -> None:
        """Nobody waits for the answer any more: end the command and what it has started."""
        self._stopped = True
        if self._process and self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _answer(self, spool: Spool) -> str | None:
        agent, question = agents.by_id(spool.db, self._recipient), mail.find(spool.db, self._message)
        if question is None or question.automatic or settings.get(spool.db, "exec") == "off":
            return None
        text, error = self._ask(agent, question)
        if error or self._stopped:
            return None if self._stopped else error
        answer = Draft(question.sender, text, reply_to=self._message, automatic=True)
        send(Session(spool, agent, True, "its autoreply command"), answer)
        return None

    def _ask(self, agent: Agent, question: Message) -> tuple[str, str | None]:
        """(what the command says, what went wrong)."""
        directory = agent.directory if agent.directory and os.path.isdir(agent.directory) else None
        try:
            self._process = subprocess.Popen(
                arguments(agent.autoreply),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=directory,
                env=clean_environment(self._spool_path),
                start_new_session=True,
            )
            out, err = self._process.communicate(question.body.encode(), self._seconds)
        except OSError as failure:
            return "", f"{agent.name}'s autoreply cannot run: {(failure.strerror or str(failure)).lower()}"
        except subprocess.TimeoutExpired:
            self.stop()
            return "", None
        text, status = out.decode("utf-8", "replace").replace("\0", "\ufffd").rstrip("\n"), self._process.returncode
        if status == 0 and text.strip():
            return text, None
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
        reason = f"status {status}" if status else "no text"
        return "", f"{agent.name}'s autoreply gave {reason}" + "".join(f": {line[:300]}" for line in last)
