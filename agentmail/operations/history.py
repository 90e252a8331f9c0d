"""``show`` and ``log``: what was said, and what became of it. Consumes nothing."""

from __future__ import annotations

from agentmail.model import Agent, Message, Stages
from agentmail.spool import Spool, agents, channels, mail


def stages(spool: Spool, message: Message) -> tuple[Stages, ...]:
    """The life of each receipt of a message."""
    return mail.stages(spool.db, message.id)


def log(spool: Spool, agent: Agent | None, other: Agent | None, limit: int) -> tuple[Message, ...]:
    """The newest messages of `agent` (of everybody, if None), with `other` only if named; oldest first.

    With the posts of its channels, unless `other` is named.
    """
    found = mail.history(spool.db, agent.id if agent else None, other.id if other else None, limit)
    if other is None:
        for channel in channels.read_by(spool.db, agent.id if agent else None):
            found += channels.posts(spool.db, channel, limit)
    # A mention is in the mailbox and in the channel: the post, later in `found`, stands for both.
    newest = sorted({(item.id, item.to if not item.channel else ""): item for item in found}.values())
    return tuple(newest[-limit:]) if limit else ()


def depth(spool: Spool, agent: Agent, received: int) -> int:
    """How many of the newest lines of an agent's log hold the last `received` messages that others wrote."""
    limit = received
    while True:
        found = log(spool, agent, None, limit)
        places = [place for place, item in enumerate(reversed(found), 1) if item.sender != agent.name]
        if len(places) >= received:
            return places[received - 1]
        if len(found) < limit:
            return limit
        limit *= 2


def note_read_again(spool: Spool, agent: Agent, shown: tuple[Message, ...]) -> None:
    """The agent has read these again: it need not be reminded of them."""
    agents.remind_less(spool.db, agent.id, sum(item.sender != agent.name for item in shown))
