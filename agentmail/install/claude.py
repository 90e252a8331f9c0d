"""Claude Code.

Seen with 2.1.332: hooks, allow rules, ``env`` and ``sandbox.filesystem.allowWrite`` in ``settings.json``, the user's
and a project's (whose allow rules count once the project is trusted); absolute paths in the sandbox's lists start
with ``//``; a Bash call ends after 120 s; an ``asyncRewake`` hook wakes an idle session when it ends with status 2,
but under ``-p`` it is waited for, so the sentry ends at once in a session that nobody attends; a skill in
``skills/NAME/SKILL.md`` is offered to the model. Documented: ``CLAUDE_CONFIG_DIR``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agentmail.hooks import guard
from agentmail.install import sandbox, skill
from agentmail.install.edits import Own
from agentmail.install.plan import Harness
from agentmail.install.settings import Settings

if TYPE_CHECKING:
    from agentmail.install.edits import Edit, Path
    from agentmail.install.plan import Place

KIND = "claude"
WAIT_MS = "100000"  # below the 120 s after which Bash calls end
_SENTRY_SECONDS = 3600


def _base(place: Place) -> str:
    if place.project:
        return f"{place.project}/.claude"
    return os.environ.get("CLAUDE_CONFIG_DIR") or f"{place.home}/.claude"


def _hooks(place: Place) -> tuple[tuple[str, dict[str, Any]], ...]:
    every = guard.hook(KIND, place.fixed_spool)
    ringing = guard.hook_when_ringing(KIND, place.spool, "CLAUDE_CODE_SESSION_ID", not place.spool_is_default)
    named = guard.hook_when_named(KIND, place.fixed_spool)
    sentry = '[ "$CLAUDE_CODE_SESSION_ATTENDED" = 0 ] || exec ' + guard.sentry(KIND, place.fixed_spool)
    return (
        ("SessionStart", _group(every, 15)),
        ("UserPromptSubmit", _group(every, 15)),
        ("PreToolUse", {"matcher": "Bash", **_group(named, 10)}),
        ("PostToolUse", _group(ringing, 10)),
        ("Stop", _group(every, 15)),
        ("Stop", _group(sentry, _SENTRY_SECONDS, asyncRewake=True)),
        ("SubagentStart", _group(every, 15)),
        ("SubagentStop", _group(every, 15)),
        ("SessionEnd", _group(every, 10)),
    )


def _group(command: str, timeout: int, **more: bool) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout, **more}]}


def _edits(place: Place) -> list[Edit]:
    items: list[tuple[Path, str]] = [
        (("permissions", "allow"), "Bash(agentmail:*)"),
        (("permissions", "allow"), "Bash(agentmail)"),
    ]
    directory = sandbox.directory(place)
    if directory:
        inside = directory.startswith(place.home + "/")
        path = "~" + directory[len(place.home) :] if inside else "/" + directory
        items.append((("sandbox", "filesystem", "allowWrite"), path))
    values = ((("env", "AGENTMAIL_TIMEOUT_MS"), WAIT_MS),)
    forced = ((("env", "AGENTMAIL_SPOOL"), place.fixed_spool),) if place.fixed_spool else ()
    base = _base(place)
    return [
        Settings(f"{base}/settings.json", KIND, _hooks(place), tuple(items), values, forced),
        Own(f"{base}/skills/agentmail/SKILL.md", skill.whole(KIND)),
    ]


def _notes(place: Place) -> list[str]:
    notes = ["sessions that run already must be started again"]
    if place.project:
        notes.append("allow rules of a project count once you trust it: start 'claude' in it and say so")
    return notes + sandbox.notes(place)


CLAUDE = Harness(KIND, "Claude Code", "claude", _base, _edits, _notes)
