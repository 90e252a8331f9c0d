"""Gemini CLI.

Seen with 0.61.0: the hooks in ``settings.json``, ``GEMINI_SESSION_ID`` in their environment, ``GEMINI.md``, and rules
in ``policies/``, which a project cannot have. There ``tools.allowed`` is left, which lets plain calls pass but no
here-document, and is deprecated. Backticks and ``$(`` are refused by the shell tool itself, even in a here-document:
such text needs a file. Documented: timeouts in milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentmail.hooks import guard
from agentmail.install import skill
from agentmail.install.edits import MARK, Own, Section
from agentmail.install.plan import Harness
from agentmail.install.settings import Settings

if TYPE_CHECKING:
    from agentmail.install.edits import Edit
    from agentmail.install.plan import Place

KIND = "gemini"

# A here-document counts as a redirection, and one is allowed only where it is the whole rest of the command: a call
# could write its output over any file otherwise. The pattern is matched against JSON, where a line end is a backslash
# and an n, and a quotation mark without a backslash is the end of the command.
_POLICY = f"""\
# {MARK} {KIND}'; it is replaced by the next one.
[[rule]]
toolName = "run_shell_command"
commandPrefix = "agentmail"
decision = "allow"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandRegex = '''agentmail [A-Za-z0-9 ._+=-]*<<'EOF'(?!.*\\\\nEOF\\\\n[^"])\\\\n.*\\\\nEOF(\\\\n"|")'''
decision = "allow"
allowRedirection = true
priority = 101
"""


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
    if place.project:
        allowed = ((("tools", "allowed"), "run_shell_command(agentmail)"),)
        return [
            Settings(f"{base}/settings.json", KIND, _hooks(place), allowed),
            Section(f"{place.project}/GEMINI.md", skill.body()),
        ]
    return [
        Settings(f"{base}/settings.json", KIND, _hooks(place)),
        Own(f"{base}/policies/agentmail.toml", _POLICY),
        Section(f"{base}/GEMINI.md", skill.body()),
    ]


def _notes(place: Place) -> list[str]:
    notes = []
    if place.project:
        notes.append("in a project Gemini CLI lets only plain calls pass, no here-document; install for the user too")
    if place.fixed_spool:
        notes.append(f"set AGENTMAIL_SPOOL={place.fixed_spool} where you start gemini, for the agent's own calls")
    return notes


GEMINI = Harness(KIND, "Gemini CLI", "gemini", _base, _edits, _notes)
