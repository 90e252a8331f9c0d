"""Editing a harness's settings in JSON: hooks, items of lists, single values."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from agentmail.install.document import Document
from agentmail.install.jsonc import Broken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmail.install.edits import Path

_CALL = re.compile(r"agentmail/__main__\.py'? hook ")


class Settings(NamedTuple):
    """A file of JSON: hooks, items of lists, and values that the user has not set."""

    path: str
    kind: str
    hooks: tuple[tuple[str, dict[str, Any]], ...] = ()  # event, group
    items: tuple[tuple[Path, str], ...] = ()
    values: tuple[tuple[Path, str], ...] = ()
    forced: tuple[tuple[Path, str], ...] = ()  # values that are set whatever is there

    def apply(self, old: str) -> str:
        """See `edits.Edit`."""
        document = Document(old)
        self._set_hooks(document, self.hooks)
        for path, item in self.items:
            if all(child.node.value != item for child in document.items(path)):
                document.append(path, item)
        for path, value in self.values:
            if _accepts(document, path):
                document.put(path, value)
        for path, value in self.forced:
            document.put(path, value)
        return document.text

    def remove(self, now: str, original: str) -> str:
        """See `edits.Edit`."""
        document, before = Document(now), _lenient(original)
        self._set_hooks(document, ())
        for path, item in self.items:
            theirs = before.get(path) if before else None
            if theirs is None or item not in theirs.value:
                for index in _matching(document, path, item):
                    document.take_item(path, index)
        for path, value in self.values + self.forced:
            node = _reach(document, path)
            if node is not None and node.value == value and (before is None or _reach(before, path) is None):
                document.take(path)
        for path in sorted(self._containers(), key=len, reverse=True):
            if _reach(document, path) and document.is_void(path) and not (before and _reach(before, path)):
                with suppress(Broken):  # the key is there twice: leave it
                    document.take(path)
        return document.text

    def is_marked(self, text: str) -> bool:
        """See `edits.Edit`."""
        return any(is_ours(command, self.kind) for command in commands(text))

    def is_void(self, text: str) -> bool:
        """See `edits.Edit`."""
        document = Document(text)
        return document.blank or document.is_void(())

    def _containers(self) -> set[Path]:
        """The lists and objects that may have been made for what is ours."""
        paths = {("hooks", event) for event, _ in self.hooks} | {path for path, _ in self.items}
        paths |= {path[:-1] for path, _ in self.values + self.forced}
        return {path[:depth] for path in paths for depth in range(1, len(path) + 1)}

    def _set_hooks(self, document: Document, wanted: tuple[tuple[str, dict[str, Any]], ...]) -> None:
        """Make the groups of hooks that are ours just these; the user's stay where they are."""
        found = document.get(("hooks",)) if self.hooks else None
        if found is not None and not isinstance(found.value, dict):
            raise Broken("hooks is not an object")
        events = list(found.value) if found is not None else []
        for event in dict.fromkeys(events + [event for event, _ in wanted]):
            groups = [group for name, group in wanted if name == event]
            self._set_groups(document, ("hooks", event), groups)

    def _set_groups(self, document: Document, path: Path, groups: list[dict[str, Any]]) -> None:
        ours: list[int] = []
        for index in range(len(document.items(path)) - 1, -1, -1):
            mine = [is_ours(command, self.kind) for command in _in_group(document.items(path)[index].node.value)]
            if mine and all(mine):
                ours.insert(0, index)
            elif any(mine):  # the user has put a hook of ours into a group of theirs
                self._take_from_group(document, path, index)
        for index in reversed(ours[len(groups) :]):
            document.take_item(path, index)
        for index, group in zip(ours, groups, strict=False):
            document.change_item(path, index, group)
        for group in groups[len(ours) :]:
            document.append(path, group)

    def _take_from_group(self, document: Document, path: Path, index: int) -> None:
        group = dict(document.items(path)[index].node.value)
        group["hooks"] = [
            hook for hook in group["hooks"] if not (isinstance(hook, dict) and is_ours(_command(hook), self.kind))
        ]
        document.change_item(path, index, group)


def commands(text: str) -> Iterator[str]:
    """The commands of all hooks in a file of settings. Raises `ValueError`."""
    hooks = Document(text).get(("hooks",))
    for groups in hooks.value.values() if hooks is not None and isinstance(hooks.value, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            yield from _in_group(group)


def _in_group(group: Any) -> list[str]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return [_command(hook) for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []


def _command(hook: dict[str, Any]) -> str:
    command = hook.get("command")
    return command if isinstance(command, str) else ""


def is_ours(command: str, kind: str) -> bool:
    """Whether a command is one that `guard` makes, for whatever interpreter and place of ours."""
    match = _CALL.search(command)
    if not match or not re.match(rf"{kind}\b", command[match.end() :]):
        return False
    if command.startswith(("for bell in ", "event=$(cat); ", '[ "$CLAUDE_CODE_SESSION_ATTENDED" ')):
        return True
    try:
        return shlex.split(command)[1:3] == ["-I", "-S"]
    except ValueError:
        return False


def _accepts(document: Document, path: Path) -> bool:
    """Whether a value can be set: it is not set yet, and what it would be in is not a plain value instead."""
    try:
        return document.get(path) is None
    except Broken:
        return False


def _reach(document: Document, path: Path) -> Any:
    try:
        return document.get(path)
    except Broken:
        return None


def _matching(document: Document, path: Path, item: str) -> list[int]:
    children = document.items(path)
    return [index for index in range(len(children) - 1, -1, -1) if children[index].node.value == item]


def _lenient(text: str) -> Document | None:
    try:
        return Document(text)
    except Broken:
        return None
