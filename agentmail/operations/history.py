"""``show`` and ``log``: what was said, and what became of it. Consumes nothing."""

from __future__ import annotations

from agentmail.model import Agent, Message, Stages
from agentmail.spool import Spool, agents, channels, mail


def stages(spool: Spool, message: Message) -> tuple[Stages, ...]:
    """The life of each receipt of a message."""
    return mail.stages(spool.db, message.id)


def log(spool: Spool, agent: Agent | None, other: Agent | None, limit: int) -> tuple[Message, ...]:
    """The newest messages of `agent` (of everybody, if None), with `other` only if named; oldest first.

    With the posts of its channels, unless `other` is named. What an agent reads here it need not be reminded of.
    """
    found = mail.history(spool.db, agent.id if agent else None, other.id if other else None, limit)
    if other is None:
        for channel in channels.read_by(spool.db, agent.id if agent else None):
            found += channels.posts(spool.db, channel, limit)
    # A mention is in the mailbox and in the channel: the post, later in `found`, stands for both.
    newest = sorted({(item.id, item.to if not item.channel else ""): item for item in found}.values())
    shown = tuple(newest[-limit:]) if limit else ()
    if agent:
        agents.remind_less(spool.db, agent.id, len(shown))
    return shown
