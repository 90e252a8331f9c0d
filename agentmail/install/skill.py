"""The text that teaches an agent the commands: one for all harnesses."""

from __future__ import annotations

from importlib import resources

from agentmail.install.edits import MARK


def data(name: str) -> str:
    """A text that comes with the hooks. Raises `FileNotFoundError`."""
    return (resources.files("agentmail.hooks") / name).read_text("utf-8")


def whole(kind: str) -> str:
    """As a skill, with the description by which the harness offers it."""
    head, body = _parts()
    return f"---\n{head}---\n\n<!-- {MARK} {kind}'; it is replaced by the next one. -->\n\n{body}"


def body() -> str:
    """As a part of a file of instructions."""
    return _parts()[1]


def _parts() -> tuple[str, str]:
    _, head, text = data("skill.md").split("---\n", 2)
    return head, text.lstrip("\n")
