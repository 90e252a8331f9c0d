"""Who is there, as it is at the moment of asking."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.conftest import Mail
from tests.sessions import Session, register


@pytest.fixture(autouse=True)
def _spool(mail: Mail) -> None:
    register(mail, "alice")


def peers(mail: Mail, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = mail.run("alice", "list", "--json", *options).ok().json["peers"]
    return found


def names(mail: Mail, *options: str) -> list[str]:
    return [item["id"] for item in peers(mail, *options)]


def test_with_nobody_else_it_says_so(mail: Mail) -> None:
    assert mail.run("alice", "list").ok().out == "No other agents.\n"
    assert mail.run("alice", "list", "--json").ok().json == {"op": "list", "peers": []}


def test_a_peer_is_shown_with_all_that_is_known(mail: Mail) -> None:
    Session(mail).named("carol")
    Session(mail).named("bob", "--display", "Build agent", "--parent", "carol", "--state", "running")
    mail.run("carol", "send", "bob", "hi", "--force").ok()
    mail.run("bob", "status", "fixing the login tests", "--force").ok()
    shown = mail.run("alice", "list").ok().out.splitlines()
    assert shown[0] == "2 peers:"
    assert shown[1] == (
        "- bob [Build agent · human · running] 1 unread, child of carol, active just now: fixing the login tests"
    )


def test_a_peer_in_json(mail: Mail) -> None:
    Session(mail).named("bob", "--display", "Build agent")
    peer = peers(mail)[0]
    assert peer.pop("lastActivity") > 1_700_000_000_000
    assert peer == {
        "id": "bob",
        "displayName": "Build agent",
        "kind": "human",
        "status": "idle",
        "unread": 0,
        "directory": str(mail.home),
    }


def test_one_peer_is_not_called_peers(mail: Mail) -> None:
    register(mail, "bob")
    assert mail.run("alice", "list").ok().out.startswith("1 peer:\n- bob [bob · human · idle] 0 unread, active ")


def test_running_comes_before_idle_before_parked(mail: Mail) -> None:
    register(mail, "parked", "idle", "running")
    for name in ("parked", "running"):
        mail.sql("UPDATE agents SET status = ? WHERE name = ?", name, name)
    assert names(mail) == ["running", "idle", "parked"]


def test_the_most_recent_comes_first(mail: Mail) -> None:
    register(mail, "bob", "carol", "dave")
    for age, name in enumerate(("carol", "dave", "bob")):
        mail.sql("UPDATE agents SET active = active - ? WHERE name = ?", 60_000 * age, name)
    assert names(mail) == ["carol", "dave", "bob"]


@pytest.mark.parametrize(
    ("age", "shown"), [(150_000, "2m ago"), (3 * 3_600_000, "3h ago"), (50 * 3_600_000, "2d ago")]
)
def test_the_age_of_the_last_activity_is_shown(mail: Mail, age: int, shown: str) -> None:
    register(mail, "bob")
    mail.sql("UPDATE agents SET active = active - ? WHERE name = 'bob'", age)
    assert f"active {shown}" in mail.run("alice", "list").ok().out


def test_doing_something_counts_as_activity(mail: Mail) -> None:
    register(mail, "bob")
    mail.sql("UPDATE agents SET active = active - 600000 WHERE name = 'bob'")
    mail.send("bob", "alice", "hi")
    assert "active just now" in mail.run("alice", "list").ok().out


def test_the_footer_comes_with_parked_agents_only(mail: Mail) -> None:
    footer = "Parked agents are revived when messaged."
    register(mail, "bob")
    assert footer not in mail.run("alice", "list").ok().out
    mail.run("bob", "park").ok()
    assert mail.run("alice", "list").ok().out.splitlines()[-1] == footer


def test_aborted_agents_are_left_out(mail: Mail) -> None:
    register(mail, "bob", "carol")
    mail.run("alice", "abort", "bob").ok()
    assert names(mail) == ["carol"]


def test_oneself_is_left_out_unless_all_are_asked_for(mail: Mail) -> None:
    register(mail, "bob")
    assert names(mail) == ["bob"]
    assert sorted(names(mail, "--all")) == ["alice", "bob"]


def test_looking_does_not_register_anybody(mail: Mail) -> None:
    assert "- alice [" in mail.run("stranger", "list").ok().out
    assert mail.sql("SELECT name FROM agents") == [("alice",)]


def test_unread_mail_is_counted_and_read_mail_is_not(mail: Mail) -> None:
    register(mail, "bob")
    for body in ("one", "two"):
        mail.send("alice", "bob", body)
    assert peers(mail)[0]["unread"] == 2
    mail.run("bob", "wait").ok()
    assert peers(mail)[0]["unread"] == 1


def test_a_session_that_died_without_a_word_is_parked(mail: Mail) -> None:
    bob = Session(mail).named("bob", "--state", "running")
    assert peers(mail)[0]["status"] == "running"
    bob.end()
    assert peers(mail)[0]["status"] == "parked"


def test_another_process_with_the_number_of_a_dead_one_is_not_taken_for_it(mail: Mail) -> None:
    bob = Session(mail).named("bob", "--state", "running")
    process = str(mail.sql("SELECT process FROM agents WHERE name = 'bob'")[0][0])
    mail.sql("UPDATE agents SET process = ? WHERE name = 'bob'", process + "1")  # began at another time
    assert peers(mail)[0]["status"] == "parked"
    assert bob.process.poll() is None


def test_an_agent_without_a_process_is_live_for_an_hour(mail: Mail) -> None:
    register(mail, "bob", "carol")
    mail.sql("UPDATE agents SET process = NULL")
    mail.sql("UPDATE agents SET active = active - 3700000 WHERE name = 'bob'")
    assert {item["id"]: item["status"] for item in peers(mail)} == {"bob": "parked", "carol": "idle"}


def test_only_the_newest_announcement_is_shown(mail: Mail) -> None:
    for text in ("reading", "writing"):
        mail.run("bob", "status", text).ok()
    shown = mail.run("alice", "list").ok().out
    assert re.search(r"^- bob \[.*: writing$", shown, re.MULTILINE)
    assert "reading" not in shown
