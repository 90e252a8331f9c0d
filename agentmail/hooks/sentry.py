"""The sentry: a background hook that waits for mail while its session is idle. Its end, with status 2, begins a turn.

Claude Code runs a Stop hook with ``asyncRewake`` in the background after the turn; when it exits with status 2, what
it wrote on stderr starts a new turn in the idle session (seen). The mail itself comes by the other hooks of the turn.
"""

from __future__ import annotations

import time

from agentmail import processes
from agentmail.doorbell import open_doorbell
from agentmail.locks import Holder
from agentmail.operations.waking import NOTICE
from agentmail.spool import agents, mail, waiters
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.doorbell import Doorbell
    from agentmail.operations.session import Session

WATCH_SECONDS = 3500.0  # below the hour after which the harness gives it up
POLL_SECONDS = 1.0
_SETTLING_SECONDS = 10.0  # the turn's other hooks run at the same time and may go on with the turn


def stand(session: Session) -> str | None:
    """Wait; the notice with which to wake the session, None if it needs none (any more)."""
    spool, me = session.spool, session.me
    holder = Holder(spool.locks)
    try:
        with open_doorbell(spool.bells.path(me.name)) as bell:
            posted = _take_post(session, holder.token)
            if not posted:
                return NOTICE if mail.has_new(spool.db, me.id) and _is_idle(session) else None
            if me.process and processes.is_alive(me.process):
                bell.watch_process(processes.pid_of(me.process))
            return _watch(session, holder.token, bell)
    finally:
        with spool.transaction():
            waiters.relieve(spool.db, holder.token)
        holder.release()


def _take_post(session: Session, token: str) -> bool:
    """Become the sentry once the session is idle; False if its turn goes on, or mail is there already."""
    spool, me = session.spool, session.me
    deadline = time.monotonic() + _SETTLING_SECONDS
    while time.monotonic() < deadline:
        with spool.transaction():
            if waiters.stand_guard(spool.db, me.id, token):
                return True
        if _is_idle(session):
            return False
        time.sleep(0.1)
    return False


def _watch(session: Session, token: str, bell: Doorbell) -> str | None:
    spool, me = session.spool, session.me
    deadline = time.monotonic() + WATCH_SECONDS
    while time.monotonic() < deadline and waiters.is_on_guard(spool.db, token):
        if mail.has_new(spool.db, me.id):
            return NOTICE
        if me.process and processes.is_alive(me.process) is False:
            return None
        bell.wait(POLL_SECONDS)
    return None


def _is_idle(session: Session) -> bool:
    return agents.by_id(session.spool.db, session.me.id).status == "idle"
