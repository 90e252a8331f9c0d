"""The sentry: a background hook that waits for mail while its session is idle. Its end, with status 2, begins a turn.

Claude Code runs a Stop hook with ``asyncRewake`` in the background after the turn; when it exits with status 2, what
it wrote on stderr starts a new turn in the idle session (seen). The mail itself comes by the other hooks of the turn.
"""

from __future__ import annotations

import os
import time

from agentmail import processes
from agentmail.clock import now
from agentmail.doorbell import open_doorbell
from agentmail.locks import Holder
from agentmail.operations.waking import NOTICE
from agentmail.spool import agents, settings, waiters, wakes
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.doorbell import Doorbell
    from agentmail.model import Agent
    from agentmail.spool import Spool

WATCH_SECONDS = 3500.0  # below the hour after which the harness gives it up
POLL_SECONDS = 1.0


def stand(spool: Spool, me: Agent) -> str | None:
    """Wait; the notice with which to wake the session, None if it needs none (any more).

    It takes its post when the turn ends, perhaps before the turn's other hooks have: they may go on with the turn. It
    calls only while the session is idle. The next sentry, or a turn that begins, relieves it.
    """
    holder = Holder(spool.locks)
    called = False
    try:
        with open_doorbell(spool.bells.path(me.name)) as bell:
            with spool.transaction():
                waiters.stand_guard(spool.db, me.id, holder.token)
            if me.process and processes.is_alive(me.process):
                bell.watch_process(processes.pid_of(me.process))
            called = _watch(spool, me, holder.token, bell)
    finally:
        if not called:
            with spool.transaction():
                waiters.relieve(spool.db, holder.token)
        holder.release()
    return NOTICE if called else None


def _watch(spool: Spool, me: Agent, token: str, bell: Doorbell) -> bool:
    deadline, parent = time.monotonic() + WATCH_SECONDS, os.getppid()
    while time.monotonic() < deadline and waiters.is_on_guard(spool.db, token):
        has_ended = os.getppid() != parent or (me.process and processes.is_alive(me.process) is False)
        if has_ended or not agents.by_id(spool.db, me.id).live:
            return False
        pause = _call(spool, me, token) if wakes.newest(spool.db, me.id) else POLL_SECONDS
        if not pause:
            return True
        bell.wait(pause)
    return False


def _call(spool: Spool, me: Agent, token: str) -> float:
    """Wake the session, and give 0; or the seconds after which to look again."""
    with spool.transaction():
        message, agent = wakes.newest(spool.db, me.id), agents.by_id(spool.db, me.id)
        if message is None or agent.status != "idle" or not waiters.is_on_guard(spool.db, token):
            return POLL_SECONDS
        rest = agent.woken + int(settings.get(spool.db, "wake_interval_ms")) - now()
        if rest > 0:
            return min(rest / 1000, POLL_SECONDS)
        waiters.fired(spool.db, token, now())
        agents.change(spool.db, me.id, woken=now(), wake_error=None, woken_for=message)
    return 0
