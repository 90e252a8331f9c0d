"""Durations as people write them: ``300ms``, ``45s``, ``2m``, ``1h30m``, ``2d``."""

from __future__ import annotations

from agentmail.errors import BadInput

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_MILLISECONDS = dict(_UNITS)


def parse(text: str) -> float:
    """The milliseconds in `text`. A bare number is refused: nobody can know its unit."""
    total = 0.0
    rest = text.strip().lower()
    last = float("inf")
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        letters = len(rest[digits:]) - len(rest[digits:].lstrip("dhms"))
        number, unit, rest = rest[:digits], rest[digits : digits + letters], rest[digits + letters :]
        size = _MILLISECONDS.get(unit, 0)
        if not size or size >= last or number.count(".") > 1 or not number.strip("."):
            break
        total += float(number) * size
        last = size
        if not rest:
            return total
    raise BadInput(f"{text!r} is no duration; write it like 300ms, 45s, 2m or 1h30m")


def show(ms: float) -> str:
    """`ms` milliseconds in words, the two largest units at most."""
    rest = round(ms)
    parts = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def show_age(ms: float) -> str:
    """How long `ms` milliseconds are, roughly, in the largest unit: for ages of things."""
    for unit, size in _UNITS[:-1]:
        if ms >= size:
            return f"{int(ms // size)}{unit}"
    return "0s"


def ago(ms: float) -> str:
    """An age: ``2m ago``, ``just now``."""
    return f"{show_age(ms)} ago" if ms >= 1000 else "just now"
