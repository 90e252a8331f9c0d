"""SQL of those who wait. The schema matches them with mail: a waiter that got some is gone from the table."""

from __future__ import annotations

from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database


def register(
    db: Database,
    agent: int,
    holder: str,
    *,
    asked: float | str | None,
    sender: int | None = None,
    after: int = 0,
    answers: int | None = None,
    channel: int | None = None,
) -> int:
    """Begin to wait; give the timeout in milliseconds, 0 for none.

    The normalization is the table's: nothing asked takes the setting; not a finite number, or negative, the default.
    """
    return int(
        db.value(
            """
            INSERT INTO waiters (agent, holder, sender, after, answers, channel, asked)
            VALUES (:agent, :holder, :sender, :after, :answers, :channel,
                    coalesce(:asked, (SELECT value FROM settings WHERE name = 'timeout_ms')))
            RETURNING timeout_ms
            """,
            agent=agent,
            holder=holder,
            sender=sender,
            after=after,
            answers=answers,
            channel=channel,
            asked=asked,
        )
    )


def leave(db: Database, holder: str) -> None:
    """No longer wait."""
    db.run("DELETE FROM waiters WHERE holder = :holder", holder=holder)


def holders(db: Database, agent: int | None) -> list[tuple[int, str]]:
    """(agent, lock) of all that wait for, or have claimed, mail of that agent; None: of anybody."""
    if agent is None:
        return db.rows(
            "SELECT agent, holder FROM waiters UNION SELECT recipient, holder FROM receipts WHERE state = 'claimed'"
        )
    return db.rows(
        "SELECT agent, holder FROM waiters WHERE agent = :agent"
        " UNION SELECT recipient, holder FROM receipts WHERE recipient = :agent AND state = 'claimed'",
        agent=agent,
    )


def stand_guard(db: Database, agent: int, holder: str) -> None:
    """Become the agent's only sentry."""
    db.run("DELETE FROM sentries WHERE agent = :agent", agent=agent)
    db.run("INSERT INTO sentries (agent, holder) VALUES (:agent, :holder)", agent=agent, holder=holder)
    db.run("UPDATE agents SET guarded = 1 WHERE id = :agent", agent=agent)


def is_on_guard(db: Database, holder: str) -> bool:
    """Whether the agent still needs this sentry."""
    return bool(db.value("SELECT 1 FROM sentries WHERE holder = :holder", holder=holder))


def relieve(db: Database, holder: str) -> None:
    """No longer be a sentry."""
    db.run("DELETE FROM sentries WHERE holder = :holder", holder=holder)


def fired(db: Database, holder: str, now: int) -> None:
    """The sentry calls, and goes."""
    db.run("UPDATE sentries SET fired = :now WHERE holder = :holder", now=now, holder=holder)


def sentries(db: Database, agent: int | None) -> list[tuple[str, int | None]]:
    """(lock, when it called) of an agent's sentries; None: of everybody's."""
    return db.rows("SELECT holder, fired FROM sentries WHERE :agent IS NULL OR agent = :agent", agent=agent)


def waiting_for(db: Database, peer: int) -> list[str]:
    """The names of the agents that wait for mail from `peer` only."""
    return [
        str(name)
        for (name,) in db.rows(
            "SELECT DISTINCT a.name FROM waiters AS w JOIN agents AS a ON a.id = w.agent WHERE w.sender = :peer",
            peer=peer,
        )
    ]


def awaited_by(db: Database, agent: int) -> list[tuple[int, str]]:
    """(peer, lock) of each of the agent's waits for one particular peer."""
    return db.rows("SELECT sender, holder FROM waiters WHERE agent = :agent AND sender IS NOT NULL", agent=agent)


def waiting_in(db: Database, channel: int) -> list[str]:
    """The names of the agents that wait for a post in a channel."""
    return [
        str(name)
        for (name,) in db.rows(
            "SELECT DISTINCT a.name FROM waiters AS w JOIN agents AS a ON a.id = w.agent WHERE w.channel = :channel",
            channel=channel,
        )
    ]


def older_in(db: Database, channel: int, agent: int, holder: str) -> list[str]:
    """The locks of the agent's waits for a post in a channel that began before the one of `holder`."""
    return [
        str(other)
        for (other,) in db.rows(
            "SELECT holder FROM waiters WHERE agent = :agent AND channel = :channel"
            " AND id < (SELECT id FROM waiters WHERE holder = :holder)",
            agent=agent,
            channel=channel,
            holder=holder,
        )
    ]
