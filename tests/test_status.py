"""What agents announce that they work on."""

from __future__ import annotations

import pytest

from tests.conftest import Mail
from tests.sessions import register


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob")


def announced(mail: Mail) -> list[str]:
    return [item["text"] for item in mail.run("alice", "status", "--json").ok().json["status"]]


def test_an_announcement_is_repeated_to_who_made_it(mail: Mail) -> None:
    assert mail.run("alice", "status", "fixing", "tests").ok().out == "alice: fixing tests\n"


def test_an_announcement_is_shown_to_others(mail: Mail) -> None:
    mail.run("alice", "status", "fixing tests").ok()
    assert mail.run("bob", "list", "--json").ok().json["peers"][0]["announced"] == "fixing tests"


def test_who_has_announced_nothing_is_told_so(mail: Mail) -> None:
    assert mail.run("alice", "status").ok().out == "Nothing announced yet.\n"
    assert announced(mail) == []


def test_ones_own_announcements_are_shown_newest_last(mail: Mail) -> None:
    for text in ("one", "two"):
        mail.run("alice", "status", text).ok()
    assert announced(mail) == ["one", "two"]
    assert [line[20:] for line in mail.run("alice", "status").ok().out.splitlines()] == ["one", "two"]


def test_an_announcement_has_its_time_in_json(mail: Mail) -> None:
    found = mail.run("alice", "status", "fixing tests", "--json").ok().json
    assert found["op"] == "status"
    assert found["status"][0]["ts"] > 1_700_000_000_000


def test_300_characters_are_not_too_many(mail: Mail) -> None:
    mail.run("alice", "status", "é" * 300).ok()
    assert announced(mail) == ["é" * 300]


def test_a_longer_one_is_refused_and_not_cut(mail: Mail) -> None:
    done = mail.run("alice", "status", "é" * 301)
    assert (done.status, done.out) == (2, "")
    assert "has 301 characters and the limit is 300" in done.err
    assert announced(mail) == []


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_one_is_refused(mail: Mail, text: str) -> None:
    done = mail.run("alice", "status", text)
    assert done.status == 2
    assert "the status is empty" in done.err
    assert announced(mail) == []


def test_the_last_50_are_kept(mail: Mail) -> None:
    mail.run("alice", "status", "the first").ok()
    mail.sql(
        "WITH RECURSIVE numbers AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM numbers WHERE i < 48)"
        " INSERT INTO statuses (agent, text, ts) SELECT agent, 'number ' || i, ts FROM numbers, statuses"
    )
    assert announced(mail)[0] == "the first"
    mail.run("alice", "status", "the last").ok()
    found = announced(mail)
    assert (len(found), found[0], found[-1]) == (50, "number 0", "the last")


def test_an_announcement_wakes_nobody_and_is_no_mail(mail: Mail) -> None:
    waiting = mail.start("bob", "wait", "--timeout-ms", "0")
    mail.wait_until_waiting("bob")
    mail.run("alice", "status", "fixing tests for bob").ok()
    assert mail.sql("SELECT count(*) FROM messages") == [(0,)]
    assert mail.sql("SELECT count(*) FROM waiters") == [(1,)]
    assert waiting.poll() is None
    assert (mail.spool.with_name("spool.db-bells") / "bob").stat().st_size == 0


def test_an_announcement_is_not_shared_by_an_agent_of_the_same_name(mail: Mail) -> None:
    mail.run("alice", "status", "fixing tests").ok()
    mail.run("bob", "abort", "alice").ok()
    assert announced(mail) == []
