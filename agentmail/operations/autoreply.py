"""Autoreply: a command answers an awaited question for an agent that is mid-turn and reaches no step boundary.

Otherwise two agents that wait for each other's turn to end would both wait for nothing (seed 000, "auto-reply").
"""

from __future__ import annotations

import os
import subprocess

from agentmail.errors import AgentmailError
from agentmail.model import Agent, Message
from agentmail.operations.send import Draft, send
from agentmail.operations.session import Session
from agentmail.operations.waking import arguments, clean_environment
from agentmail.spool import agents, mail, open_spool, settings


def is_wanted(agent: Agent) -> bool:
    """Whether the agent cannot answer itself now, and has a command that does."""
    return agent.status == "running" and bool(agent.synchronous) and bool(arguments(agent.autoreply))


def answer(spool_path: str, recipient: int, message: int, seconds: float | None) -> str | None:
    """Run the recipient's command with the question on stdin and send what it prints; what went wrong, in words.

    Once, and never for a message that was itself automatic. `seconds` bounds the command. Opens the spool anew, as it
    runs beside a wait.
    """
    spool = open_spool(spool_path)
    try:
        agent = agents.by_id(spool.db, recipient)
        question = mail.find(spool.db, message)
        if question is None or question.automatic or settings.get(spool.db, "exec") == "off":
            return None
        text, error = _run(spool_path, agent, question, seconds)
        if error:
            return error
        send(
            Session(spool, agent, True, "its autoreply command"),
            Draft(question.sender, text, reply_to=message, automatic=True),
        )
    except AgentmailError as refused:
        return f"the autoreply could not be sent: {refused}"
    finally:
        spool.close()
    return None


def _run(spool_path: str, agent: Agent, question: Message, seconds: float | None) -> tuple[str, str | None]:
    command = arguments(agent.autoreply)
    directory = agent.directory if agent.directory and os.path.isdir(agent.directory) else None
    try:
        done = subprocess.run(
            command,
            input=question.body.encode(),
            capture_output=True,
            cwd=directory,
            env=clean_environment(spool_path),
            timeout=seconds,
            start_new_session=True,
            check=False,
        )
    except OSError as failure:
        return "", f"{agent.name}'s autoreply cannot run: {(failure.strerror or str(failure)).lower()}"
    except subprocess.TimeoutExpired:
        return "", f"{agent.name}'s autoreply did not end in time"
    text = done.stdout.decode("utf-8", "replace").replace("\0", "\ufffd").rstrip("\n")
    if done.returncode or not text.strip():
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        reason = f"status {done.returncode}" if done.returncode else "no text"
        return "", f"{agent.name}'s autoreply gave {reason}" + "".join(f": {line}" for line in last)
    return text, None
