"""SQL of channels: membership, posts, and the two marks of each member."""

from __future__ import annotations

from agentmail.model import Channel, Message
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database

# What a member has not written itself, nor got as a mention into its mailbox.
_NEWS = """
    m.channel = :channel AND m.id > :after AND m.sender <> :agent
    AND NOT EXISTS (SELECT 1 FROM receipts WHERE message = m.id AND recipient = :agent)
"""
_POSTS = """
    SELECT m.id, NULL, s.name, '+' || c.name, m.body, m.ts, m.reply_to, m.verified, 0, c.name, m.automatic
    FROM messages AS m JOIN agents AS s ON s.id = m.sender JOIN channels AS c ON c.id = m.channel
"""


def by_name(db: Database, name: str) -> tuple[int, str] | None:
    """(id, name) of a channel, in any letter case."""
    return db.row("SELECT id, name FROM channels WHERE name = :name", name=name)


def create(db: Database, name: str) -> int:
    """A new channel."""
    return int(db.value("INSERT INTO channels (name) VALUES (:name) RETURNING id", name=name))


def join(db: Database, channel: int, agent: int) -> None:
    """Become a member, from now on; nothing if one is already."""
    db.run(
        """
        INSERT INTO members (channel, agent, offered, read)
        SELECT :channel, :agent, seq, seq FROM (
          SELECT coalesce(max(seq), 0) AS seq FROM sqlite_sequence WHERE name = 'messages') WHERE true
        ON CONFLICT DO NOTHING
        """,
        channel=channel,
        agent=agent,
    )


def leave(db: Database, channel: int, agent: int) -> bool:
    """End a membership; whether there was one."""
    return db.run("DELETE FROM members WHERE channel = :channel AND agent = :agent", channel=channel, agent=agent) > 0


def others(db: Database, channel: int, agent: int) -> list[tuple[int, str]]:
    """(id, name) of the members besides `agent` that can be written to."""
    return db.rows(
        "SELECT a.id, a.name FROM members AS m JOIN agents AS a ON a.id = m.agent"
        " WHERE m.channel = :channel AND a.id <> :agent AND a.status IN ('running', 'idle', 'parked')",
        channel=channel,
        agent=agent,
    )


def marks(db: Database, channel: int, agent: int) -> tuple[int, int] | None:
    """(offered, read) of a member, None if it is none."""
    return db.row(
        "SELECT offered, read FROM members WHERE channel = :channel AND agent = :agent", channel=channel, agent=agent
    )


def memberships(db: Database, agent: int) -> list[tuple[int, str, int, int]]:
    """(channel, name, offered, read) of each membership, the hub first."""
    return db.rows(
        "SELECT c.id, c.name, m.offered, m.read FROM members AS m JOIN channels AS c ON c.id = m.channel"
        " WHERE m.agent = :agent ORDER BY c.id",
        agent=agent,
    )


def read_by(db: Database, agent: int | None) -> list[int]:
    """The channels that an agent is in; None: all."""
    rows = db.rows(
        "SELECT id FROM channels WHERE :agent IS NULL"
        " OR EXISTS (SELECT 1 FROM members WHERE channel = channels.id AND agent = :agent)",
        agent=agent,
    )
    return [int(channel) for (channel,) in rows]


def advance(db: Database, channel: int, agent: int, *, offered: int = 0, read: int = 0) -> None:
    """Move marks forward, never back."""
    db.run(
        "UPDATE members SET offered = max(offered, :offered, :read), read = max(read, :read)"
        " WHERE channel = :channel AND agent = :agent",
        offered=offered,
        read=read,
        channel=channel,
        agent=agent,
    )


def count_news(db: Database, channel: int, agent: int, after: int) -> int:
    """How many posts of others there are after a mark."""
    return int(
        db.value(
            f"SELECT count(*) FROM messages AS m WHERE {_NEWS}",
            channel=channel,
            agent=agent,
            after=after,
        )
    )


def count_since_unread(db: Database, channel: int, agent: int, read: int) -> int:
    """How many posts there are, anybody's, from the first that the agent has not read."""
    return int(
        db.value(
            "SELECT count(*) FROM messages WHERE channel = :channel"
            f" AND id >= (SELECT min(m.id) FROM messages AS m WHERE {_NEWS})",
            channel=channel,
            agent=agent,
            after=read,
        )
    )


def news(
    db: Database, channel: int, agent: int, after: int, limit: int, *, newest: bool = False
) -> tuple[Message, ...]:
    """Posts of others after a mark, oldest first: the first `limit` of them, or with `newest` the last."""
    order = "DESC" if newest else "ASC"
    rows = db.rows(
        f"{_POSTS} WHERE {_NEWS} ORDER BY m.id {order} LIMIT :limit",
        channel=channel,
        agent=agent,
        after=after,
        limit=limit,
    )
    return tuple(Message._make(row) for row in (reversed(rows) if newest else rows))


def posts(db: Database, channel: int, limit: int) -> tuple[Message, ...]:
    """The newest posts, oldest first."""
    rows = db.rows(
        f"{_POSTS} WHERE m.channel = :channel ORDER BY m.id DESC LIMIT :limit", channel=channel, limit=limit
    )
    return tuple(Message._make(row) for row in reversed(rows))


def everything(db: Database, agent: int | None) -> list[Channel]:
    """All channels; unread is what `agent` has not seen whole of those it is in."""
    rows = db.rows(
        """
        SELECT c.id, c.name,
               (SELECT count(*) FROM members AS m JOIN agents AS a ON a.id = m.agent
                WHERE m.channel = c.id AND a.status IN ('running', 'idle', 'parked')),
               (SELECT read FROM members WHERE channel = c.id AND agent = :agent)
        FROM channels AS c ORDER BY c.id
        """,
        agent=agent,
    )
    return [
        Channel(
            name,
            members,
            int(read is not None),
            0 if agent is None or read is None else count_news(db, channel, agent, read),
        )
        for channel, name, members, read in rows
    ]
