"""Who is there: status changes, and noticing those who went without a word."""

from __future__ import annotations

from agentmail import locks, processes
from agentmail.clock import now
from agentmail.model import Agent
from agentmail.spool import Spool, agents, events, mail, waiters

# An agent whose process cannot be named (a cron job, a sandbox), or not be seen (another pid namespace), counts as
# live for an hour after it did something.
UNSEEN_MS = 3_600_000
CALL_MS = 10_000  # in which a turn begins that a sentry has called for


def set_status(spool: Spool, agent: Agent, status: str, *, died: bool = False) -> Agent:
    """Change an agent's status and wake those who wait for its word."""
    with spool.transaction():
        changed = change_status(spool, agent, status, died=died)
        waiting = waiters.waiting_for(spool.db, agent.id)
    for name in waiting:
        spool.bells.strike(name)
    return changed


def is_gone(spool: Spool, agent: Agent) -> bool:
    """Whether an agent that the spool believes live has in truth ended."""
    return bool(_gone(spool, [agent]))


def park_gone(spool: Spool, suspects: list[Agent]) -> bool:
    """Park every live agent of `suspects` whose session has ended; whether there was one."""
    suspects = _gone(spool, suspects)
    if not suspects:
        return False
    with spool.transaction():
        # Others may have noticed too, or the session may have come back since.
        gone = _gone(spool, [agents.by_id(spool.db, agent.id) for agent in suspects])
        for agent in gone:
            change_status(spool, agent, _end_of(agent), died=True)
        waiting = [name for agent in gone for name in waiters.waiting_for(spool.db, agent.id)]
    for name in waiting:
        spool.bells.strike(name)
    return bool(gone)


def refreshed(spool: Spool, known: list[Agent]) -> list[Agent]:
    """The agents with their status as it is at this moment. Inside a transaction."""
    gone = {agent.id: change_status(spool, agent, _end_of(agent), died=True) for agent in _gone(spool, known)}
    return [gone.get(agent.id, agent) for agent in known] if gone else known


def reap(spool: Spool, agent: int | None) -> None:
    """Forget an agent's dead waiters and return what dead readers had claimed; None: anybody's. In a transaction."""
    dead = [
        (owner, holder)
        for owner, holder in waiters.holders(spool.db, agent)
        if not locks.is_alive(spool.locks, holder)
    ]
    for _, holder in dead:
        waiters.leave(spool.db, holder)
    for holder, fired in waiters.sentries(spool.db, agent):
        if not locks.is_alive(spool.locks, holder) and now() - (fired or 0) > CALL_MS:
            waiters.relieve(spool.db, holder)
    for owner, holder in dead:
        mail.give_back(spool.db, owner, holder, perhaps_seen=True)


def _end_of(agent: Agent) -> str:
    """What becomes of an agent whose session ended: nobody revives a sub-agent."""
    return "aborted" if agent.parent and agent.bound else "parked"


def _gone(spool: Spool, suspects: list[Agent]) -> list[Agent]:
    alive: dict[str | None, bool | None] = {}  # many agents may share a process
    time = now()
    gone = []
    for agent in suspects:
        if not agent.live:
            continue
        if agent.process and agent.process not in alive:
            alive[agent.process] = processes.is_alive(agent.process)
        lives = alive.get(agent.process)
        ended = time - agent.active > UNSEEN_MS if lives is None else not lives
        if ended and not _holds_a_lock(spool, agent, lives):
            gone.append(agent)
    return gone


def _holds_a_lock(spool: Spool, agent: Agent, lives: bool | None) -> bool:
    tokens = [token for _, token in waiters.holders(spool.db, agent.id)]
    if lives is None:  # a sentry outlives its session by a moment
        tokens += [token for token, _ in waiters.sentries(spool.db, agent.id)]
    return any(locks.is_alive(spool.locks, token) for token in tokens)


def change_status(spool: Spool, agent: Agent, status: str, *, died: bool = False) -> Agent:
    """Change an agent's status; the comings and goings of bound ones are events. In a transaction.

    What others have changed meanwhile counts; an aborted one stays so.
    """
    agent = agents.by_id(spool.db, agent.id)
    if agent.status in (status, "aborted"):
        return agent
    time = now()
    changed = agents.change(spool.db, agent.id, status=status, since=time, active=agent.active if died else time)
    if agent.bound and agent.live != changed.live:
        what = "joined" if changed.live else "aborted" if status == "aborted" else "died" if died else "left"
        events.add(spool.db, agent.id, what, now())
    return changed
