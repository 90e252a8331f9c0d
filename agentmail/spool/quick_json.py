"""JSON by SQLite's own functions: importing ``json`` costs a quarter of a hook, and SQLite is there anyway."""

from __future__ import annotations

import _sqlite3 as sqlite3  # what `sqlite3` is made of, without its converters of dates: a fifth of a cold start

from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_database = sqlite3.connect(":memory:", check_same_thread=False)

_database.text_factory = lambda data: data.decode("utf-8", "replace")  # JSON can hold half a character


def read_object(text: str) -> dict[str, Any]:
    """The members of a JSON object; one that is an object or a list itself comes as its JSON text.

    Raises `ValueError` if `text` is something else.
    """
    try:
        if _database.execute("SELECT json_type(?)", (text,)).fetchone()[0] == "object":
            return dict(_database.execute("SELECT key, value FROM json_each(?)", (text,)))
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error
    raise ValueError("no JSON object")


def put(text: str, path: str, value: str) -> str:
    """The JSON `text` with the JSON `value` put at `path`."""
    return str(_database.execute("SELECT json_set(?, ?, json(?))", (text, path, value)).fetchone()[0])


def write(value: dict[str, Any] | str) -> str:
    """The JSON text of a string, or of an object of strings and objects, on one line."""
    if isinstance(value, str):
        return str(_database.execute("SELECT json_quote(?)", (value,)).fetchone()[0])
    return "{" + ",".join(f"{write(key)}:{write(member)}" for key, member in value.items()) + "}"
