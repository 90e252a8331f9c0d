"""Editing JSON, comments and all: what is put in takes the look of what is there, and all else keeps its bytes.

Taking out what was put in gives the text as it was, except that a list or object which was empty may be written
without the blanks that it had.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agentmail.install import jsonc
from agentmail.install.jsonc import Broken, Child, Node

_BLANKS = " \t\r\n"
_COMMENTS_ON_THE_LINE = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")

Path = tuple[str, ...]


class Document:
    """A JSON object in a text that is changed in place. Raises `Broken` if it is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        root = jsonc.read(text)
        self.blank = root is None
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.unit, self.one_line, self.comma, self.colon = "  ", False, ", ", ": "
        if root is not None:
            self._look(root)
        self.root: Node = root or Node(0, 0, {})
        if not isinstance(self.root.value, dict):
            raise Broken("the whole is not an object")

    def _look(self, root: Node) -> None:
        """Learn the indentation, and whether all is on one line."""
        if not root.children:
            return
        self.one_line = "\n" not in self.text[root.start : root.end]
        if self.one_line:
            if not re.search(r'"\s*: ', self.text):
                self.colon = ":"
            if (not re.search(r", ", self.text) and len(root.children) > 1) or self.colon == ":":
                self.comma = ","
            return
        self.unit = self._indent(root.children[0].start) or self.unit

    def get(self, path: Path) -> Node | None:
        """The value at a path of keys, None if it is not there. Raises `Broken` if the way is blocked."""
        node = self.root
        for depth, key in enumerate(path):
            if not isinstance(node.value, dict):
                raise Broken(f"{'.'.join(path[:depth])} is not an object")
            child = node.member(key)
            if child is None:
                return None
            node = child.node
        return node

    def items(self, path: Path) -> tuple[Child, ...]:
        """The items of the list at `path`, none if it is not there. Raises `Broken` if it is no list."""
        node = self.get(path)
        if node is None:
            return ()
        if not isinstance(node.value, list):
            raise Broken(f"{'.'.join(path)} is not a list")
        return node.children

    def put(self, path: Path, value: Any) -> None:
        """Make the value at `path` this one, and the objects on the way to it."""
        node = self.get(path)
        if node is not None:
            if node.value != value:
                parent = self.get(path[:-1]) or self.root
                self._replace(parent, node, value)
            return
        depth = len(path) - 1
        while self.get(path[:depth]) is None:
            depth -= 1
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        self._insert(path[:depth], path[depth], value)

    def append(self, path: Path, value: Any) -> None:
        """Put an item at the end of the list at `path`, which is made if it is not there."""
        if self.get(path) is None:
            self.put(path, [value])
        else:
            self.items(path)
            self._insert(path, None, value)

    def change_item(self, path: Path, index: int, value: Any) -> None:
        """Make an item of a list another one, unless it is already."""
        child = self.items(path)[index]
        if child.node.value != value:
            self._replace(self.get(path) or self.root, child.node, value)

    def take_item(self, path: Path, index: int) -> None:
        """Take an item out of a list."""
        node = self.get(path) or self.root
        expected = [value for place, value in enumerate(node.value) if place != index]
        self._take(path, node, index, expected)

    def take(self, path: Path) -> None:
        """Take the member at `path` out of its object."""
        parent = self.get(path[:-1])
        child = parent.member(path[-1]) if parent else None
        if parent and child:
            expected = {key: value for key, value in parent.value.items() if key != path[-1]}
            self._take(path[:-1], parent, parent.children.index(child), expected)

    def is_void(self, path: Path) -> bool:
        """Whether the list or object at `path` holds nothing at all, not even a comment."""
        node = self.get(path)
        return node is not None and not node.value and not self.text[node.start + 1 : node.end - 1].strip(_BLANKS)

    def _set(self, text: str) -> None:
        self.text = text
        self.root = jsonc.read(text) or self.root
        self.blank = False

    def _indent(self, at: int) -> str:
        """The blanks at the start of the line of `at`."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _is_tall(self, parent: Node) -> bool:
        """Whether each child stands on a line of its own."""
        if not parent.children:
            return not self.one_line
        return "\n" in self.text[parent.start : parent.children[0].start]

    def _render(self, value: Any, tall: bool, indent: str) -> str:
        if not tall:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        text = json.dumps(value, ensure_ascii=False, indent=self.unit)
        return text.replace("\n", self.newline + indent)

    def _replace(self, parent: Node, node: Node, value: Any) -> None:
        text = self._render(value, self._is_tall(parent), self._indent(node.start))
        self._set(self.text[: node.start] + text + self.text[node.end :])

    def _insert(self, path: Path, key: str | None, value: Any) -> None:
        if self.blank:
            gap = self.newline if self.text and not self.text.endswith("\n") else ""
            self._set(f"{self.text}{gap}{{}}{self.newline}")
        parent = self.get(path) or self.root
        tall = self._is_tall(parent)
        indent = (
            self._indent(parent.children[-1].start) if parent.children else self._indent(parent.start) + self.unit
        )
        name = "" if key is None else json.dumps(key, ensure_ascii=False) + (": " if tall else self.colon)
        piece = name + self._render(value, tall, indent)
        add = self._insert_last if parent.children else self._insert_first
        self._set(add(parent, piece, self.newline + indent if tall else ""))

    def _insert_first(self, parent: Node, piece: str, lead: str) -> str:
        inside = self.text[parent.start + 1 : parent.end - 1]
        at = parent.start + 1 + len(inside.rstrip(_BLANKS))
        tail = (
            self.newline + self._indent(parent.start) if lead and "\n" not in self.text[at : parent.end - 1] else ""
        )
        return f"{self.text[:at]}{lead}{piece}{tail}{self.text[at:]}"

    def _insert_last(self, parent: Node, piece: str, lead: str) -> str:
        last, text = parent.children[-1], self.text
        end = last.node.end if last.comma < 0 else last.comma + 1
        at = end
        if lead:
            match = _COMMENTS_ON_THE_LINE.match(text, end)
            at = match.end() if match else end
        else:
            lead = "" if self.comma == "," else " "
        if last.comma < 0:
            return f"{text[:end]},{text[end:at]}{lead}{piece}{text[at:]}"
        return f"{text[:at]}{lead}{piece},{text[at:]}"

    def _take(self, path: Path, parent: Node, index: int, expected: Any) -> None:
        """Take a child out in the first of several ways that leaves just what is expected."""
        wanted = _with(self.root.value, path, expected)
        for text in self._without(parent, index):
            try:
                root = jsonc.read(text)
            except Broken:
                continue
            if root is not None and root.value == wanted:
                self._set(text)
                return
        raise Broken(f"cannot take an entry out of {'.'.join(path) or 'the object'}")

    def _without(self, parent: Node, index: int) -> list[str]:
        text, child = self.text, parent.children[index]
        start, end = child.start, child.node.end if child.comma < 0 else child.comma + 1
        begin = start
        while text[begin - 1] in _BLANKS:
            begin -= 1
        is_last = index == len(parent.children) - 1
        ways = [text[:begin] + text[end:], text[:start] + text[end:]]
        if len(parent.children) == 1 and begin == parent.start + 1 and not text[end : parent.end - 1].strip(_BLANKS):
            ways.insert(0, text[:begin] + text[parent.end - 1 :])
        elif is_last and index and child.comma < 0:
            comma = parent.children[index - 1].comma
            ways = [text[:comma] + text[comma + 1 : at] + text[end:] for at in (begin, start)]
        elif not index and not is_last and "\n" not in text[begin:start]:
            ways.insert(0, text[:start] + text[end:].lstrip(" \t"))
        return ways


def _with(root: Any, path: Path, value: Any) -> Any:
    """`root` with another value at `path`."""
    return {**root, path[0]: _with(root[path[0]], path[1:], value)} if path else value
