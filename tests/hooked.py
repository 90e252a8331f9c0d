"""Harnesses for tests: recorded events, fired through the real command or, where there are many, in this process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from agentmail import processes
from agentmail.hooks import run
from agentmail.identity import Caller
from agentmail.operations import send as sending
from agentmail.operations import session as sessions
from agentmail.operations.send import Draft
from agentmail.spool import open_spool
from tests.conftest import AGENTMAIL, Mail, Result, eventually
from tests.sessions import HARNESSES, register

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = "/home/ada/shop"
_CLAUDE = {
    "session_id": "5f3a7c1e-9f0e-4b3a-8d55-0d8f3c2b1a90",
    "transcript_path": "/home/ada/.claude/projects/-home-ada-shop/5f3a7c1e-9f0e-4b3a-8d55-0d8f3c2b1a90.jsonl",
    "cwd": HOME,
}
_TURN = {
    "prompt_id": "b1e6e3d2-52a0-4a54-9d3a-5a6d1f0a7c11",
    "permission_mode": "default",
    "effort": {"level": "high"},
}
_BASH = {
    "tool_name": "Bash",
    "tool_input": {"command": "ls -la", "description": "List files", "timeout": 5000},
    "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
}
_OUTPUT = {"stdout": "total 0\n", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
_STOP = {
    "stop_hook_active": False,
    "last_assistant_message": "Done: see `shop.py`.",
    "background_tasks": [],
    "session_crons": [],
}
_INSIDE = {"agent_id": "a3f09c11d2e84b567", "agent_type": "general-purpose"}
_CODEX = {
    "session_id": "019ad0e6-6a6e-7c53-9a3e-1f54d5a0c0de",
    "transcript_path": "/home/ada/.codex/sessions/2026/12/01/rollout-2026-12-01T10-00-00-019ad0e6.jsonl",
    "cwd": HOME,
    "model": "mock-model",
    "permission_mode": "bypassPermissions",
}
_CODEX_TURN = {**_CODEX, "turn_id": "019ad0e6-6b00-7aa1-b0f1-3d2b0f0b2222"}
_CODEX_BASH = {"tool_name": "Bash", "tool_input": {"command": "ls -la"}, "tool_use_id": "call_0001"}
_GEMINI = {
    "session_id": "c7b1e1a0-1f4c-4a9e-8a55-6f4f2b9d1e77",
    "transcript_path": "/home/ada/.gemini/tmp/shop/chats/session-2026-12-01T10-00-c7b1e1a0.json",
    "cwd": HOME,
    "timestamp": "2026-12-01T10:00:00.000Z",
}
_SHELL = {"tool_name": "run_shell_command", "tool_input": {"command": "ls -la", "description": "List files"}}

# As the harnesses sent them (Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0), with ids and paths made up.
RECORDED: dict[str, dict[str, dict[str, Any]]] = {
    "claude": {
        "SessionStart": {**_CLAUDE, "source": "startup"},
        "UserPromptSubmit": {
            **_CLAUDE,
            **_TURN,
            "prompt": 'Fix the "login" test\nand tell the others — über alles 🚀',
        },
        "PreToolUse": {**_CLAUDE, **_TURN, **_BASH},
        "PostToolUse": {**_CLAUDE, **_TURN, **_BASH, "tool_response": _OUTPUT, "duration_ms": 41},
        "Stop": {**_CLAUDE, **_TURN, **_STOP},
        "SubagentStart": {**_CLAUDE, **_TURN, **_INSIDE},
        "SubagentStop": {
            **_CLAUDE,
            **_TURN,
            **_INSIDE,
            **_STOP,
            "agent_transcript_path": "/home/ada/.claude/projects/-home-ada-shop/subagents/agent-a3f09c11.jsonl",
        },
        "SessionEnd": {**_CLAUDE, "prompt_id": _TURN["prompt_id"], "reason": "other"},
    },
    "codex": {
        "SessionStart": {**_CODEX, "source": "startup"},
        "UserPromptSubmit": {**_CODEX_TURN, "prompt": "Fix the login test"},
        "PreToolUse": {**_CODEX_TURN, **_CODEX_BASH},
        "PostToolUse": {**_CODEX_TURN, **_CODEX_BASH, "tool_response": "total 0\n"},
        "Stop": {**_CODEX_TURN, "stop_hook_active": False, "last_assistant_message": "Done."},
        "SessionEnd": {**_CODEX, "reason": "other"},
    },
    "gemini": {
        "SessionStart": {**_GEMINI, "source": "startup"},
        "BeforeAgent": {**_GEMINI, "prompt": "Fix the login test"},
        "BeforeTool": {**_GEMINI, **_SHELL},
        "AfterTool": {**_GEMINI, **_SHELL, "tool_response": {"llmContent": "total 0", "returnDisplay": "total 0"}},
        "AfterAgent": {
            **_GEMINI,
            "prompt": "Fix the login test",
            "prompt_response": "Done.",
            "stop_hook_active": False,
        },
        "SessionEnd": {**_GEMINI, "reason": "exit"},
    },
}
# The same moments under each harness's names.
START, PROMPT, STEP, STOP, END = range(5)
NAMES = {
    "claude": ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"),
    "codex": ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"),
    "gemini": ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"),
}


def event(kind: str, name: str, **fields: Any) -> bytes:
    """A recorded event with some fields changed; those that are None left out."""
    whole = {"hook_event_name": name, **RECORDED[kind][name], **fields}
    return json.dumps({key: value for key, value in whole.items() if value is not None}).encode()


def context(answer: str) -> str:
    """The text that a hook's answer puts before the model; empty without an answer."""
    if not answer:
        return ""
    found = json.loads(answer)
    text = found["reason"] if "reason" in found else found["hookSpecificOutput"]["additionalContext"]
    assert isinstance(text, str)
    return text


def normal(text: str) -> str:
    """`text` with ids, times and the fence replaced by names."""
    text = re.sub(r"=== [0-9a-f]{12} ===", "=== FENCE ===", text)
    text = re.sub(r"\[\d{10,}\]", "[ID]", text)
    return re.sub(r"\b(just now|\d+[smh] ago)\b", "AGE", text)


class Program:
    """A session of a harness: a process under its name, whose hooks are run in it or, faster, on its behalf."""

    def __init__(self, mail: Mail, kind: str, session: str | None = None, cwd: str | None = None, **env: str) -> None:
        register(mail)
        mail.sql("UPDATE settings SET value = 'off' WHERE name = 'exec'")  # the real programs may be installed here
        self.mail, self.kind = mail, kind
        first = RECORDED[kind]["SessionStart"]
        self.session = session or str(first["session_id"])
        self.cwd = cwd or str(mail.home)
        program, marks, variable = HARNESSES[kind]
        ids = {variable: self.session} if kind != "codex" else {}
        self.env = mail.environment(None, **marks, **ids, **env)
        self._files = Path(tempfile.mkdtemp(dir=mail.home))
        self._count = 0
        (self._files / program).symlink_to("/bin/bash")
        self.process = subprocess.Popen(
            [self._files / program, "--norc", "-c", 'while IFS= read -r line; do eval "$line"; done'],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        mail.started.append(self.process)
        self.identity = processes.identify(self.process.pid) or ""

    def event(self, name: int | str, **fields: Any) -> bytes:
        name = name if isinstance(name, str) else NAMES[self.kind][name]
        return event(self.kind, name, **{"session_id": self.session, "cwd": self.cwd, **fields})

    def command(self, name: int | str, **fields: Any) -> Result:
        """Run ``agentmail hook`` as a child of the session's process."""
        return self.shell(shlex.join([*AGENTMAIL, "hook", self.kind]), self.event(name, **fields))

    def shell(self, line: str, stdin: bytes) -> Result:
        """Run a line of shell as a child of the session's process."""
        self._count += 1
        files = self._files / str(self._count)
        files.mkdir()
        (files / "in").write_bytes(stdin)
        (files / "line").write_text(line)
        assert self.process.stdin is not None
        self.process.stdin.write(
            f"( cd {shlex.quote(str(files))} && . ./line <in >out 2>err; echo $? >new; mv new status ) &\n"
        )
        self.process.stdin.flush()
        eventually((files / "status").exists)
        return Result(int((files / "status").read_text()), (files / "out").read_text(), (files / "err").read_text())

    def fire(self, name: int | str, **fields: Any) -> str:
        """The same in this process, twenty times as fast; the answer."""
        written: list[str] = []
        with self.inside():
            run.run(self.kind, self.event(name, **fields), str(self.mail.spool), written.append)
        assert len(written) <= 1, written
        return written[0] if written else ""

    def told(self, name: int | str, **fields: Any) -> str:
        """What the model reads of it."""
        return context(self.fire(name, **fields))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Be a child of the session's process, as far as this package can tell."""
        with (
            patch.dict(os.environ, self.env, clear=True),
            patch.object(processes, "lineage", lambda: [self.identity]),
            patch.object(processes, "name_of", lambda _: HARNESSES[self.kind][0]),
        ):
            yield

    def name(self) -> str:
        found = self.mail.sql("SELECT name FROM agents WHERE session = ? AND status <> 'aborted'", self.session)
        return str(found[0][0])

    def status(self) -> str:
        return str(self.mail.sql("SELECT status FROM agents WHERE session = ?", self.session)[0][0])

    def send(self, to: str, body: str, reply_to: int | None = None) -> int:
        """Send on behalf of the session."""
        with self.inside():
            return send(self.mail, Caller.of_hook(self.kind, self.session, self.cwd), to, body, reply_to)

    def end(self) -> None:
        """Die without a word."""
        self.process.kill()
        self.process.wait()


def send(mail: Mail, caller: Caller, to: str, body: str, reply_to: int | None = None) -> int:
    """Send in this process; the id."""
    spool = open_spool(str(mail.spool))
    sent, _ = sending.send(sessions.enter(spool, caller), Draft(to, body, reply_to=reply_to))
    spool.close()
    assert sent.id is not None, sent
    return sent.id


def send_as(mail: Mail, sender: str, to: str, body: str) -> int:
    """Send under a merely claimed name, in this process; the id."""
    with patch.dict(os.environ, mail.environment(), clear=True):
        return send(mail, Caller(sender), to, body)
