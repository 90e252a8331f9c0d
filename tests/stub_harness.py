"""A harness for the tests: like Claude Code as far as agentmail can tell, with a few lines of script for a model.

Run as a program named ``claude`` it is a session: it calls hooks with real events, runs commands as its tool, keeps
the asynchronous Stop hook in the background and begins a turn when that ends with status 2, and resumes a session by
``--resume``. What to do in a turn, and what its model saw, are files beside the test's spool: see `Claude`.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tty
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Mail

ROOT = Path(__file__).parent.parent
MOST_CONTINUATIONS = 8  # as in the real one
PROMPT = "❯ ".encode()
_MESSAGE = re.compile(r"\[(\d+)\] from (\S+) \(")


class Claude:
    """A stub session as the tests see it: start it, prompt it, look at what its model saw."""

    def __init__(self, mail: Mail, name: str, *, on_mail: str = "", on_turn: tuple[str, ...] = ()) -> None:
        self.mail = mail
        self.name = name
        self.session = f"5e5510a-{name}"
        self.directory = mail.home / "work" / name
        self.files = mail.home / "stub" / self.session
        self.process: subprocess.Popen[str] | None = None
        self.directory.mkdir(parents=True, exist_ok=True)
        self.files.mkdir(parents=True, exist_ok=True)
        self.programs = install(mail)
        self.do(on_mail=on_mail, on_turn=on_turn)

    def do(self, *, on_mail: str = "", on_turn: tuple[str, ...] = ()) -> None:
        """Shell commands for its turns: one for each message seen ({id}, {sender} are its), others once a turn."""
        text = json.dumps({"name": self.name, "on_mail": on_mail, "on_turn": on_turn})
        (self.files / "script.json").write_text(text)

    def start(self, **env: str) -> Claude:
        self.process = subprocess.Popen(
            [self.programs / "claude", "--session-id", self.session],
            env=self.mail.environment(self.name, **{**path_with(self.programs), **env}),
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
        )
        self.mail.started.append(self.process)
        self.until(lambda: self.log("ready"))
        return self

    def prompt(self, text: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def turn(self, text: str = "go on") -> Claude:
        """Have a user's turn, and be idle afterwards with a sentry on guard."""
        before = len(self.log("idle"))
        self.prompt(text)
        self.until(lambda: len(self.log("idle")) > before)
        self.until(lambda: self.mail.sql("SELECT 1 FROM sentries"))
        return self

    def end(self) -> Claude:
        """Quit, as a user does."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdin = None
        return self

    def kill(self) -> Claude:
        """Die without a word."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(20)
        return self

    def log(self, what: str) -> list[str]:
        """What happened, of one kind: ready, turn, saw, idle, ran, error, end."""
        try:
            lines = (self.files / "log").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [text for kind, text in map(json.loads, lines) if kind == what]

    def saw(self, text: str) -> int:
        """How often its model was shown that."""
        return sum(seen.count(text) for seen in self.log("saw"))

    def status(self) -> str:
        return str(self.mail.sql("SELECT status FROM agents WHERE name = ?", self.name)[0][0])

    def until(self, condition: Any) -> None:
        from tests.conftest import eventually

        eventually(condition)
        assert self.log("error") == []


def install(mail: Mail) -> Path:
    """A directory for PATH with ``claude`` and ``agentmail``."""
    from agentmail.hooks import guard

    programs = mail.home / "bin"
    if not programs.exists():
        programs.mkdir()
        start = f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        write_program(programs / "claude", start + "from tests.stub_harness import main\nmain()\n")
        write_program(programs / "agentmail", f'#!/bin/sh\nexec {" ".join(guard.program())} "$@"\n')
    return programs


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def path_with(programs: Path) -> dict[str, str]:
    return {"PATH": f"{programs}:{os.environ['PATH']}"}


def main() -> None:
    """The program ``claude``: ``--session-id ID``, or ``-p PROMPT --resume ID``."""
    words = sys.argv[1:]
    resumed, headless = "--resume" in words, "-p" in words
    identifier = words[words.index("--resume" if resumed else "--session-id") + 1]
    session = _Session(identifier, headless)
    session.run(words[words.index("-p") + 1] if headless else None, "resume" if resumed else "startup")


class _Session:
    def __init__(self, identifier: str, headless: bool) -> None:
        self.identifier = identifier
        self.headless = headless
        self.files = Path(os.environ["HOME"]) / "stub" / identifier
        self.script = json.loads((self.files / "script.json").read_text())
        self.handled: set[str] = set()
        self.sentries: list[subprocess.Popen[str]] = []
        self.environment = {
            **os.environ,
            "CLAUDECODE": "1",
            "CLAUDE_CODE_SESSION_ID": identifier,
            "CLAUDE_CODE_SESSION_ATTENDED": "0" if headless else "1",
        }

    def run(self, prompt: str | None, source: str) -> None:
        self.context = self.hook("SessionStart", source=source)
        self.log("ready", str(os.getpid()))
        if prompt is None:
            self.attend()
        else:
            self.turn(prompt)
        self.hook("SessionEnd", reason="other")
        self.log("end", "")

    def attend(self) -> None:
        """Turns by the user's lines on stdin, or in a terminal, and by sentries that end with status 2."""
        line, deaf = b"", int(os.environ.get("STUB_IGNORES_ENTER", "0"))
        screen = os.isatty(0)
        if screen:
            tty.setraw(0)
            os.write(1, PROMPT)
        while True:
            if select.select([0], [], [], 0.02)[0]:
                letter = os.read(0, 1)
                if not letter:
                    return
                if letter not in b"\r\n":
                    line += letter
                    os.write(1, letter if screen else b"")
                elif deaf:
                    deaf -= 1
                else:
                    os.write(1, b"\r\n" if screen else b"")
                    self.turn(line.decode().strip())
                    os.write(1, PROMPT if screen else b"")
                    line = b""
            for sentry in [one for one in self.sentries if one.poll() is not None]:
                self.sentries.remove(sentry)
                self.log("sentry", str(sentry.returncode))
                if sentry.returncode == 2:
                    assert sentry.stderr is not None
                    self.turn(f"<task-notification>Stop hook feedback</task-notification>\n{sentry.stderr.read()}")

    def turn(self, prompt: str) -> None:
        self.log("turn", prompt)
        self.script = json.loads((self.files / "script.json").read_text())
        self.context += prompt + self.hook("UserPromptSubmit", prompt=prompt)
        for command in self.script["on_turn"]:
            self.tool(command)
        for _ in range(MOST_CONTINUATIONS):
            self.think()
            if not self.headless:
                self.post_sentry()
            self.context = self.hook("Stop", stop_hook_active=False)
            if not self.context:
                break
        self.log("idle", "")

    def think(self) -> None:
        """What the model does: look at everything new, and act on each message."""
        while self.context:
            seen, self.context = self.context, ""
            self.log("saw", seen)
            for message, sender in _MESSAGE.findall(seen):
                if message not in self.handled and self.script["on_mail"]:
                    self.handled.add(message)
                    self.tool(self.script["on_mail"].replace("{id}", message).replace("{sender}", sender))

    def tool(self, command: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        self.log("ran", done.stdout + done.stderr)
        self.context += self.hook("PostToolUse", tool_name="Bash", tool_input={"command": command})

    def hook(self, event: str, **more: object) -> str:
        """Call the hook as a shell, as the real one does; what it adds to the context."""
        from agentmail.hooks import guard

        command = guard.hook("claude")
        if event == "PostToolUse":
            command = guard.hook_when_ringing("claude", os.environ["AGENTMAIL_SPOOL"], "CLAUDE_CODE_SESSION_ID")
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=self.environment,
            input=self.event(event, **more),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode or done.stderr:
            self.log("error", f"{event}: {done.returncode} {done.stderr}")
        if not done.stdout:
            return ""
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])

    def post_sentry(self) -> None:
        from agentmail.hooks import guard

        sentry = subprocess.Popen(
            ["/bin/sh", "-c", "exec " + guard.sentry("claude")],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert sentry.stdin is not None
        sentry.stdin.write(self.event("Stop"))
        sentry.stdin.close()
        self.sentries.append(sentry)

    def event(self, name: str, **more: object) -> str:
        facts = {
            "session_id": self.identifier,
            "transcript_path": str(self.files / "transcript.jsonl"),
            "cwd": os.getcwd(),
            "hook_event_name": name,
            "permission_mode": "default",
        }
        return json.dumps({**facts, **more})

    def log(self, kind: str, text: str) -> None:
        with (self.files / "log").open("a") as log:
            log.write(json.dumps([kind, text]) + "\n")


def when(path: Path, seconds: float = 30) -> str:
    """A shell command that lasts until the file is there: a long tool call."""
    return f"i=0; while [ ! -e {path} ] && [ $i -lt {int(seconds * 50)} ]; do sleep 0.02; i=$((i+1)); done"
