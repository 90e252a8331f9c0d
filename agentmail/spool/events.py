"""SQL of comings and goings, and of what ambient delivery has told each agent."""

from __future__ import annotations

from agentmail.model import Event
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database

KEPT = 1000


def add(db: Database, agent: int, what: str, now: int) -> None:
    """Somebody joined, left, died or was aborted. Old events go: nobody is told of a thousand."""
    event = db.value(
        "INSERT INTO events (agent, what, ts) VALUES (:agent, :what, :now) RETURNING id",
        agent=agent,
        what=what,
        now=now,
    )
    db.run("DELETE FROM events WHERE id <= :oldest", oldest=event - KEPT)


def unheard(db: Database, agent: int) -> tuple[Event, ...]:
    """What happened to others since `agent` was told, oldest first. Sub-agents concern only their siblings."""
    rows = db.rows(
        """
        SELECT e.id, a.name, e.what, a.kind, a.directory FROM events AS e JOIN agents AS a ON a.id = e.agent
        WHERE e.id > (SELECT heard FROM agents WHERE id = :agent) AND e.agent <> :agent
          AND (a.parent IS NULL OR a.parent IS (SELECT parent FROM agents WHERE id = :agent))
        ORDER BY e.id
        """,
        agent=agent,
    )
    return tuple(Event._make(row) for row in rows)


def heard(db: Database, agent: int, event: int) -> None:
    """The agent was told of everything up to that event."""
    db.run("UPDATE agents SET heard = max(heard, :event) WHERE id = :agent", event=event, agent=agent)


def tick(db: Database, agent: int) -> int:
    """Count a user turn; the number of turns since the last post or the last round of nudges."""
    return int(db.value("UPDATE agents SET ticks = ticks + 1 WHERE id = :agent RETURNING ticks", agent=agent))


def restart_ticks(db: Database, agent: int) -> None:
    """Begin to count anew."""
    db.run("UPDATE agents SET ticks = 0 WHERE id = :agent", agent=agent)


def received(db: Database, agent: int) -> int:
    """How many messages were shown to the agent since it last read its log."""
    return int(db.value("SELECT received FROM agents WHERE id = :agent", agent=agent))


def count_received(db: Database, agent: int, number: int) -> None:
    """So many more messages were shown to the agent."""
    db.run("UPDATE agents SET received = received + :number WHERE id = :agent", number=number, agent=agent)
