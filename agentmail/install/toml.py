"""Editing TOML: small changes to the text, each proved by the standard library's parser before it is taken.

Nothing but the place of a statement is found here, and only in text that `tomllib` has accepted. Where more than one
edit might do, all are proposed, and the first counts after which the file says just what it should.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from agentmail.install.toml_places import Path, end_of_line, items, scan

if TYPE_CHECKING:
    from collections.abc import Iterator


class Broken(ValueError):
    """The text is not TOML, or cannot be changed as it should."""


def load(text: str) -> dict[str, Any]:
    """What `text` says. Raises `Broken`."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Broken(str(error).lower()) from error


def look(data: dict[str, Any], path: Path) -> Any:
    """The value at a path, None if it is not there."""
    value: Any = data
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def put(text: str, path: Path, value: str) -> str:
    """`text` with the string `value` at `path`. Raises `Broken`."""
    wanted = load(text)
    place = wanted
    for key in path[:-1]:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise Broken(f"{'.'.join(path[:-1])} is not a table")
    if place.get(path[-1]) == value:
        return text
    place[path[-1]] = value
    return _first(text, _with_value(text, path, _quote(value)), wanted, path)


def add_item(text: str, path: Path, item: str) -> str:
    """`text` with the string `item` in the list at `path`. Raises `Broken`."""
    wanted = load(text)
    found = look(wanted, path)
    if found is None:
        place = wanted
        for key in path[:-1]:
            place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise Broken(f"{'.'.join(path[:-1])} is not a table")
        place[path[-1]] = [item]
        return _first(text, _with_value(text, path, f"[{_quote(item)}]"), wanted, path)
    if not isinstance(found, list):
        raise Broken(f"{'.'.join(path)} is not a list")
    if item in found:
        return text
    found.insert(0, item)
    return _first(text, _with_item(text, path, item), wanted, path)


def take(text: str, path: Path) -> str:
    """`text` without the key at `path`, or without the table of that name."""
    wanted = load(text)
    place = look(wanted, path[:-1])
    if not isinstance(place, dict) or path[-1] not in place:
        return text
    del place[path[-1]]
    return _first(text, _without(text, path), wanted, path)


def take_item(text: str, path: Path, item: str) -> str:
    """`text` without `item` in the list at `path`."""
    wanted = load(text)
    found = look(wanted, path)
    if not isinstance(found, list) or item not in found:
        return text
    found.remove(item)
    return _first(text, _without_item(text, path, item), wanted, path)


def _first(text: str, proposals: Iterator[str], wanted: dict[str, Any], path: Path) -> str:
    for proposal in proposals:
        try:
            if _plain(load(proposal)) == _plain(wanted):
                return proposal
        except Broken:
            continue
    raise Broken(f"cannot change {'.'.join(path)} without touching other settings")


def _plain(value: Any) -> Any:
    """For comparing: without empty tables, which other headers imply; NaN is not equal to itself."""
    if isinstance(value, dict):
        pairs = {key: _plain(part) for key, part in value.items()}
        return {key: part for key, part in pairs.items() if part != {}}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return (type(value).__name__, str(value))


def _quote(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _with_value(text: str, path: Path, literal: str) -> Iterator[str]:
    """Ways to add ``path = literal``, or to change it."""
    line, statements = _line(text), list(scan(text))
    for one in statements:
        if not one.header and one.path == path:
            yield text[: one.value] + literal + text[one.end :]
    for depth in range(len(path) - 1, 0, -1):
        keys = path[depth:]
        inner = f"{{ {' = { '.join(map(_name, keys))} = {literal}{' }' * len(keys)}"
        dotted = f"{'.'.join(map(_name, keys))} = {literal}"
        for one in statements:
            if one.header and one.path == path[:depth]:
                gap = "" if text[one.end - 1] == "\n" else line
                yield f"{text[: one.end]}{gap}{dotted}{line}{text[one.end :]}"
            elif not one.header and one.path == path[:depth] and text[one.value] == "{":
                rest = text[one.value + 1 :].lstrip(" \t")
                yield text[: one.value] + inner[:-2] + (" " if rest.startswith("}") else ", ") + rest
        for one in statements:
            if not (one.header or one.inline) and one.path[:depth] == path[:depth] and len(one.section) < depth:
                inside = path[len(one.section) :]
                yield f"{text[: one.start]}{'.'.join(map(_name, inside))} = {literal}{line}{text[one.start :]}"
        if depth == len(path) - 1:
            gap = ("" if not text or text.endswith("\n") else line) + (line if text.strip() else "")
            header = ".".join(map(_name, path[:-1]))
            yield f"{text}{gap}[{header}]{line}{_name(path[-1])} = {literal}{line}"


def _with_item(text: str, path: Path, item: str) -> Iterator[str]:
    """Ways to put an item first in a list that is there."""
    for one in scan(text):
        if not one.header and one.path == path:
            at = one.value + 1
            blanks = re.match(r"[ \t\r\n]*", text[at:])
            gap = blanks[0] if blanks else ""
            rest = text[at + len(gap) :]
            if rest.startswith("]"):
                yield f"{text[:at]}{_quote(item)}{text[at:]}"
            elif "\n" in gap:
                yield f"{text[:at]}{gap}{_quote(item)},{text[at:]}"
            else:
                yield f"{text[:at]}{gap}{_quote(item)}, {rest}"


def _without(text: str, path: Path) -> Iterator[str]:
    """Ways to take out a key, or a table with all that is in it."""
    statements = list(scan(text))
    for place, one in enumerate(statements):
        if one.path != path:
            continue
        if one.header:
            end = one.end
            for other in statements[place + 1 :]:
                if other.header:
                    break
                end = end_of_line(text, other.end)
            for start in _starts(text, one.start):
                yield text[:start] + text[end:]
        elif one.inline:
            before = text[: one.start].rstrip(" \t")
            after = text[one.end :].lstrip(" \t")
            if after.startswith(","):
                yield text[: one.start] + after[1:].lstrip(" \t")
            if before.endswith(","):
                yield before[:-1] + text[one.end :]
            yield before + after
        else:
            yield text[: one.start] + text[end_of_line(text, one.end) :]


def _starts(text: str, start: int) -> Iterator[int]:
    """Where the table begins: at the blank line before it, or at its own line."""
    before = re.search(r"\r?\n\Z", text[:start])
    if before and (before.start() == 0 or text[: before.start()].endswith("\n")):
        yield before.start()
    yield start


def _without_item(text: str, path: Path, item: str) -> Iterator[str]:
    for one in scan(text):
        if one.header or one.path != path:
            continue
        for start, end in items(text, one.value):
            if _same(text[start:end], item):
                comma = re.match(r"[ \t\r\n]*,[ \t\r\n]*", text[end:])
                before = re.search(r"[ \t\r\n]*,?[ \t\r\n]*\Z", text[:start])
                if comma:
                    yield text[:start] + text[end + comma.end() :]
                if before:
                    yield text[: before.start()] + text[end:]
                yield text[:start] + text[end:]


def _same(literal: str, item: str) -> bool:
    return bool(tomllib.loads(f"x = {literal}")["x"] == item)


def _name(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quote(key)
