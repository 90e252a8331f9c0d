"""What can be done to one file: put ours in, take ours out again. All edits turn text into text."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol

from agentmail.install import toml

Path = tuple[str, ...]
MARK = "Written by 'agentmail install"  # in every file that is wholly ours
BEGIN, END = "<!-- agentmail: begin -->", "<!-- agentmail: end -->"


class Edit(Protocol):
    """An edit of one file. A file that is not there is an empty text. `ValueError`: it cannot be edited."""

    @property
    def path(self) -> str:
        """The file."""

    def apply(self, old: str) -> str:
        """`old` with all that is ours, and of that nothing twice."""

    def remove(self, now: str, original: str) -> str:
        """`now` without what is ours; what was in `original` was the user's before."""

    def is_marked(self, text: str) -> bool:
        """Whether the text certainly holds something of ours."""

    def is_void(self, text: str) -> bool:
        """Whether a file of this text says nothing."""


class Toml(NamedTuple):
    """A file of TOML: items of lists, and values that the user has not set."""

    path: str
    items: tuple[tuple[Path, str], ...] = ()
    values: tuple[tuple[Path, str], ...] = ()
    forced: tuple[tuple[Path, str], ...] = ()  # values that are set whatever is there
    tables: tuple[Path, ...] = ()  # wholly ours, and no longer wanted

    def apply(self, old: str) -> str:
        """See `Edit`."""
        text = old
        for path in self.tables:
            text = toml.take(text, path)
        for path, item in self.items:
            text = toml.add_item(text, path, item)
        for path, value in self.values:
            if toml.look(toml.load(text), path) is None:
                text = toml.put(text, path, value)
        for path, value in self.forced:
            text = toml.put(text, path, value)
        return text

    def remove(self, now: str, original: str) -> str:
        """See `Edit`."""
        text = now
        try:
            before = toml.load(original)
        except toml.Broken:
            before = {}
        for path in self.tables:
            text = toml.take(text, path)
        for path, item in self.items:
            if item not in (toml.look(before, path) or ()):
                text = toml.take_item(text, path, item)
        for path, value in self.values + self.forced:
            if toml.look(toml.load(text), path) == value and toml.look(before, path) != value:
                text = toml.take(text, path)
        return self._without_voids(text, before)

    def is_marked(self, text: str) -> bool:
        """See `Edit`."""
        return False

    def is_void(self, text: str) -> bool:
        """See `Edit`."""
        return not text.strip()

    def _without_voids(self, text: str, before: dict[str, Any]) -> str:
        full = [path for path, _ in self.items] + [path[:-1] for path, _ in self.values + self.forced]
        for path in [one[:depth] for one in full for depth in range(len(one), 0, -1)]:
            if toml.look(toml.load(text), path) in ([], {}) and toml.look(before, path) is None:
                text = toml.take(text, path)
        return text


class Section(NamedTuple):
    """A part between two marks in a text that the user has written."""

    path: str
    content: str

    def apply(self, old: str) -> str:
        """See `Edit`."""
        block = f"{BEGIN}\n{self.content.strip()}\n{END}"
        if "\r\n" in old:
            block = block.replace("\n", "\r\n")
        place = _marked_place(old)
        if place:
            return old[: place[0]] + block + old[place[1] :]
        line = "\r\n" if "\r\n" in old else "\n"
        gap = "" if not old else line if old.endswith("\n") else line * 2
        return f"{old}{gap}{block}{line}"

    def remove(self, now: str, original: str) -> str:
        """See `Edit`."""
        place = _marked_place(now)
        if place is None:
            return now
        before, after = now[: place[0]], now[place[1] :]
        return re.sub(r"(?<=\n)\r?\n\Z", "", before) + re.sub(r"\A\r?\n", "", after)

    def is_marked(self, text: str) -> bool:
        """See `Edit`."""
        return BEGIN in text

    def is_void(self, text: str) -> bool:
        """See `Edit`."""
        return not text.strip()


class Own(NamedTuple):
    """A file that is wholly ours, known by a line in it."""

    path: str
    content: str

    def apply(self, old: str) -> str:
        """See `Edit`."""
        return self.content

    def remove(self, now: str, original: str) -> str:
        """See `Edit`."""
        return "" if MARK in now else now

    def is_marked(self, text: str) -> bool:
        """See `Edit`."""
        return MARK in text

    def is_void(self, text: str) -> bool:
        """See `Edit`."""
        return not text


def _marked_place(text: str) -> tuple[int, int] | None:
    start, end = text.find(BEGIN), text.find(END)
    if start < 0 and end < 0:
        return None
    if not 0 <= start < end or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise ValueError(f"the marks {BEGIN} and {END} do not match")
    return start, end + len(END)
