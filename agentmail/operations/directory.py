"""``list``, ``status``, ``park``, ``abort``: who is there and what they do."""

from __future__ import annotations

from agentmail.clock import now
from agentmail.errors import BadInput
from agentmail.model import Agent, Announcement, Peer
from agentmail.operations import presence
from agentmail.operations.session import Session
from agentmail.spool import Spool, agents

LONGEST_STATUS = 300  # characters; seed 004


def peers(spool: Spool, me: Agent | None) -> list[Peer]:
    """Everybody else who can be written to, as they are at this moment."""
    presence.park_gone(spool, agents.live(spool.db))
    return agents.peers(spool.db, me.id if me else None)


def named(spool: Spool, me: Agent | None, name: str) -> Agent:
    """The agent of that name. Raises `BadInput` with the names that exist."""
    agent = agents.find(spool.db, me, name.strip())
    if agent is None:
        known = ", ".join(agents.names(spool.db)) or "nobody has registered yet"
        raise BadInput(f"no agent {name.strip()!r}; known: {known}")
    return agent


def announce(session: Session, text: str) -> None:
    """Tell the others what one works on. It wakes nobody. Raises `BadInput` if it is empty or too long."""
    text = text.strip()
    if not text:
        raise BadInput("the status is empty; write what you work on")
    if len(text) > LONGEST_STATUS:
        raise BadInput(f"the status has {len(text)} characters and the limit is {LONGEST_STATUS}; shorten it")
    with session.spool.transaction():
        agents.announce(session.spool.db, session.me.id, text, now())
        agents.touch(session.spool.db, session.me.id, now())


def announcements(session: Session) -> list[Announcement]:
    """What one has announced so far, newest last."""
    return agents.announcements(session.spool.db, session.me.id)


def park(session: Session) -> Agent:
    """End one's own session; mail waits for the next one."""
    return presence.set_status(session.spool, session.me, "parked")


def abort(spool: Spool, name: str) -> Agent:
    """Remove an agent for good. Its unread mail is dropped, and the name starts anew if it is used again."""
    return presence.set_status(spool, named(spool, None, name), "aborted")


def set_state(session: Session, state: str) -> Agent:
    """Begin (running) or end (idle) a turn."""
    return presence.set_status(session.spool, session.me, state)
