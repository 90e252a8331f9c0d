"""Where in a text of TOML everything stands. The text must be one that `tomllib` accepts."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:[^"\\\n]|\\.)*"|' r"'[^'\n]*'", re.DOTALL)
_KEY = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\]|\\.)*)"|'([^']*)')[ \t]*""")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_GAP_OR_COMMA = re.compile(r"(?:[ \t\r\n,]+|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}#\r\n]+")

Path = tuple[str, ...]


class Statement(NamedTuple):
    """``[table]`` or ``key = value``: where it is, and what it is about. Those of inline tables count too."""

    path: Path
    header: bool
    start: int
    end: int
    value: int = 0  # where the value starts
    inline: bool = False
    section: Path = ()  # the table that the key was written in


def scan(text: str) -> Iterator[Statement]:
    """The statements of a text that is TOML."""
    at = 0
    section: Path = ()
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if at >= len(text):
            return
        if text[at] == "[":
            brackets = 2 if text.startswith("[[", at) else 1
            section, end = _key(text, at + brackets)
            end = end_of_line(text, end)
            yield Statement(section, brackets == 1, at, end, section=section)
        else:
            key, value = _key(text, at)
            value += len(text[value + 1 :]) - len(text[value + 1 :].lstrip(" \t")) + 1
            end = _skip(text, value)
            yield Statement(section + key, False, at, end, value, False, section)
            yield from _inline(text, section + key, value)
        at = end


def _inline(text: str, path: Path, at: int) -> Iterator[Statement]:
    """The members of the inline table at a place, if there is one."""
    if text[at] != "{":
        return
    for start, _ in items(text, at, with_keys=True):
        key, value = _key(text, start)
        value += len(text[value + 1 :]) - len(text[value + 1 :].lstrip(" \t")) + 1
        yield Statement(path + key, False, start, _skip(text, value), value, True, path)
        yield from _inline(text, path + key, value)


def _key(text: str, at: int) -> tuple[Path, int]:
    """A dotted key, and the place after it."""
    parts: list[str] = []
    while match := _KEY.match(text, at):
        bare, quoted, literal = match.groups()
        parts.append(tomllib.loads(f'x = "{quoted}"')["x"] if quoted is not None else bare or literal or "")
        at = match.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(parts), at


def items(text: str, at: int, with_keys: bool = False) -> list[tuple[int, int]]:
    """Where the items of the list, or the members of the inline table, at a place start and end."""
    found: list[tuple[int, int]] = []
    at += 1
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if text[at] in "]}":
            return found
        if text[at] == ",":
            at += 1
            continue
        start = at
        if with_keys:
            at = _key(text, at)[1] + 1
            at += len(text[at:]) - len(text[at:].lstrip(" \t"))
        at = _skip(text, at)
        found.append((start, at))


def _skip(text: str, at: int) -> int:
    """The place after the value at a place."""
    if text[at] in "[{":
        inner = items(text, at, text[at] == "{")
        gap = _GAP_OR_COMMA.match(text, inner[-1][1] if inner else at + 1)
        return (gap.end() if gap else at) + 1
    match = _STRING.match(text, at) or _SCALAR.match(text, at)
    end = match.end() if match else at + 1
    return at + len(text[at:end].rstrip(" \t"))


def end_of_line(text: str, at: int) -> int:
    """The start of the next line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
