"""Waking by the terminal: a one-line notice typed into the tmux pane of an idle session that has no better way.

Never the body of a message, never into a half-typed line, never into a person's shell. Keys are sent literally;
whether the line was taken is looked at, and Enter repeated if it was not.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

from agentmail import processes

_TRIES = 4
_PAUSE_SECONDS = 0.25  # what a program may take to draw what was typed
_PROMPTS = " \t\u00a0>❯›»$%#│┃|╎▌▎"  # what stands left of the cursor in an empty input line


def here() -> str | None:
    """The tmux pane of this process, as it is kept with an agent; None outside tmux."""
    server, pane = os.environ.get("TMUX", "").split(",")[0], os.environ.get("TMUX_PANE", "")
    return json.dumps([server, pane]) if server and pane else None


def type_notice(terminal: str, process: str | None, notice: str) -> str | None:
    """Type `notice` and Enter; what kept it from being taken, in words, or None.

    `process` is the session's, which must be the one that the terminal belongs to at this moment.
    """
    server, pane = json.loads(terminal)
    tmux = _Pane(server, pane)
    try:
        if tmux.ask("#{pane_dead} #{pane_in_mode}") != "0 0":
            return "its terminal is gone, or scrolled back"
        if process and processes.has_terminal(process, tmux.ask("#{pane_tty}")) is False:
            return "something else runs in its terminal"
        if _typed(tmux):
            return "somebody is typing in its terminal"
        tmux.keys("-l", "--", notice)
        time.sleep(_PAUSE_SECONDS)
        for _ in range(_TRIES):
            tmux.keys("Enter")
            time.sleep(_PAUSE_SECONDS)
            if not _typed(tmux):
                return None
    except FileNotFoundError:
        return "tmux is not on PATH"
    except subprocess.SubprocessError:
        return "its terminal is gone"
    return "its terminal did not take the notice"


def _typed(tmux: _Pane) -> str:
    """What stands left of the cursor, without the prompt."""
    column, row = (int(part) for part in tmux.ask("#{cursor_x} #{cursor_y}").split())
    lines = tmux.run("capture-pane", "-p", "-t", tmux.pane).split("\n")
    return lines[row][:column].strip(_PROMPTS) if row < len(lines) else ""


class _Pane:
    def __init__(self, server: str, pane: str) -> None:
        self.server = server
        self.pane = pane

    def ask(self, what: str) -> str:
        return self.run("display-message", "-p", "-t", self.pane, what).strip()

    def keys(self, *keys: str) -> None:
        self.run("send-keys", "-t", self.pane, *keys)

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self.server, *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=5,
            check=True,
        )
        return done.stdout
