"""Real harness programs in an environment of their own, against a model server that follows a script."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Mail
from tests.e2e.mockmodel import MockModel, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path(os.environ.get("AGENTMAIL_E2E_NPM", "/nonexistent")) / "node_modules" / ".bin"


def program(name: str) -> str:
    """The path of a harness's program; the test is skipped where it is not installed."""
    found = shutil.which(name, path=f"{PROGRAMS}:{os.environ['PATH']}")
    if not found:
        pytest.skip(f"{name} is not installed; AGENTMAIL_E2E_NPM names a directory with its npm package")
    return found


class Lab:
    """A home directory, a spool in its default place, and the model server."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.mail = Mail(home)
        self.mail.spool = home / ".local" / "state" / "agentmail" / "spool.db"
        self.models: list[MockModel] = []
        shim = home / "bin" / "agentmail"
        shim.parent.mkdir()
        root = Path(__file__).parent.parent.parent
        shim.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m agentmail "$@"\n')
        shim.chmod(0o755)
        # A login shell, as Codex starts, forgets PATH.
        (home / ".profile").write_text(f'PATH="{shim.parent}:$PATH"\n')

    def environment(self, **extra: str) -> dict[str, str]:
        path = f"{self.home}/bin:{PROGRAMS}:{os.environ['PATH']}"
        shared = {"HOME": str(self.home), "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8"}
        temporary = self.home / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**shared, "TMPDIR": str(temporary), **extra}

    def model(self, *turns: Turn) -> MockModel:
        self.models.append(MockModel(list(turns)))
        return self.models[-1]

    def install(self, harness: str) -> None:
        done = subprocess.run(
            [f"{self.home}/bin/agentmail", "install", harness],
            env=self.environment(),
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def run(self, command: list[str], **env: str) -> str:
        done = subprocess.run(
            command,
            env=self.environment(**env),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def cli(self, agent: str, *words: str) -> str:
        """Run agentmail as a peer outside the harness."""
        done = subprocess.run(
            [f"{self.home}/bin/agentmail", *words],
            env=self.environment(AGENTMAIL_AGENT=agent),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def prepare_opencode(self) -> None:
        """Spare OpenCode the installation of the types for plugins, which ours has no use for."""
        directory = self.home / ".config" / "opencode"
        (directory / "node_modules").mkdir(parents=True, exist_ok=True)
        lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        (directory / "package-lock.json").write_text(json.dumps(lock))

    def peers(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(self.cli("alice", "list", "--json"))["peers"]
        return found


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    lab.cli("alice", "inbox")
    yield lab
    for model in lab.models:
        model.close()
