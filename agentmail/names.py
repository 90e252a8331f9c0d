"""Names of agents: what is allowed, and what a directory or a person is called by itself."""

from __future__ import annotations

import os

from agentmail.errors import BadInput
from agentmail.model import EVERYBODY

_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_LATER = _FIRST | frozenset("._-")
LETTERS = "".join(sorted(_LATER))
LONGEST = 64


def check(name: str) -> str:
    """`name` without surrounding space. Raises `BadInput` unless it is ``[A-Za-z0-9][A-Za-z0-9._-]{0,63}``."""
    name = name.strip()
    if not name or name[0] not in _FIRST or not _LATER.issuperset(name) or len(name) > LONGEST:
        raise BadInput(f"{name!r} is no agent name; use letters, digits, '.', '_' and '-', {LONGEST} at most")
    if name.lower() == EVERYBODY:
        raise BadInput(f"{name!r} means everybody and cannot be a name; choose another")
    return name


def from_directory(kind: str, directory: str) -> str:
    """``<kind>-<6 hex>`` of a directory: SHA-256 over the resolved path, no newline (ADR-102, "hash-based nicks").

    The directory stands for its enclosing git work tree, where there is one.
    """
    from hashlib import sha256  # costs as much as all else together, and is needed once per session

    return f"{kind}-{sha256(os.fsencode(work_tree(directory))).hexdigest()[:6]}"


def work_tree(directory: str) -> str:
    """The resolved path of the git work tree around `directory`, else of `directory` itself."""
    resolved = os.path.realpath(directory)
    place = resolved
    while True:
        if os.path.exists(f"{place}/.git"):
            return place
        parent = os.path.dirname(place)
        if parent == place:
            return resolved
        place = parent


def of_person() -> str:
    """The login name of the person, made a valid agent name."""
    login = os.environ.get("LOGNAME") or os.environ.get("USER") or ""
    if not login:
        import pwd

        try:
            login = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            login = f"user{os.getuid()}"
    name = "".join(letter if letter in _LATER else "-" for letter in login).lstrip("._-")[:LONGEST]
    return name if name and name.lower() != EVERYBODY else "human"


def is_channel(to: str) -> bool:
    """Whether a recipient is written as a channel: ``+name``, or ``#name`` as on IRC."""
    return to.startswith(("+", "#"))
