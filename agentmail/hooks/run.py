"""One call of a hook: event in, answer out. Whatever goes wrong is a line in the debug log, never a failure."""

from __future__ import annotations

from agentmail import private, processes
from agentmail.clock import now
from agentmail.errors import NameTaken
from agentmail.hooks import harnesses
from agentmail.hooks.compose import compose
from agentmail.identity import Caller
from agentmail.operations import ambient, presence
from agentmail.operations import session as sessions
from agentmail.operations.ambient import STEP, STOP
from agentmail.spool import Spool, agents, open_spool, waiters
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmail.hooks.harnesses import Signal
    from agentmail.model import Agent
    from agentmail.operations.session import Session


MOST_CONTINUATIONS = 6  # Claude Code prolongs a turn eight times, and then drops what it is told at its end (seen)


def run(kind: str, event: bytes, spool_path: str, write: Callable[[str], None]) -> None:
    """Answer an event of the harness `kind` through `write`, which raises if the answer was not taken."""
    signal = harnesses.read(kind, event)
    if signal.moment == harnesses.TOOL:
        answer = _check_tool(signal, spool_path)
        if answer:
            write(answer)
        return
    spool = open_spool(spool_path)
    if signal.moment == harnesses.END:
        _end(spool, signal)
        return
    if _is_left_over(spool, signal):
        return
    session = _enter(spool, signal)
    told = False
    try:
        if signal.harness is harnesses.OPENCODE or (signal.harness is harnesses.OMP and not signal.reaches):
            from agentmail.hooks import opencode

            opencode.answer(session, signal, write)
        else:
            told = signal.reaches and not _has_gone_on_for_long(session, signal) and _deliver(session, signal, write)
    finally:
        _move(session, signal, told)
    if agents.is_a_wake_due(spool.db):
        from agentmail.operations import waking

        waking.carry_out_due(spool)  # hooks run outside the sandbox that a sender may be in


def _is_left_over(spool: Spool, signal: Signal) -> bool:
    """Whether the session was killed and this hook of it runs on: it must not bring the session back."""
    me = agents.by_session(spool.db, signal.session, signal.harness.kind)
    if not me or not me.process or processes.is_alive(me.process) is not False:
        return False
    return Caller.of_hook(signal.harness.kind, signal.session, signal.directory).process is None


def until_mail(kind: str, event: bytes, spool_path: str) -> str | None:
    """Stand sentry for the session of the event; the notice that wakes it, None if that is not wanted."""
    signal = harnesses.read(kind, event)
    if signal.subagent:
        return None
    from agentmail.hooks import sentry

    spool = open_spool(spool_path)
    # Registers nobody: the session may have ended before this got that far.
    me = agents.by_session(spool.db, signal.session, signal.harness.kind)
    return sentry.stand(spool, me) if me and me.live else None


def _enter(spool: Spool, signal: Signal) -> Session:
    """The session of the event, registered and known to have hooks; the sub-agent's, if it is about one."""
    session = _session_of(spool, Caller.of_hook(signal.harness.kind, signal.session, signal.directory))
    if not session.me.hooks or signal.moment != STEP:
        with spool.transaction():
            session = session._replace(me=agents.change(spool.db, session.me.id, hooks=1, active=now()))
    spool.bells.link(signal.session, session.me.name)
    if signal.subagent:
        from agentmail.operations import subagents

        session = subagents.enter(spool, session.me, signal.subagent, signal.subagent_type)
        spool.bells.link(signal.session, session.me.name)
    return session


def _session_of(spool: Spool, caller: Caller) -> Session:
    try:
        if caller.named and not sessions.find(spool, caller).verified:
            return sessions.register(spool, caller, caller.named)
    except NameTaken:
        caller.named = None  # another live session has it: go by the directory
    return sessions.enter(spool, caller)


def _end(spool: Spool, signal: Signal) -> None:
    """The session has ended, and with it its sub-agents; after a /clear its process goes on under another id."""
    from agentmail.operations import subagents

    me = agents.by_session(spool.db, signal.session, signal.harness.kind)
    spool.bells.unlink(signal.session)
    if me:
        subagents.end_all(spool, me)
        if signal.reason != "clear":
            _rest(spool, me, "parked")


def _deliver(session: Session, signal: Signal, write: Callable[[str], None]) -> bool:
    with ambient.gather(session, signal.moment) as delivery:
        composed = compose(delivery.found)
        if composed.text:
            write(harnesses.deliver(signal, composed.text))
            delivery.tell(composed.told)
    return bool(composed.text)


def _has_gone_on_for_long(session: Session, signal: Signal) -> bool:
    return signal.moment == STOP and session.me.continued >= MOST_CONTINUATIONS


def _move(session: Session, signal: Signal, told: bool) -> None:
    """Change the status as the event says. Text at the end of a turn begins another."""
    if signal.mid_session:
        return
    if signal.moment in (ambient.START, ambient.AGAIN):
        status = "running" if signal.subagent else "idle"
    elif signal.moment == STOP and not told:
        if signal.subagent:
            from agentmail.operations import subagents

            subagents.end(session.spool, session.me)
        else:
            _rest(session.spool, session.me, "idle")
        return
    else:
        status = "running"
        count = session.me.continued + 1 if signal.moment == STOP else 0
        if signal.moment in (ambient.PROMPT, STOP) and count != session.me.continued:
            with session.spool.transaction():
                agents.change(session.spool.db, session.me.id, continued=count)
    presence.set_status(session.spool, session.me, status)


def _rest(spool: Spool, me: Agent, status: str) -> None:
    """Be idle, or parked. Mail that came too late to be shown, as its sender was told that it would be, wakes again.

    But who quits is not brought back; only who was revived is.
    """
    from agentmail.spool import wakes

    with spool.transaction():
        me = presence.change_status(spool, me, status)
        waiting = waiters.waiting_for(spool.db, me.id)
        news = wakes.newest(spool.db, me.id)
        if news:
            from agentmail.operations import waking

            if waking.is_wanted(me) and (me.live or waking.was_revived(me)):
                wakes.set_due(spool.db, me.id, news)
                if not me.live:
                    waking.try_later(spool, me, 1.0)  # once this session's process has ended
    for name in waiting:
        spool.bells.strike(name)


def _check_tool(signal: Signal, spool_path: str) -> str | None:
    if not signal.command or "agentmail" not in signal.command:
        return None
    from agentmail.hooks import shell

    call = shell.eaten(signal.command)
    if call:
        form = shell.safe_form(call)
        return harnesses.refuse(signal, f"The shell would run or replace part of this message. Send it as:\n{form}")
    # A sub-agent's shell has its parent's environment: without a name the call would be the parent's.
    if not (signal.subagent and signal.harness in harnesses.REWRITES and shell.calls_unnamed(signal.command)):
        return None
    name = f"AGENTMAIL_AGENT={_enter(open_spool(spool_path), signal).me.name}"
    if shell.is_plain_call(signal.command):
        return harnesses.replace(signal, f"{name} {signal.command.lstrip()}")
    return harnesses.refuse(
        signal, f"This would speak for your parent. Call agentmail alone, or with {name} before it."
    )


def log(path: str, kind: str, error: BaseException) -> None:
    """A line in the debug log beside the spool; the log starts anew when it has grown large."""
    import os

    if not path:
        return  # not even where the spool would be is known
    line = " ".join(f"{now()} {kind} {type(error).__name__}: {error}".split())
    try:
        fd = private.open_file(path + "-hook.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
        try:
            if os.fstat(fd).st_size > 1 << 18:
                os.ftruncate(fd, 0)
            os.write(fd, line.encode("utf-8", "replace") + b"\n")
        finally:
            os.close(fd)
    except OSError:
        pass
