"""Waking an idle agent and reviving a parked one: by its own command, its harness's, or its terminal.

Commands are argument lists, run without a shell, detached, their output in a log beside the spool. Nothing from a
message is ever part of one. The spool is refused when others can write it, so nobody else puts commands there.
"""

from __future__ import annotations

import os

from agentmail import locks, private, processes
from agentmail.clock import now
from agentmail.identity import HARNESSES
from agentmail.model import Agent
from agentmail.operations import presence
from agentmail.spool import Spool, agents, mail, open_spool, settings, waiters, wakes
from agentmail.values import NamedTuple

NOTICE = "You have new mail from another agent; it is shown with this message, or by 'agentmail inbox'."

# Codex: seen. Claude Code: seen. OpenCode: documented.
_WAKE = {"codex": ("codex", "queue", "--thread", "{session}", "--message", NOTICE)}
_REVIVE = {
    "claude": ("claude", "-p", NOTICE, "--resume", "{session}"),
    "codex": ("codex", "exec", "resume", "{session}", "--skip-git-repo-check", NOTICE),
    "opencode": ("opencode", "run", "--session", "{session}", NOTICE),
}

# What tells a process that it belongs to the sender's session, or sits in the sender's terminal.
_OF_THE_SENDER = frozenset(
    {
        *(name for harness in HARNESSES for name in (*harness.markers, *harness.sessions)),
        *("AGENT", "AGENTMAIL_AGENT", "AI_AGENT", "CLAUDE_PID", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE"),
        *("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED"),
        *("CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CODEX_CI", "CODEX_TOOL_CALL_ID"),
        *("GEMINI_PROJECT_DIR", "GEMINI_CWD", "OPENCODE_PID", "TMUX_PANE"),
    }
)
_IN_A_SANDBOX = ("CODEX_SANDBOX_NETWORK_DISABLED", "SANDBOX_RUNTIME")
_TRIAL_SECONDS = 1.5  # a command that has not failed by then has been started
_REVIVAL_MS = 30_000  # what a session takes to appear at most, once its command has started it and ended
_LARGEST_LOG = 1 << 20
_LATER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from agentmail.operations import waking;"
    " waking.carry_out_later(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))"
)


class Roused(NamedTuple):
    """What became of an attempt."""

    outcome: str  # woken, revived, injected, queued
    error: str | None = None


def is_wanted(agent: Agent) -> bool:
    """Whether there is a means for the agent's state. A sub-agent, in its parent's session, has none."""
    return agent.parent is None and (_has_means(agent) or _is_coming(agent))


def was_revived(agent: Agent) -> bool:
    """Whether the command that brought it back still runs."""
    return agent.reviver is not None and processes.is_alive(agent.reviver) is True


def rouse(spool: Spool, agent_id: int, message: int) -> Roused:
    """Wake the agent for that message, unless it is needless by now, or is under way already."""
    if settings.get(spool.db, "exec") == "off":
        wakes.done(spool.db, agent_id, message)
        return Roused("queued")
    if is_in_a_sandbox():
        return Roused("queued", "this sandbox cannot wake it; the next agentmail outside will")
    with _Turn(spool, agent_id):
        presence.park_gone(spool, [agents.by_id(spool.db, agent_id)])
        agent = agents.by_id(spool.db, agent_id)
        result = _decide(spool, agent, message)
        rest = 0 if result else agent.woken + _interval(spool) - now()
        if rest > 0:  # it stays due
            try_later(spool, agent, rest / 1000)
            result = Roused(_success(agent))
        else:
            result = result or _try(spool, agent)
            wakes.done(spool.db, agent_id, message)
        mail.note_outcome(spool.db, message, agent_id, result.outcome)
    return result


def is_in_a_sandbox() -> bool:
    """Whether what this process starts would be shut in with it, and end with it."""
    return any(name in os.environ for name in _IN_A_SANDBOX)


def carry_out_due(spool: Spool) -> None:
    """Carry out all wakes that others left: they were killed, or in a sandbox."""
    for agent, wanted in wakes.due(spool.db):
        rouse(spool, agent, wanted)


def carry_out_later(spool_path: str, seconds: float, lock: int) -> None:
    """Carry out what is due by then. `lock` keeps others from planning the same."""
    import time

    time.sleep(seconds)
    os.close(lock)  # before looking: who sets a wake due after this look plans another
    carry_out_due(open_spool(spool_path))


def clean_environment(spool_path: str) -> dict[str, str]:
    """The environment without what would make a command part of the caller's session."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_SENDER}
    return {**kept, "AGENTMAIL_SPOOL": spool_path}


def _decide(spool: Spool, agent: Agent, message: int) -> Roused | None:
    """The outcome where no command is to be run; None if one is."""
    if not wakes.is_news(spool.db, agent.id, message):
        return Roused("injected")  # it was shown meanwhile
    if agent.status == "running":
        return Roused("injected" if agent.hooks else "queued")
    if agent.status not in ("idle", "parked"):
        return Roused("queued")
    if any(locks.is_alive(spool.locks, sentry) for sentry, _ in waiters.sentries(spool.db, agent.id)):
        return Roused("woken")
    if not _has_means(agent) and _is_coming(agent):
        return Roused("revived")
    if _is_under_way(spool, agent):
        return Roused("queued", agent.wake_error) if agent.wake_error else Roused(_success(agent))
    return None


def _has_means(agent: Agent) -> bool:
    return _command(agent) is not None or _has_terminal(agent)


def _is_coming(agent: Agent) -> bool:
    """Whether it was revived a moment ago: it has yet to begin its turn, or will look for mail when it ends."""
    return agent.status == "idle" and now() - agent.woken < _REVIVAL_MS and was_revived(agent)


def _is_under_way(spool: Spool, agent: Agent) -> bool:
    """Whether the last attempt has yet to show: the agent will find this mail, too."""
    if max(agent.since, agent.active) > agent.woken:
        return False  # it has come since, and may have gone without this mail
    elapsed = now() - agent.woken
    if agent.status == "parked" and not agent.wake_error:
        is_starting = processes.is_alive(agent.reviver) if agent.reviver else elapsed < _REVIVAL_MS
        return bool(is_starting) or elapsed < _interval(spool)
    return elapsed < _interval(spool)


def _interval(spool: Spool) -> int:
    return int(settings.get(spool.db, "wake_interval_ms"))


def _try(spool: Spool, agent: Agent) -> Roused:
    if not _has_means(agent):
        return Roused("queued")
    command, process = _command(agent), None
    # Before, not after: who is killed here has perhaps started it, and it may be back before this goes on.
    agents.change(spool.db, agent.id, woken=now(), wake_error=None, reviver=processes.identify(os.getpid()))
    if command:
        try:
            process, error = _start(spool, agent, command)
        except OSError as failure:
            error = f"cannot run {command[0]}: {(failure.strerror or str(failure)).lower()}"
    else:
        from agentmail.operations import terminal

        error = terminal.type_notice(agent.terminal or "", agent.process, NOTICE)
    agents.change(spool.db, agent.id, wake_error=error, reviver=process)
    return Roused("queued", error) if error else Roused(_success(agent))


def _start(spool: Spool, agent: Agent, command: list[str]) -> tuple[str | None, str | None]:
    """(the process that runs on, what went wrong)."""
    import subprocess  # costs as much as the rest of a send, and is needed for few

    directory = agent.directory if agent.directory and os.path.isdir(agent.directory) else None
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with open(private.open_file(spool.path + "-wake.log", flags), "r+b", buffering=0) as log:
        if log.seek(0, os.SEEK_END) > _LARGEST_LOG:
            log.truncate(0)
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
        agents.change(spool.db, agent.id, reviver=identity)
        try:
            status = process.wait(_TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            return identity, None
        if status == 0:
            return None, None
        log.seek(start)
        last = log.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
    return None, f"{command[0]} failed with status {status}" + (f": {last[-1].strip()[:300]}" if last else "")


def try_later(spool: Spool, agent: Agent, seconds: float) -> None:
    """Start a process that carries out what is due by then; one per agent."""
    import subprocess
    import sys
    from fcntl import LOCK_EX, LOCK_NB, flock

    lock = private.open_file(f"{spool.locks}/later-{agent.id}", os.O_RDWR | os.O_CREAT)
    try:
        flock(lock, LOCK_EX | LOCK_NB)
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LATER, package, spool.path, str(seconds), str(lock)],
            cwd="/",
            env=clean_environment(spool.path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            start_new_session=True,
        )
    except BlockingIOError:
        pass
    finally:
        os.close(lock)


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
        private.make_directory(spool.locks)
        self._fd = private.open_file(f"{spool.locks}/wake-{agent}", os.O_RDWR | os.O_CREAT)

    def __enter__(self) -> None:
        from fcntl import LOCK_EX, flock

        flock(self._fd, LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
