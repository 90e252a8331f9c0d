"""Gemini CLI.

Seen with 0.61.0: the hooks in ``settings.json``, ``GEMINI_SESSION_ID`` in their environment, and that
``tools.allowed`` lets plain calls pass (deprecated in favour of its policy engine). Documented: timeouts in
milliseconds, ``GEMINI.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentmail.hooks import guard
from agentmail.install import skill
from agentmail.install.edits import Section
from agentmail.install.plan import Harness
from agentmail.install.settings import Settings

if TYPE_CHECKING:
    from agentmail.install.edits import Edit
    from agentmail.install.plan import Place

KIND = "gemini"


def _base(place: Place) -> str:
    return f"{place.project or place.home}/.gemini"


def _hooks(place: Place) -> tuple[tuple[str, dict[str, Any]], ...]:
    every = guard.hook(KIND, place.fixed_spool)
    ringing = guard.hook_when_ringing(KIND, place.spool, "GEMINI_SESSION_ID", not place.spool_is_default)
    named = guard.hook_when_named(KIND, place.fixed_spool)
    return (
        ("SessionStart", _group(every, 15)),
        ("BeforeAgent", _group(every, 15)),
        ("BeforeTool", {"matcher": "run_shell_command", **_group(named, 10)}),
        ("AfterTool", _group(ringing, 10)),
        ("AfterAgent", _group(every, 15)),
        ("SessionEnd", _group(every, 5)),
    )


def _group(command: str, seconds: int) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "name": "agentmail", "command": command, "timeout": seconds * 1000}]}


def _edits(place: Place) -> list[Edit]:
    base = _base(place)
    allowed = ((("tools", "allowed"), "run_shell_command(agentmail)"),)
    return [
        Settings(f"{base}/settings.json", KIND, _hooks(place), allowed),
        Section(f"{place.project or base}/GEMINI.md", skill.body()),
    ]


def _notes(place: Place) -> list[str]:
    notes = ["Gemini CLI marks tools.allowed as deprecated; it works in 0.61.0"]
    if place.fixed_spool:
        notes.append(f"set AGENTMAIL_SPOOL={place.fixed_spool} where you start gemini, for the agent's own calls")
    return notes


GEMINI = Harness(KIND, "Gemini CLI", "gemini", _base, _edits, _notes)
