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


def is_news(db: Database, agent: int, message: int) -> bool:
    """Whether that message is pending and was not shown yet: what was presented wakes nobody again."""
    return bool(
        db.value(
            "SELECT 1 FROM receipts WHERE message = :message AND recipient = :agent"
            " AND state = 'pending' AND (offered IS NULL OR redelivered)",
            message=message,
            agent=agent,
        )
    )


def newest(db: Database, agent: int) -> int | None:
    """The newest pending message that was not shown yet, and for which no sentry has called."""
    found = db.value(
        "SELECT max(message) FROM receipts WHERE recipient = :agent AND state = 'pending'"
        " AND (offered IS NULL OR redelivered) AND message > (SELECT woken_for FROM agents WHERE id = :agent)",
        agent=agent,
    )
    return None if found is None else int(found)


def done(db: Database, agent: int, message: int) -> None:
    """The wake for that message was carried out, or is no longer wanted."""
    db.run("UPDATE agents SET due = NULL WHERE id = :agent AND due = :message", agent=agent, message=message)
