"""Who is there: status changes, and noticing those who went without a word."""

from __future__ import annotations

from agentmail import locks, processes
from agentmail.clock import now
from agentmail.model import Agent
from agentmail.spool import Spool, agents, mail, waiters
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# An agent whose process cannot be named (a cron job, a sandbox) counts as live for an hour after it did something.
UNSEEN_MS = 3_600_000


def set_status(spool: Spool, agent: Agent, status: str) -> Agent:
    """Change an agent's status and wake those who wait for its word."""
    with spool.transaction():
        changed = _change_status(spool, agent, status)
        waiting = waiters.waiting_for(spool.db, agent.id)
    for name in waiting:
        spool.bells.strike(name)
    return changed


def is_gone(spool: Spool, agent: Agent) -> bool:
    """Whether an agent that the spool believes live has in truth ended."""
    if not agent.live:
        return False
    unseen = now() - agent.active > UNSEEN_MS
    gone = unseen if agent.process is None else processes.is_alive(agent.process) is False
    return gone and not any(locks.is_alive(spool.locks, holder) for holder in waiters.holders(spool.db, agent.id))


def park_gone(spool: Spool, suspects: Iterable[Agent]) -> bool:
    """Park every live agent of `suspects` whose session has ended; whether there was one."""
    gone = [agent for agent in suspects if is_gone(spool, agent)]
    for agent in gone:
        set_status(spool, agent, "parked")
    return bool(gone)


def refreshed(spool: Spool, agent: Agent) -> Agent:
    """The agent with its status as it is at this moment. Inside a transaction."""
    return _change_status(spool, agent, "parked") if is_gone(spool, agent) else agent


def reap(spool: Spool, agent: int) -> None:
    """Forget an agent's dead waiters and return what dead readers had claimed. Inside a transaction."""
    dead = [holder for holder in waiters.holders(spool.db, agent) if not locks.is_alive(spool.locks, holder)]
    for holder in dead:
        waiters.leave(spool.db, holder)
    for holder in dead:
        mail.give_back(spool.db, agent, holder, perhaps_seen=True)


def _change_status(spool: Spool, agent: Agent, status: str) -> Agent:
    if agent.status == status:
        return agent
    return agents.change(spool.db, agent.id, status=status, since=now())
