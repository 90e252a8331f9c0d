"""SQL of retention: what may go, taken in small bites so that no writer waits long."""

from __future__ import annotations

from agentmail.spool.mail import EPOCH, LOW_BITS
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database

_UNREAD = "EXISTS (SELECT 1 FROM receipts AS r WHERE r.message = m.id AND r.state IN ('pending', 'claimed'))"


def old_messages(db: Database, *, before: int, above: int | None, unread: bool, limit: int) -> list[int]:
    """Ids of messages from before a time, or beyond the newest `above`; unread mail only if asked for.

    An id tells its time, so this walks along the table's own order and stops where the young ones begin.
    """
    oldest_kept = max(0, before - EPOCH) << LOW_BITS
    if above is not None:
        beyond = db.value("SELECT id FROM messages ORDER BY id DESC LIMIT 1 OFFSET :above", above=above)
        oldest_kept = max(oldest_kept, 0 if beyond is None else int(beyond) + 1)
    rows = db.rows(
        f"""
        SELECT m.id FROM messages AS m WHERE m.id < :oldest_kept AND (:unread OR NOT {_UNREAD})
        ORDER BY m.id LIMIT :limit
        """,
        oldest_kept=oldest_kept,
        unread=int(unread),
        limit=limit,
    )
    return [int(message) for (message,) in rows]


def remove_messages(db: Database, messages: list[int]) -> None:
    """Remove messages with their receipts."""
    db.run_many("DELETE FROM messages WHERE id = :message", [{"message": message} for message in messages])


def remove_aborted(db: Database, before: int) -> int:
    """Remove agents that were aborted before a time and that no message speaks of any more; their number."""
    return db.run(
        """
        DELETE FROM agents WHERE status = 'aborted' AND since < :before
          AND NOT EXISTS (SELECT 1 FROM messages WHERE sender = agents.id)
          AND NOT EXISTS (SELECT 1 FROM receipts WHERE recipient = agents.id)
          AND NOT EXISTS (SELECT 1 FROM agents AS child WHERE child.parent = agents.id)
        """,
        before=before,
    )


def all_names(db: Database) -> set[str]:
    """The names of all agents that are not aborted, in lower case."""
    return {str(name).lower() for (name,) in db.rows("SELECT name FROM agents WHERE status <> 'aborted'")}


def live_sessions(db: Database) -> set[str]:
    """The session ids of running and idle agents."""
    rows = db.rows("SELECT session FROM agents WHERE status IN ('running', 'idle') AND session IS NOT NULL")
    return {str(session).partition("/")[0] for (session,) in rows}


def shrink(db: Database, *, vacuum: bool) -> None:
    """Move the log into the spool; with `vacuum` also give free pages back to the disk."""
    if vacuum:
        db.run("VACUUM")
    db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
