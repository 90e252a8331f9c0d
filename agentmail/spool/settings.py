"""SQL of the settings that live in the spool, so that every writer obeys them."""

from __future__ import annotations

from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database


def get(db: Database, name: str) -> int | str:
    """The value of a known setting."""
    value: int | str = db.value("SELECT value FROM settings WHERE name = :name", name=name)
    return value


def all_of(db: Database) -> dict[str, int | str]:
    """Every setting."""
    return dict(db.rows("SELECT name, value FROM settings ORDER BY name"))


def put(db: Database, name: str, value: int | str) -> None:
    """Change a known setting."""
    db.run("UPDATE settings SET value = :value WHERE name = :name", name=name, value=value)
