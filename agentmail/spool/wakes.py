"""SQL of wakes that are due: mail is stored first, and whoever should wake its recipient may be killed in between."""

from __future__ import annotations

from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database


def set_due(db: Database, agent: int, message: int) -> None:
    """The agent has yet to be woken for that message."""
    db.run("UPDATE agents SET due = :message WHERE id = :agent", message=message, agent=agent)


def due(db: Database) -> list[tuple[int, int]]:
    """(agent, message) of every wake that nobody has carried out."""
    return db.rows("SELECT id, due FROM agents WHERE due IS NOT NULL")


def done(db: Database, agent: int, message: int) -> None:
    """The wake for that message was carried out, or is no longer wanted."""
    db.run("UPDATE agents SET due = NULL WHERE id = :agent AND due = :message", agent=agent, message=message)
