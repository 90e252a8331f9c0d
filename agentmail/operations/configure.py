"""``config``: the settings that the spool itself enforces."""

from __future__ import annotations

from agentmail.errors import BadInput
from agentmail.spool import Spool, settings
from agentmail.values import NamedTuple


class Rule(NamedTuple):
    """What a setting may be: a whole number in a range, or one of some words."""

    help: str
    least: int = 0
    words: tuple[str, ...] = ()


RULES = {
    "cap": Rule("pending messages per mailbox", 1),
    "exec": Rule("whether commands may be run to wake, revive or answer", words=("on", "off")),
    "keep_days": Rule("days of history that cleanup leaves", 1),
    "max_body": Rule("bytes of a message", 1),
    "nudge": Rule("user turns without a post until an agent is asked for one; 0: never", 0),
    "overflow": Rule("what a full mailbox does", words=("drop-oldest", "refuse")),
    "timeout_ms": Rule("milliseconds that wait and --await last if they name no time; 0: no limit", 0),
    "wake_interval_ms": Rule("milliseconds between two commands that wake the same agent", 0),
}


def get(spool: Spool) -> dict[str, int | str]:
    """All settings with their values."""
    return settings.all_of(spool.db)


def put(spool: Spool, name: str, value: str) -> int | str:
    """Change one setting. Raises `BadInput` if there is none of that name or it cannot have that value."""
    rule = known(name)
    if rule.words:
        if value not in rule.words:
            raise BadInput(f"{name} is one of {', '.join(rule.words)}, not {value!r}")
        new: int | str = value
    else:
        if not (value.isascii() and value.isdigit()) or not rule.least <= int(value) < 1 << 53:
            raise BadInput(f"{name} is a whole number from {rule.least} on, not {value!r}")
        new = int(value)
    with spool.transaction():
        settings.put(spool.db, name, new)
    return new


def known(name: str) -> Rule:
    """The rule of a setting. Raises `BadInput`."""
    if name not in RULES:
        raise BadInput(f"there is no setting {name!r}; the settings are {', '.join(RULES)}")
    return RULES[name]
