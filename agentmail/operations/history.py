"""``show`` and ``log``: what was said, and what became of it. Consumes nothing."""

from __future__ import annotations

from agentmail.model import Agent, Message, Stages
from agentmail.spool import Spool, mail


def stages(spool: Spool, message: Message) -> tuple[Stages, ...]:
    """The life of each receipt of a message."""
    return mail.stages(spool.db, message.id)


def log(spool: Spool, agent: Agent | None, other: Agent | None, limit: int) -> tuple[Message, ...]:
    """The newest messages of `agent` (of everybody, if None), with `other` only if named; oldest first."""
    return mail.history(spool.db, agent.id if agent else None, other.id if other else None, limit)
