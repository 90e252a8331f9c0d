"""Sessions of people and harnesses: a process that lives as long as the session does and runs its commands."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from unittest.mock import patch

from agentmail.identity import Caller
from agentmail.operations import session
from agentmail.spool import open_spool
from tests.conftest import AGENTMAIL, Mail, Result, eventually

# How each harness is called, how it shows itself in the environment, and where it puts its session id.
HARNESSES = {
    "claude": ("claude", {"CLAUDECODE": "1"}, "CLAUDE_CODE_SESSION_ID"),
    "codex": ("codex", {}, "CODEX_THREAD_ID"),
    "gemini": ("gemini", {"GEMINI_CLI": "1"}, "GEMINI_SESSION_ID"),
    "opencode": ("opencode", {"OPENCODE": "1"}, "AGENTMAIL_SESSION"),
    "human": ("terminal", {}, ""),
}
OBEY = 'while IFS= read -r line; do eval "$line"; done'

# What a shell starts in the background ignores Ctrl-C, and so would all that is started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def register(mail: Mail, *names: str) -> None:
    """Make the names known, each merely claimed, as their first command would; for a spool alone, give none.

    In this process, for it is no more than the stage of a test, and a process of its own takes twenty times as long.
    """
    with patch.dict(os.environ, mail.environment(), clear=True):
        spool = open_spool(str(mail.spool))
        for name in names:
            session.enter(spool, Caller(name))
        spool.close()


def wait_until_it_blocks(process: subprocess.Popen[str]) -> None:
    """Return once a waiting command has taken SIGTERM into its own hands, which it does last of all before it blocks.

    Where that cannot be seen, at once.
    """
    facts = Path(f"/proc/{process.pid}/status")

    def is_in_hand() -> bool:
        caught = next(line for line in facts.read_text().splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    if facts.exists():
        eventually(is_in_hand)


class Command:
    """A command that runs in a session."""

    def __init__(self, files: Path) -> None:
        self.files = files

    def finish(self) -> Result:
        eventually((self.files / "status").exists)
        status, out, err = ((self.files / name).read_bytes().decode() for name in ("status", "out", "err"))
        return Result(int(status), out, err)


class Session:
    """A shell under a harness's name, the leader of its session; `mail` ends it with the test."""

    def __init__(
        self, mail: Mail, kind: str = "human", session: str = "", directory: Path | None = None, **env: str
    ) -> None:
        self.directory = directory or mail.home
        program, marks, variable = HARNESSES[kind]
        self._files = mail.home / "sessions" / str(len(mail.started))
        self._files.mkdir(parents=True)
        self._count = 0
        shell = self._files / program
        shell.symlink_to(shutil.which("bash") or "bash")
        ids = {variable: session} if session else {}
        environment = mail.environment(None, LOGNAME="person", **marks, **ids, **env)
        environment.pop("TMUX", None)
        self.process = subprocess.Popen(
            [shell, "--norc", "-c", OBEY],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
        )
        mail.started.append(self.process)

    def start(self, *words: str, **env: str) -> Command:
        """Run `agentmail` in the background of the session."""
        self._count += 1
        files = self._files / str(self._count)
        files.mkdir()
        variables = [f"{name}={value}" for name, value in env.items()]
        place = shlex.quote(str(files))
        line = f"""
            cd {shlex.quote(str(self.directory))} && {shlex.join(["env", *variables, *AGENTMAIL, *words])} \\
                </dev/null >{place}/out 2>{place}/err
            echo $? >{place}/new
            mv {place}/new {place}/status
        """
        (files / "script").write_text(line)
        assert self.process.stdin is not None
        self.process.stdin.write(f"sh {place}/script &\n")
        self.process.stdin.flush()
        return Command(files)

    def run(self, *words: str, **env: str) -> Result:
        """Run `agentmail` in the session."""
        return self.start(*words, **env).finish()

    def named(self, name: str, *options: str) -> Session:
        """Register under a name."""
        self.run("register", name, *options).ok()
        return self

    def name(self) -> str:
        """Who its commands speak for."""
        return str(self.run("whoami", "--json").ok().json["agent"]["name"])

    def end(self) -> None:
        """Die without a word."""
        self.process.kill()
        self.process.wait()
