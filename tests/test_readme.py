"""Every exchange that the README shows happens just so; every command that it names exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agentmail.commands import BY_NAME
from tests.conftest import AGENTMAIL, Mail

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).parent.parent / "README.md"
PROMPT = re.compile(r"^(\w+)\$ (.*)$")


class Step(NamedTuple):
    agent: str
    command: str
    expected: str


def sections() -> Iterator[tuple[str, list[Step]]]:
    """The console blocks of each part of the README, in order: within a part, one block continues the last."""
    for part in re.split(r"^## ", README.read_text("utf-8"), flags=re.MULTILINE):
        blocks = re.findall(r"^```console\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
        if blocks:
            yield part.splitlines()[0].strip("# "), list(steps("".join(blocks)))


def steps(text: str) -> Iterator[Step]:
    agent, command = "", ""
    output: list[str] = []
    for line in text.splitlines():
        match = PROMPT.match(line)
        if match:
            if command:
                yield Step(agent, command, "\n".join(output))
            agent, command, output = match[1], match[2], []
        elif line.startswith("> ") and "<<" in command:
            command += "\n" + line[2:]
        else:
            output.append(line)
    yield Step(agent, command, "\n".join(output))


def normal(text: str) -> str:
    """The text without what differs from run to run: ids, times, ages."""
    text = re.sub(r"\b\d{15,19}\b", "ID", text)
    text = re.sub(r'"ts":\d+', '"ts":TS', text)
    text = re.sub(r"active \d+s ago", "active just now", text)
    return re.sub(r"idle for \d+s", "idle for 0s", text).strip()


@pytest.mark.parametrize(
    ("title", "story"), list(sections()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_exchanges_shown_happen_just_so(mail: Mail, title: str, story: list[Step]) -> None:
    mail.register("alice", "bob")
    blocked: list[tuple[Step, subprocess.Popen[str]]] = []
    shim = mail.home / "agentmail"
    shim.write_text(f'#!/bin/sh\nexec "{AGENTMAIL[0]}" -m agentmail "$@"\n')
    shim.chmod(0o700)
    for step in story:
        environment = mail.environment(step.agent)
        environment["PATH"] = f"{mail.home}:{environment['PATH']}"
        process = subprocess.Popen(
            ["sh", "-c", step.command + "\nstatus=$?; [ $status = 0 ] || echo exit status $status"],
            env=environment,
            cwd=mail.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        if "--await" in step.command:
            blocked.append((step, process))
            mail.wait_until_waiting(step.agent)
        else:
            check(step, process)
    for step, process in blocked:
        check(step, process)


def check(step: Step, process: subprocess.Popen[str]) -> None:
    shown = process.communicate(timeout=30)[0]
    if "exit status" not in step.expected:
        shown = re.sub(r"exit status \d+\n$", "", shown)
    assert normal(shown) == normal(step.expected), step.command


def test_every_command_named_exists() -> None:
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", README.read_text("utf-8"), flags=re.DOTALL))
    named = set(re.findall(r"\bagentmail ([a-z]+)\b", code))
    assert named
    assert named <= set(BY_NAME)


def test_the_commands_for_an_empty_machine_are_the_ones_that_ci_runs() -> None:
    text = README.read_text("utf-8")
    assert ".venv/bin/agentmail demo" in text
    assert re.search(r"<!-- tests -->\n```sh\n.*pytest -n auto\n```", text)
