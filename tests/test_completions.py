"""The completions are those of the table, and real shells complete with them."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmail.cli import completions
from tests.conftest import AGENTMAIL, Mail

if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT = "your turn> "
SCRIPTS = Path(__file__).parent.parent / "completions"
BASH, ZSH, FISH = SCRIPTS / "agentmail.bash", SCRIPTS / "_agentmail", SCRIPTS / "agentmail.fish"


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.fixture
def home(mail: Mail) -> Mail:
    """A home with two agents, a file, and an `agentmail` that only ever lists: else it shows what it was told."""
    mail.register("bob", "builder")
    (mail.home / "notes with blanks.txt").touch()
    program = mail.home / "bin" / "agentmail"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1" = list ] && exec "{AGENTMAIL[0]}" -m agentmail "$@"\n'
        'printf "GOT"; printf "<%s>" "$@"; echo END\n'
    )
    program.chmod(0o700)
    return mail


def environment(mail: Mail) -> dict[str, str]:
    path = f"{mail.home / 'bin'}:{os.environ['PATH']}"
    return {**mail.environment("alice", PATH=path), "TERM": "dumb", "PS1": PROMPT, "COLUMNS": "400"}


def output_of(mail: Mail, *command: str) -> list[str]:
    done = subprocess.run(
        command, env=environment(mail), cwd=mail.home, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


class Terminal:
    """A shell that somebody types into."""

    def __init__(self, mail: Mail, *command: str) -> None:
        self._shown = ""
        self._fd, other = pty.openpty()
        self._process = subprocess.Popen(
            command,
            env=environment(mail),
            cwd=mail.home,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)

    def type(self, keys: str, until: str) -> str:
        """Type, and give what is shown up to `until`; what is beyond it is for the next call."""
        os.write(self._fd, keys.encode())
        deadline = time.monotonic() + 30
        while until not in self._shown:
            ready = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, f"{until!r} was not shown, but {self._shown!r}"
            self._shown += os.read(self._fd, 4096).decode(errors="replace")
        before, _, self._shown = self._shown.partition(until)
        return before

    def run(self, typed: str) -> str:
        """Type a line at the prompt, and give the arguments that `agentmail` then got."""
        self.type("", PROMPT)
        return self.type(typed + "\n", "END").rpartition("GOT")[2]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._fd)


# What is typed before the Tab key, and the arguments that `agentmail` then gets.
TYPED = [
    ("se", "<send>"),
    ("--as bu inb", "<--as><bu><inbox>"),
    ("--as bui", "<--as><builder>"),
    ("send --aw", "<send><--await>"),
    ("send bob --hol", "<send><bob><--hold>"),
    ("send bui", "<send><builder>"),
    ("send al", "<send><all>"),
    ("log --with bui", "<log><--with><builder>"),
    ("log --with=bui", "<log><--with=builder>"),
    ("register --state r", "<register><--state><running>"),
    ("register --state=r", "<register><--state=running>"),
    ("send bob --body-file no", "<send><bob><--body-file><notes with blanks.txt>"),
    ("--spool no", "<--spool><notes with blanks.txt>"),
    ("abort bui", "<abort><builder>"),
    ("completions f", "<completions><fish>"),
]


OFFERED_BY_BASH = [
    (["register", "--state", ""], ["idle", "running"]),
    (["register", "--state", "="], ["idle", "running"]),
    (["send", ""], ["all", "bob", "builder"]),
    (["send", "bob", ""], []),
    (["send", "bob", "--", "--aw"], []),
    (["send", "--timeout", "5m", "bob", "--aw"], ["--await"]),
    (["--json", "--as", "=", "send", "wh"], ["whoami"]),
    (["demo", "--"], ["--help"]),
    (["nonsense", ""], []),
]


@pytest.mark.parametrize(
    ("script", "make"), [(BASH, completions.bash), (ZSH, completions.zsh), (FISH, completions.fish)]
)
def test_the_committed_scripts_are_current(mail: Mail, script: Path, make: Callable[[], str]) -> None:
    shell = make.__name__
    update = f"run 'agentmail completions {shell} > completions/{script.name}'"
    assert script.read_text("utf-8") == make(), update
    assert mail.run(None, "completions", shell).ok().out == make()
    assert not mail.spool.exists()


def test_an_unknown_shell_is_refused(mail: Mail) -> None:
    for words in ([], ["tcsh"]):
        done = mail.run(None, "completions", *words)
        assert (done.status, done.out) == (2, "")
        assert "bash, zsh and fish" in done.err


@needs("bash")
def test_bash_offers(home: Mail) -> None:
    script = (
        f'source "{BASH}"; COMP_WORDS=(agentmail "$@"); COMP_CWORD=$#; _agentmail; printf "%s " "${{COMPREPLY[@]}}"'
    )
    for words, offered in OFFERED_BY_BASH:
        shown = output_of(home, "bash", "--norc", "-c", script, "bash", *words)
        assert sorted(shown[0].split()) == offered, words


@needs("bash")
def test_bash_completes_what_is_typed(home: Mail) -> None:
    shell = Terminal(home, "bash", "--norc", "--noprofile", "-i")
    try:
        shell.type(f"source '{BASH}'; bind 'set enable-bracketed-paste off'; echo READ''Y\n", "READY")
        for typed, got in TYPED:
            assert shell.run(f"agentmail {typed}\t") == got, typed
    finally:
        shell.close()


@needs("zsh")
def test_zsh_completes_what_is_typed(home: Mail) -> None:
    shell = Terminal(home, "zsh", "-f", "-i")
    try:
        shell.type(f"fpath=('{SCRIPTS}' $fpath); autoload -U compinit; compinit -u -D; echo READ''Y\n", "READY")
        for typed, got in TYPED:
            assert shell.run(f"agentmail {typed}\t") == got, typed
        shell.type("agentmail send --a\t", until="Wait for the answer and print it.")
    finally:
        shell.close()


def fish(mail: Mail, typed: str) -> list[list[str]]:
    """What fish offers, each with its description."""
    lines = output_of(mail, "fish", "--no-config", "-c", f"source '{FISH}'; complete -C 'agentmail {typed}'")
    return [line.split("\t") for line in lines]


@needs("fish")
def test_fish_completes_what_is_typed(home: Mail) -> None:
    for typed, got in TYPED:
        last = got.rpartition("<")[2].rstrip(">")
        assert [words[0].replace("\\ ", " ") for words in fish(home, typed)] == [last], typed


@needs("fish")
def test_fish_offers(home: Mail) -> None:
    assert fish(home, "send --aw") == [["--await", "Wait for the answer and print it."]]
    assert fish(home, "send ") == [["all"], ["bob"], ["builder"]]
    assert fish(home, "send bob ") == []
    assert fish(home, "inbox send --h") == [["--help", "Show this message and exit."]]
    assert [words[0] for words in fish(home, "register --state ")] == ["idle", "running"]
