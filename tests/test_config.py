"""The settings that the spool itself enforces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Mail
from tests.sessions import register

DEFAULTS = {"cap": 100, "overflow": "drop-oldest", "timeout_ms": 120_000, "max_body": 1 << 20, "keep_days": 30}


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob")


def settings(mail: Mail) -> dict[str, Any]:
    found: dict[str, Any] = mail.run("alice", "config", "--json").ok().json["settings"]
    return found


def test_the_defaults_are_those_of_the_contract(mail: Mail) -> None:
    assert DEFAULTS.items() <= settings(mail).items()


def test_every_setting_is_shown_on_a_line(mail: Mail) -> None:
    lines = [line.split() for line in mail.run("alice", "config").ok().out.splitlines()]
    assert {line[0]: line[1] for line in lines} == {name: str(value) for name, value in settings(mail).items()}


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("cap", "500", 500),
        ("cap", "1", 1),
        ("timeout_ms", "0", 0),
        ("overflow", "refuse", "refuse"),
        ("keep_days", "7", 7),
    ],
)
def test_a_setting_is_changed_for_everybody(mail: Mail, name: str, value: str, kept: int | str) -> None:
    mail.run("alice", "config", name, value).ok()
    assert mail.run("bob", "config", name, "--json").ok().json == {"op": "config", "settings": {name: kept}}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["colour", "red"], "there is no setting 'colour'; the settings are cap, "),
        (["colour"], "there is no setting 'colour'"),
        (["", "1"], "there is no setting ''"),
        (["cap", "0"], "cap is a whole number from 1 on, not '0'"),
        (["cap", "many"], "cap is a whole number"),
        (["cap", "1.5"], "cap is a whole number"),
        (["cap", "٣"], "cap is a whole number"),
        (["cap", ""], "cap is a whole number"),
        (["cap", "9" * 20], "cap is a whole number"),
        (["max_body", "0"], "max_body is a whole number from 1 on"),
        (["overflow", "explode"], "overflow is one of drop-oldest, refuse, not 'explode'"),
    ],
)
def test_what_cannot_be_set_is_refused(mail: Mail, words: list[str], told: str) -> None:
    before = mail.sql("SELECT * FROM settings")
    done = mail.run("alice", "config", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert mail.sql("SELECT * FROM settings") == before


def test_a_negative_value_is_refused(mail: Mail) -> None:
    done = mail.run("alice", "config", "--", "cap", "-1")
    assert (done.status, done.out) == (2, "")
    assert settings(mail)["cap"] == 100


def test_the_timeout_setting_is_that_of_a_wait_that_names_none(mail: Mail) -> None:
    mail.run("alice", "config", "timeout_ms", "7").ok()
    assert mail.run("bob", "wait").ok().out == "No message within 7ms.\n"
    assert "No answer from bob within 7ms." in mail.run("alice", "send", "bob", "hi", "--await").ok().out
    assert mail.run("bob", "wait", "--from", "alice", "--timeout", "3ms").ok().out.endswith(": hi\n")


def test_refusing_is_in_force_for_any_writer(mail: Mail) -> None:
    for setting in (("cap", "1"), ("overflow", "refuse")):
        mail.run("alice", "config", *setting).ok()
    mail.send("alice", "bob", "fills it")
    with pytest.raises(Exception, match="mailbox full"):
        mail.sql("INSERT INTO receipts (message, recipient) SELECT 1, id FROM agents WHERE name = 'bob'")
