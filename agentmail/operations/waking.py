"""Waking an idle agent and reviving a parked one: by its own command, its harness's, or its terminal.

Commands are argument lists, run without a shell, detached, their output in a log beside the spool. Nothing from a
message is ever part of one. The spool is refused when others can write it, so nobody else puts commands there.
"""

from __future__ import annotations

import os

from agentmail import processes
from agentmail.clock import now
from agentmail.model import Agent
from agentmail.spool import Spool, agents, mail, settings, wakes
from agentmail.values import NamedTuple

NOTICE = "You have new mail from another agent; it is shown with this message, or by 'agentmail inbox'."

# Codex: seen. Claude Code: seen. OpenCode: documented.
_WAKE = {"codex": ("codex", "queue", "--thread", "{session}", "--message", NOTICE)}
_REVIVE = {
    "claude": ("claude", "-p", NOTICE, "--resume", "{session}"),
    "codex": ("codex", "exec", "resume", "{session}", "--skip-git-repo-check", NOTICE),
    "opencode": ("opencode", "run", "--session", "{session}", NOTICE),
}

# What tells a process that it belongs to the sender's session.
_OF_THE_SENDER = frozenset(
    {
        *("AGENTMAIL_AGENT", "AGENTMAIL_SESSION", "AI_AGENT", "CLAUDECODE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR"),
        *("CLAUDE_ENV_FILE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_CHILD_SESSION"),
        *("CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN"),
        *("CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_CI", "CODEX_TOOL_CALL_ID"),
        *("GEMINI_CLI", "GEMINI_SESSION_ID", "OPENCODE", "OPENCODE_PID"),
    }
)
_IN_A_SANDBOX = ("CODEX_SANDBOX_NETWORK_DISABLED", "SANDBOX_RUNTIME")
_TRIAL_SECONDS = 1.5  # a command that has not failed by then has been started


class Roused(NamedTuple):
    """What became of an attempt."""

    outcome: str  # woken, revived, injected, queued
    error: str | None = None


def is_wanted(agent: Agent) -> bool:
    """Whether there is a means for the agent's state. A sub-agent, in its parent's session, has none."""
    return agent.parent is None and (_command(agent) is not None or _has_terminal(agent))


def rouse(spool: Spool, agent_id: int, message: int) -> Roused:
    """Run the agent's command unless that is needless by now, or was tried a moment ago."""
    if settings.get(spool.db, "exec") == "off":
        wakes.done(spool.db, agent_id, message)
        return Roused("queued")
    if any(name in os.environ for name in _IN_A_SANDBOX):
        return Roused("queued", "this sandbox cannot wake it; the next agentmail outside will")
    with _Turn(spool, agent_id):
        agent = agents.by_id(spool.db, agent_id)
        result = _decide(spool, agent, message) or _try(spool, agent)
        wakes.done(spool.db, agent_id, message)
    return result


def carry_out_due(spool: Spool, message: int | None = None) -> list[tuple[int, Roused]]:
    """Carry out all wakes that are due, also what others left: they were killed, or in a sandbox.

    Gives (agent, what became of it) of those that are due for `message`.
    """
    results = []
    for agent, wanted in wakes.due(spool.db):
        result = rouse(spool, agent, wanted)
        if result.outcome != "queued":
            mail.note_outcome(spool.db, wanted, agent, result.outcome)
        if wanted == message:
            results.append((agent, result))
    return results


def clean_environment(spool_path: str) -> dict[str, str]:
    """The environment without what would make a command part of the caller's session."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_SENDER}
    return {**kept, "AGENTMAIL_SPOOL": spool_path}


def _decide(spool: Spool, agent: Agent, message: int) -> Roused | None:
    """The outcome where no command is to be run; None if one is."""
    if not mail.is_pending(spool.db, message, agent.id):
        return Roused("injected")  # somebody has read it meanwhile
    if agent.status == "running":
        return Roused("injected" if agent.hooks else "queued")
    if agent.reviver and processes.is_alive(agent.reviver) and agent.status == "parked":
        return Roused("revived")
    if now() - agent.woken < int(settings.get(spool.db, "wake_interval_ms")):
        return Roused("queued", agent.wake_error) if agent.wake_error else Roused(_success(agent))
    return None


def _try(spool: Spool, agent: Agent) -> Roused:
    command, process = _command(agent), None
    if command:
        try:
            process, error = _start(spool, agent, command)
        except OSError as failure:
            error = f"cannot run {command[0]}: {(failure.strerror or str(failure)).lower()}"
    elif _has_terminal(agent):
        from agentmail.operations import terminal

        error = terminal.type_notice(agent.terminal or "", NOTICE)
    else:
        return Roused("queued")
    agents.change(spool.db, agent.id, woken=now(), wake_error=error, reviver=process)
    return Roused("queued", error) if error else Roused(_success(agent))


def _start(spool: Spool, agent: Agent, command: list[str]) -> tuple[str | None, str | None]:
    """(the process that runs on, what went wrong)."""
    import subprocess  # costs as much as the rest of a send, and is needed for few

    directory = agent.directory if agent.directory and os.path.isdir(agent.directory) else None
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(spool.path + "-wake.log", flags, 0o600), "r+b", buffering=0) as log:
        start = log.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=clean_environment(spool.path),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        identity = processes.identify(process.pid)
        try:
            status = process.wait(_TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            return identity, None
        if status == 0:
            return None, None
        log.seek(start)
        last = log.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
    return None, f"{command[0]} failed with status {status}" + (f": {last[-1]}" if last else "")


def _command(agent: Agent) -> list[str] | None:
    if agent.status not in ("idle", "parked"):
        return None
    given = arguments(agent.wake if agent.status == "idle" else agent.revive)
    if given:
        return given
    recipe = _WAKE.get(agent.kind) if agent.status == "idle" else _REVIVE.get(agent.kind)
    if recipe is None or not agent.bound or not agent.session or not agent.session.replace("-", "").isalnum():
        return None
    return [agent.session if word == "{session}" else word for word in recipe]


def arguments(command: str | None) -> list[str]:
    """The words of a registered command."""
    if not command:
        return []
    import json

    return [str(word) for word in json.loads(command)]


def _has_terminal(agent: Agent) -> bool:
    return agent.status == "idle" and bool(agent.bound) and agent.terminal is not None


def _success(agent: Agent) -> str:
    return "woken" if agent.status == "idle" else "revived"


class _Turn:
    """One attempt per agent at a time: the second waits for the first, and then knows what became of it."""

    def __init__(self, spool: Spool, agent: int) -> None:
        os.makedirs(spool.locks, 0o700, exist_ok=True)
        self._fd = os.open(f"{spool.locks}/wake-{agent}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        from fcntl import LOCK_EX, flock

        flock(self._fd, LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
