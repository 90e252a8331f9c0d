"""Reading JSON as harnesses write it, with comments and trailing commas, and where in the text everything stands."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_MOST_NESTED = 200


class Broken(ValueError):
    """The text is not JSON."""


class Node(NamedTuple):
    """A value and its place, ``text[start:end]``."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()  # of an object or a list

    def member(self, key: str) -> Child | None:
        """The member of that key; of several the last, as it is the one that counts."""
        return next((child for child in reversed(self.children) if child.key == key), None)


class Child(NamedTuple):
    """A member of an object, or an item of a list."""

    key: str | None
    start: int  # of the key, or of the item
    node: Node
    comma: int  # the place of the comma that follows, or -1


def read(text: str) -> Node | None:
    """The value that `text` holds, None if there are only blanks and comments. Raises `Broken`."""
    reader = _Reader(text)
    reader.skip()
    if reader.at == len(text):
        return None
    node = reader.value(0)
    reader.skip()
    if reader.at != len(text):
        raise reader.broken("more text after the end")
    return node


class _Reader:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def broken(self, what: str) -> Broken:
        return Broken(f"line {self.text.count(chr(10), 0, self.at) + 1}: {what}")

    def skip(self) -> None:
        match = _TRIVIA.match(self.text, self.at)
        self.at = match.end() if match else self.at
        if self.text.startswith("/*", self.at):
            raise self.broken("a comment does not end")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        if depth > _MOST_NESTED:
            raise self.broken("nested too deeply")
        letter = self.peek()
        if letter == "{":
            return self.container("}", depth)
        if letter == "[":
            return self.container("]", depth)
        start = self.at
        if letter == '"':
            found = self.string()
            return Node(start, self.at, found)
        match = _SCALAR.match(self.text, self.at)
        if not match:
            raise self.broken(
                "a value is missing" if letter in ("", ",", "}", "]") else f"{letter!r} starts no value"
            )
        self.at = match.end()
        return Node(start, self.at, json.loads(match[0]))

    def string(self) -> str:
        try:
            found, self.at = json.decoder.scanstring(self.text, self.at + 1, True)  # type: ignore[attr-defined]
        except ValueError as error:
            raise self.broken(f"a string is wrong ({str(error).split(':')[0].lower()})") from None
        return str(found)

    def container(self, close: str, depth: int) -> Node:
        start = self.at
        self.at += 1
        children: list[Child] = []
        while True:
            self.skip()
            if self.peek() == close:
                break
            if children and children[-1].comma < 0:
                raise self.broken(f"',' or {close!r} is missing")
            children.append(self.child(close == "}", depth))
        self.at += 1
        value: Any = [child.node.value for child in children]
        if close == "}":
            value = {child.key: child.node.value for child in children}
        return Node(start, self.at, value, tuple(children))

    def child(self, is_member: bool, depth: int) -> Child:
        start, key = self.at, None
        if is_member:
            if self.peek() != '"':
                raise self.broken("a key in quotes is missing")
            key = self.string()
            self.skip()
            if self.peek() != ":":
                raise self.broken("':' is missing")
            self.at += 1
            self.skip()
        node = self.value(depth + 1)
        self.skip()
        comma = -1
        if self.peek() == ",":
            comma = self.at
            self.at += 1
        return Child(key, start, node, comma)
