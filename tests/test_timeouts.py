"""The one rule for timeouts, which the spool itself applies."""

from __future__ import annotations

import signal

import pytest

from tests.conftest import Mail, finish

DEFAULT = 120_000
RULE = [
    ("nan", DEFAULT),
    ("inf", DEFAULT),
    ("-inf", DEFAULT),
    ("-1", DEFAULT),
    ("-0.5", DEFAULT),
    ("1e300", DEFAULT),
    ("0", 0),
    ("0.0", 0),
    ("-0", 0),
    ("0.4", 1),
    ("1.9", 1),
    ("1e3", 1000),
    ("90000", 90_000),
]


def registered(mail: Mail, *words: str, **env: str) -> int:
    """The timeout with which a blocked wait is registered, in milliseconds; 0 is none."""
    waiting = mail.start("bob", "wait", *words, **env)
    try:
        mail.wait_until_waiting("bob")
        return int(mail.sql("SELECT timeout_ms FROM waiters")[0][0])
    finally:
        waiting.send_signal(signal.SIGKILL)
        waiting.communicate()
        mail.sql("DELETE FROM waiters")


def normalized(mail: Mail, asked: str) -> int:
    """What the spool makes of a timeout, whoever inserts it."""
    from agentmail.cli.call import Call
    from agentmail.spool import agents, open_spool, waiters

    spool = open_spool(str(mail.spool))
    bob = agents.by_name(spool.db, "bob")
    assert bob
    given = Call("wait", {"timeout_ms": asked}).timeout()
    with spool.transaction():
        timeout = waiters.register(spool.db, bob.id, f"test-{asked}", asked=given)
    spool.close()
    return timeout


@pytest.mark.parametrize(("asked", "expected"), RULE)
def test_every_row_of_the_rule(mail: Mail, asked: str, expected: int) -> None:
    mail.register("bob")
    assert normalized(mail, asked) == expected


LASTING = [(asked, expected) for asked, expected in RULE if expected == 0 or expected > 60_000]


@pytest.mark.parametrize(("asked", "expected"), [*LASTING, ("90000.7", 90_000)])
def test_the_rule_holds_through_the_command(mail: Mail, asked: str, expected: int) -> None:
    assert registered(mail, "--timeout-ms", asked) == expected


@pytest.mark.parametrize(("asked", "shown"), [("0.4", "1ms"), ("1.9", "1ms"), ("1", "1ms"), ("1e3", "1s")])
def test_a_positive_timeout_is_truncated_and_lasts_at_least_a_millisecond(mail: Mail, asked: str, shown: str) -> None:
    assert mail.run("bob", "wait", "--timeout-ms", asked).ok().out == f"No message within {shown}.\n"


@pytest.mark.parametrize(("asked", "shown"), [("0.4", "1ms"), ("5", "5ms")])
def test_the_environment_may_ask_for_a_short_one(mail: Mail, asked: str, shown: str) -> None:
    assert mail.run("bob", "wait", AGENTMAIL_TIMEOUT_MS=asked).ok().out == f"No message within {shown}.\n"


def test_without_one_it_is_the_setting(mail: Mail) -> None:
    assert registered(mail) == DEFAULT
    mail.run(None, "config", "timeout_ms", "70000").ok()
    assert registered(mail) == 70_000
    mail.run(None, "config", "timeout_ms", "0").ok()
    assert registered(mail) == 0


@pytest.mark.parametrize(
    ("value", "expected"), [("abc", DEFAULT), ("nan", DEFAULT), ("-3", DEFAULT), ("0", 0), ("50000", 50_000)]
)
def test_the_environment_comes_before_the_setting(mail: Mail, value: str, expected: int) -> None:
    mail.register("bob")
    mail.run(None, "config", "timeout_ms", "70000").ok()
    assert registered(mail, AGENTMAIL_TIMEOUT_MS=value) == expected


def test_an_option_comes_before_the_environment(mail: Mail) -> None:
    assert registered(mail, "--timeout", "1h30m", AGENTMAIL_TIMEOUT_MS="5") == 5_400_000
    assert registered(mail, "--timeout", "2m", AGENTMAIL_TIMEOUT_MS="5") == 120_000


def test_a_wrong_explicit_timeout_is_the_default_and_not_the_setting(mail: Mail) -> None:
    mail.register("bob")
    mail.run(None, "config", "timeout_ms", "70000").ok()
    assert registered(mail, "--timeout-ms", "-1") == DEFAULT


def test_the_sqlite3_shell_cannot_get_round_it(mail: Mail) -> None:
    mail.register("bob")
    for number, asked in enumerate(["abc", -5, 0, 0.4, 1e3, None]):
        mail.sql("INSERT INTO waiters (agent, holder, asked) SELECT id, ?, ? FROM agents", f"h{number}", asked)
    assert [row[0] for row in mail.sql("SELECT timeout_ms FROM waiters ORDER BY id")] == [
        *(DEFAULT, DEFAULT, 0, 1, 1000, DEFAULT)
    ]


@pytest.mark.parametrize("words", [["--timeout-ms", "abc"], ["--timeout-ms", "1_000"], ["--timeout", "90"]])
def test_what_is_no_timeout_is_refused(mail: Mail, words: list[str]) -> None:
    refused = mail.run("bob", "wait", *words)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)


def test_a_timeout_is_given_once(mail: Mail) -> None:
    assert mail.run("bob", "wait", "--timeout", "1s", "--timeout-ms", "5").status == 2


def test_exit_code_tells_a_timeout_apart(mail: Mail) -> None:
    assert mail.run("bob", "wait", "--timeout-ms", "1").status == 0
    assert mail.run("bob", "wait", "--timeout-ms", "1", "--exit-code").status == 124
    waiting = mail.start("bob", "wait", "--timeout", "20s", "--exit-code")
    mail.wait_until_waiting("bob")
    mail.send("alice", "bob", "hi")
    assert finish(waiting).status == 0
