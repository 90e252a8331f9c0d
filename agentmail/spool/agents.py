"""SQL of the directory: who exists, under which name, in which state."""

from __future__ import annotations

from agentmail.model import Agent, Announcement, Peer
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database

_COLUMNS = ", ".join(Agent._fields)
_SELECT = f"SELECT {_COLUMNS} FROM agents "


def by_id(db: Database, agent: int) -> Agent:
    """The agent with a known id."""
    found = _agent(db.row(_SELECT + "WHERE id = :agent", agent=agent))
    assert found is not None, agent  # noqa: S101 - ids come from the spool itself
    return found


def by_name(db: Database, name: str) -> Agent | None:
    """The agent of that name, in any letter case, unless it was aborted."""
    return _agent(db.row(_SELECT + "WHERE name = :name AND status <> 'aborted'", name=name))


def by_session(db: Database, session: str, kind: str) -> Agent | None:
    """The agent that belongs to a harness's session."""
    return _agent(
        db.row(
            _SELECT + "WHERE session = :session AND kind = :kind AND bound"
            " AND status <> 'aborted' ORDER BY active DESC",
            session=session,
            kind=kind,
        )
    )


def by_process(db: Database, process: str) -> Agent | None:
    """The agent that belongs to a session process."""
    return _agent(
        db.row(
            # A harness's sub-agents share its process, and their session names a part of its own.
            _SELECT + "WHERE process = :process AND bound AND instr(coalesce(session, ''), '/') = 0"
            " AND status <> 'aborted' ORDER BY active DESC",
            process=process,
        )
    )


def find(db: Database, me: Agent | None, name: str) -> Agent | None:
    """The agent of that name; a sub-agent may be called by its alias among its own kin."""
    found = by_name(db, name)
    if found is None and me is not None:
        kin = "WHERE parent = :scope AND display = :name COLLATE NOCASE AND status <> 'aborted'"
        found = _agent(db.row(_SELECT + kin, scope=me.parent or me.id, name=name))
    return found


def is_a_wake_due(db: Database) -> bool:
    """Whether somebody has yet to be woken."""
    return bool(db.value("SELECT EXISTS (SELECT 1 FROM agents WHERE due IS NOT NULL)"))


def children(db: Database, parent: int) -> list[Agent]:
    """All that ever had that parent, the oldest first."""
    return [Agent._make(row) for row in db.rows(_SELECT + "WHERE parent = :parent ORDER BY id", parent=parent)]


def live(db: Database) -> list[Agent]:
    """All running and idle agents."""
    return [Agent._make(row) for row in db.rows(_SELECT + "WHERE status IN ('running', 'idle') ORDER BY id")]


def some_live(db: Database, limit: int) -> list[Agent]:
    """Running and idle agents, all if they are few, else some by chance."""
    return [
        Agent._make(row)
        for row in db.rows(
            _SELECT + "WHERE status IN ('running', 'idle') ORDER BY random() LIMIT :limit", limit=limit
        )
    ]


def names(db: Database) -> list[str]:
    """The names of all agents that can be written to."""
    return [
        str(name)
        for (name,) in db.rows(
            "SELECT name FROM agents WHERE status NOT IN ('aborted', 'expected') ORDER BY active DESC"
        )
    ]


def was_aborted(db: Database, name: str) -> bool:
    """Whether an agent of that name was aborted."""
    return bool(db.value("SELECT 1 FROM agents WHERE name = :name AND status = 'aborted'", name=name))


def peers(db: Database, but: int | None) -> list[Peer]:
    """All agents that can be written to, except `but`: running, idle, parked; in each the most recent first."""
    rows = db.rows(
        """
        SELECT a.name, a.display, a.kind, a.status,
               (SELECT count(*) FROM receipts WHERE recipient = a.id AND state = 'pending'),
               (SELECT name FROM agents WHERE id = a.parent), a.active,
               (SELECT text FROM statuses WHERE agent = a.id ORDER BY id DESC LIMIT 1), a.directory
        FROM agents AS a
        WHERE a.status IN ('running', 'idle', 'parked') AND a.id IS NOT :but
        ORDER BY CASE a.status WHEN 'running' THEN 0 WHEN 'idle' THEN 1 ELSE 2 END, a.active DESC
        """,
        but=but,
    )
    return [Peer._make(row) for row in rows]


def add(db: Database, *, now: int, **columns: object) -> Agent:
    """A new row with the given columns."""
    columns.update(since=now, active=now)
    given = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    row = db.row(f"INSERT INTO agents ({given}) VALUES ({values}) RETURNING {_COLUMNS}", **columns)
    return Agent._make(row or ())


def change(db: Database, agent: int, **columns: object) -> Agent:
    """Set columns of an agent."""
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    db.run(f"UPDATE agents SET {changes} WHERE id = :agent", agent=agent, **columns)
    return by_id(db, agent)


def touch(db: Database, agent: int, now: int) -> None:
    """The agent did something."""
    db.run("UPDATE agents SET active = :now WHERE id = :agent", now=now, agent=agent)


def announce(db: Database, agent: int, text: str, now: int) -> None:
    """Add to what the agent said that it works on; the last 50 are kept."""
    db.run("INSERT INTO statuses (agent, text, ts) VALUES (:agent, :text, :now)", agent=agent, text=text, now=now)


def announcements(db: Database, agent: int) -> list[Announcement]:
    """What the agent said that it works on, newest last."""
    return [
        Announcement(*row)
        for row in db.rows("SELECT text, ts FROM statuses WHERE agent = :agent ORDER BY id", agent=agent)
    ]


def has_announced(db: Database, agent: int) -> bool:
    """Whether the agent has ever said what it works on."""
    return bool(db.value("SELECT EXISTS (SELECT 1 FROM statuses WHERE agent = :agent)", agent=agent))


def remind_less(db: Database, agent: int, shown: int) -> None:
    """The agent has read that many messages again."""
    if db.value("SELECT received FROM agents WHERE id = :agent", agent=agent):
        db.run("UPDATE agents SET received = max(0, received - :shown) WHERE id = :agent", shown=shown, agent=agent)


def untold_drops(db: Database, agent: int) -> int:
    """How many messages the agent lost to its full mailbox and has not been told of."""
    return int(db.value("SELECT untold FROM agents WHERE id = :agent", agent=agent))


def told_of_drops(db: Database, agent: int, count: int) -> None:
    """The agent was told of that many, unless another of its readers has just told it the same."""
    db.run(
        "UPDATE agents SET untold = untold - :count WHERE id = :agent AND untold >= :count", count=count, agent=agent
    )


def _agent(row: tuple[object, ...] | None) -> Agent | None:
    return Agent._make(row) if row else None
