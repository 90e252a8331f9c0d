"""Codex.

Seen with 0.171.0: ``hooks.json`` (the shape is Claude Code's; SessionEnd gets 3 s at most), which it skips without a
word until the user trusts each hook; ``sandbox_workspace_write.writable_roots``, whose entries must exist; rules, by
which plain calls run outside the sandbox; ``shell_environment_policy.set`` reaches the agent's calls, ``AGENTS.md``
the model. Documented: ``CODEX_HOME``; in a project ``.codex/`` with the same files, once the project is trusted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agentmail.hooks import guard
from agentmail.install import sandbox, skill
from agentmail.install.claude import WAIT_MS
from agentmail.install.edits import MARK, Own, Section, Toml
from agentmail.install.plan import Harness
from agentmail.install.settings import Settings

if TYPE_CHECKING:
    from agentmail.install.edits import Edit
    from agentmail.install.plan import Place

KIND = "codex"
ROOTS = ("sandbox_workspace_write", "writable_roots")
_ENVIRONMENT = ("shell_environment_policy", "set")
_RULE = f"""\
# {MARK} {KIND}'; it is replaced by the next one.
prefix_rule(pattern=["agentmail"], decision="allow")
"""


def home(place: Place) -> str:
    """The user's own directory of Codex."""
    return os.environ.get("CODEX_HOME") or f"{place.home}/.codex"


def _base(place: Place) -> str:
    return f"{place.project}/.codex" if place.project else home(place)


def hooks_file(place: Place) -> str:
    """Where the hooks are written."""
    return f"{_base(place)}/hooks.json"


def _hooks(place: Place) -> tuple[tuple[str, dict[str, Any]], ...]:
    every = guard.hook(KIND, place.fixed_spool)
    ringing = guard.hook_when_ringing(KIND, place.spool, None, not place.spool_is_default)
    return (
        ("SessionStart", _group(every, 15)),
        ("UserPromptSubmit", _group(every, 15)),
        ("PreToolUse", {"matcher": "Bash", **_group(guard.hook_when_named(KIND, place.fixed_spool), 10)}),
        ("PostToolUse", _group(ringing, 10)),
        ("Stop", _group(every, 15)),
        ("SessionEnd", _group(every, 3)),
    )


def _group(command: str, timeout: int) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def _edits(place: Place) -> list[Edit]:
    base, directory = _base(place), sandbox.directory(place)
    items = ((ROOTS, directory),) if directory else ()
    values = (((*_ENVIRONMENT, "AGENTMAIL_TIMEOUT_MS"), WAIT_MS),)
    forced = (((*_ENVIRONMENT, "AGENTMAIL_SPOOL"), place.fixed_spool),) if place.fixed_spool else ()
    return [
        Settings(hooks_file(place), KIND, _hooks(place)),
        Toml(f"{base}/config.toml", items, values, forced),
        Own(f"{base}/rules/agentmail.rules", _RULE),
        Section(f"{place.project or base}/AGENTS.md", skill.body()),
    ]


def _notes(place: Place) -> list[str]:
    notes = ["Codex skips hooks that you have not trusted: do it in its /hooks, or 'agentmail install codex --trust'"]
    if place.project:
        notes.append("Codex reads a project's .codex only once you trust the project")
    return notes + sandbox.notes(place)


CODEX = Harness(KIND, "Codex", "codex", _base, _edits, _notes)
