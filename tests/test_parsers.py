"""The fast lane and typer read every command line alike, and misuse is told in one line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmail import __version__
from agentmail.__main__ import run
from agentmail.cli import fast, full
from agentmail.cli.call import Call
from agentmail.commands import BY_NAME, COMMANDS, COMMON, FLAG, Command, Option
from agentmail.errors import BadInput

if TYPE_CHECKING:
    from tests.conftest import Mail

NAMES = [command.name for command in COMMANDS]
OPTIONS = list({option.name: option for command in COMMANDS for option in command.options}.values())

VALUES = st.one_of(
    st.sampled_from(
        ["bob", "", "-", "--", "-1", "--as", "--json", "=", "a=b", "--x=y", "2m", "@bob", "/x", "a b", "\n"]
    ),
    st.text(max_size=5),
)


def spelled(option: Option) -> st.SearchStrategy[list[str]]:
    """The option, rightly and wrongly."""
    name = option.name
    return st.one_of(
        st.just([name]),
        VALUES.map(lambda value: [name, value]),
        VALUES.map(lambda value: [f"{name}={value}"]),
        st.integers(1, len(name)).map(lambda end: [name[:end]]),
        st.sampled_from([[name[1:]], [name.upper()], [name + "x"], [f"--{option.key}"], [f"--no-{name[2:]}"]]),
    )


WORDS = st.one_of(
    st.sampled_from(OPTIONS).flatmap(spelled),
    st.sampled_from([*NAMES, "-h", "--help", "--version", "-x", "--bogus", "--", "--install-completion"]).map(
        lambda word: [word]
    ),
    VALUES.map(lambda value: [value]),
)


def joined(parts: list[list[str]]) -> list[str]:
    return [word for part in parts for word in part]


def well_formed(options: tuple[Option, ...]) -> st.SearchStrategy[list[str]]:
    """Options as they should be written, some of them more than once."""

    def one(option: Option) -> st.SearchStrategy[list[str]]:
        if option.kind == FLAG:
            return st.just([option.name])
        return st.one_of(VALUES.map(lambda value: [option.name, value]), VALUES.map(lambda v: [f"{option.name}={v}"]))

    return st.lists(st.sampled_from(options).flatmap(one), max_size=3).map(joined) if options else st.just([])


def plain(command: Command) -> st.SearchStrategy[list[str]]:
    """The command line of one command as people write it, options before and after its name."""
    words = st.lists(st.sampled_from(["bob", "3", "-", "ünïcödé", "a b"]), max_size=len(command.arguments))
    return st.builds(
        lambda before, options, arguments, dashes: [*before, command.name, *options, *dashes, *arguments],
        well_formed(COMMON),
        well_formed(command.options),
        words,
        st.sampled_from([[], ["--"]]),
    )


def by_typer(words: list[str]) -> Call | str | None:
    """What typer makes of the words: a call, nothing because it showed something, or why it refused."""
    try:
        return full.parse(list(words))
    except BadInput as error:
        return str(error)


QUICKLY = settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICKLY
@given(
    st.lists(WORDS, max_size=4).map(joined), st.sampled_from([*NAMES, None]), st.lists(WORDS, max_size=5).map(joined)
)
def test_the_fast_lane_gives_the_call_that_typer_gives_or_none(
    before: list[str], name: str | None, after: list[str]
) -> None:
    words = [*before, *([name] if name else []), *after]
    call, expected = fast.parse(list(words)), by_typer(words)
    assert call is None or call == expected


@settings(QUICKLY, max_examples=500)
@given(st.sampled_from(COMMANDS).flatmap(plain))
def test_the_fast_lane_answers_whatever_is_well_formed(words: list[str]) -> None:
    call = fast.parse(list(words))
    assert call is not None
    assert call == by_typer(words)


PLAIN = [
    ("send bob which port?", {"to": "bob", "message": ("which", "port?")}),
    ("send bob", {"to": "bob"}),
    ("send all -", {"to": "all", "message": ("-",)}),
    ("send bob --await --timeout 5m hi", {"to": "bob", "message": ("hi",), "await": True, "timeout": "5m"}),
    ("send --timeout-ms=-1 bob hi", {"to": "bob", "message": ("hi",), "timeout_ms": "-1"}),
    ("send bob -- --not-an-option --", {"to": "bob", "message": ("--not-an-option", "--")}),
    ("send bob --body-file - --once k", {"to": "bob", "body_file": "-", "once": "k"}),
    ("send bob --reply-to 3 --hold", {"to": "bob", "reply_to": "3", "hold": True}),
    ("--as alice --json send bob hi", {"to": "bob", "message": ("hi",), "as": "alice", "json": True}),
    ("--as alice send bob --as carol", {"to": "bob", "as": "carol"}),
    ("wait", {}),
    ("wait --from bob --timeout 10m --exit-code", {"from": "bob", "timeout": "10m", "exit_code": True}),
    ("inbox", {}),
    ("inbox --peek --json --limit 3", {"peek": True, "json": True, "limit": "3"}),
    ("list", {}),
    ("list --all --spool=/a=b", {"all": True, "spool": "/a=b"}),
    ("reply 3 it is 8080", {"id": "3", "message": ("it", "is", "8080")}),
    ("ack 3 4 5", {"ids": ("3", "4", "5")}),
    ("status fixing tests", {"text": ("fixing", "tests")}),
    ("status", {}),
]


@pytest.mark.parametrize(("line", "values"), PLAIN)
def test_plain_forms_of_hot_commands_need_no_typer(
    line: str, values: dict[str, str | bool | tuple[str, ...]]
) -> None:
    name = next(word for word in line.split() if word in BY_NAME)
    assert fast.parse(line.split()) == Call(name, values)


MISUSE = [
    ("bogus", "'bogus'"),
    ("snd bob hi", "'send'"),
    ("send bob --bogus", "--bogus; put '--' before a message that starts with '-'; see 'agentmail send --help'"),
    ("list --bogus", "--bogus; see 'agentmail list --help'"),
    ("--bogus list", "--bogus; see 'agentmail --help'"),
    ("send bob --awai hi", "--await"),
    ("send bob -x", "-x"),
    ("inbox --from", "'--from' requires an argument; see 'agentmail inbox --help'"),
    ("--as", "'--as' requires an argument; see 'agentmail --help'"),
    ("list --json=yes", "'--json' does not take a value"),
    ("inbox bob", "(bob)"),
    ("--force", "missing command"),
]


@pytest.mark.parametrize(("line", "told"), MISUSE)
def test_misuse_is_told_in_one_line(line: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    out, err = capfd.readouterr()
    assert err.startswith("agentmail: ")
    assert err.count("\n") == 1
    assert told in err
    assert "--help'" in err
    if "--json" not in line:
        assert out == ""


def squeezed(text: str) -> str:
    """The text without blanks and line ends, for help breaks its lines."""
    return "".join(text.split())


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_the_help_of_a_command_shows_all_there_is(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([command.name, "--help"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert squeezed(command.help) in squeezed(out)
    for option in command.options:
        assert squeezed(f"{option.name}{option.metavar}{option.help}") in squeezed(out)
    for argument in command.arguments:
        assert squeezed(argument.help) in squeezed(out)
    assert command.examples
    for example in command.examples:
        assert f"  {example}\n" in out


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_agentmail_alone_shows_its_commands(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "Usage: agentmail" in out
    for name in NAMES:
        assert f"\n  {name} " in out


def test_the_version_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr() == (f"agentmail {__version__}\n", "")


# Each costs a cold start about a millisecond, or many.
SLOW = {
    "contextlib",
    "dataclasses",
    "enum",
    "importlib.metadata",
    "inspect",
    "json",
    "pathlib",
    "re",
    "sqlite_utils",
    "subprocess",
    "typer",
    "typing",
}
SHOW_MODULES = "import sys; print(*sys.modules, file=sys.stderr)"


def modules(mail: Mail, code: str, *words: str) -> set[str]:
    """What a fresh interpreter has imported in the end. -S: what the environment's start-up imports is not ours."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"{code}\n{SHOW_MODULES}", *words],
        env=mail.environment("alice"),
        cwd=mail.home,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere psutil and platformdirs are asked")
@pytest.mark.parametrize("line", ["send bob hi", "inbox", "inbox --peek", "list"])
def test_hot_commands_import_nothing_slow(mail: Mail, line: str) -> None:
    mail.register("alice", "bob")
    run_it = "import sys; from agentmail.__main__ import run; assert run(sys.argv[1:]) == 0"
    extra = modules(mail, run_it, *line.split()) - modules(mail, "import sqlite3")
    assert "agentmail.spool" in extra
    assert not extra & SLOW
