"""Coming under a name, going, and being removed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Mail
from tests.sessions import Session, register


@pytest.fixture(autouse=True)
def _spool(mail: Mail) -> None:
    register(mail, "alice")


def peer(mail: Mail, name: str) -> dict[str, Any]:
    found = mail.run("alice", "list", "--json").ok().json["peers"]
    return next(item for item in found if item["id"] == name)


def status(mail: Mail, name: str) -> list[str]:
    return [row[0] for row in mail.sql("SELECT status FROM agents WHERE name = ? ORDER BY id", name)]


# register


def test_a_session_is_told_its_name(mail: Mail) -> None:
    session = Session(mail)
    assert session.run("register", "bob").ok().out == "You are bob.\n"
    assert session.name() == "bob"


def test_registering_in_json(mail: Mail) -> None:
    found = Session(mail).run("register", "bob", "--state", "running", "--json").ok().json
    assert found == {"op": "register", "agent": "bob", "status": "running"}


def test_without_a_name_the_derived_one_is_registered(mail: Mail) -> None:
    assert Session(mail).run("register").ok().out == "You are person.\n"
    assert status(mail, "person") == ["idle"]


@pytest.mark.parametrize("name", ["all", "b/b", "", "-x", "x" * 65])
def test_a_bad_name_is_refused(mail: Mail, name: str) -> None:
    done = mail.run(None, "register", "--", name)
    assert (done.status, done.out) == (2, "")
    assert mail.sql("SELECT name FROM agents") == [("alice",)]


@pytest.mark.parametrize("parked", [True, False])
def test_a_name_that_differs_only_by_case_is_refused(mail: Mail, parked: bool) -> None:
    bob = Session(mail).named("bob")
    if parked:
        bob.run("park").ok()
    done = Session(mail).run("register", "Bob")
    assert done.status == 2
    assert "'Bob'" in done.err or "'bob'" in done.err
    assert mail.sql("SELECT name FROM agents") == [("alice",), ("bob",)]


def test_a_session_has_one_name_at_a_time_and_the_former_is_parked(mail: Mail) -> None:
    session = Session(mail).named("bob").named("carol")
    assert session.name() == "carol"
    assert status(mail, "bob") == ["parked"]


def test_a_former_name_can_be_taken_up_again_with_its_mail(mail: Mail) -> None:
    session = Session(mail).named("bob").named("carol")
    mail.send("alice", "bob", "hi")
    assert session.named("bob").run("inbox").ok().out.endswith(": hi\n")
    assert status(mail, "carol") == ["parked"]


def test_a_parked_name_may_be_registered_by_another_session(mail: Mail) -> None:
    Session(mail).named("bob").end()
    mail.send("alice", "bob", "hi")
    assert Session(mail).named("bob").run("inbox").ok().out.endswith(": hi\n")


def test_registering_again_changes_nothing(mail: Mail) -> None:
    session = Session(mail).named("bob")
    before = mail.sql("SELECT id, name, status, since, process FROM agents")
    assert session.run("register", "bob").ok().out == "You are bob.\n"
    assert mail.sql("SELECT id, name, status, since, process FROM agents") == before


def test_with_force_a_live_name_is_taken(mail: Mail) -> None:
    former, later = Session(mail).named("bob"), Session(mail)
    later.run("register", "bob", "--force").ok()
    assert later.name() == "bob"
    assert former.name() == "person"


@pytest.mark.parametrize("state", ["running", "idle"])
def test_a_turn_begins_and_ends(mail: Mail, state: str) -> None:
    session = Session(mail).named("bob", "--state", "running" if state == "idle" else "idle")
    session.run("register", "--state", state).ok()
    assert peer(mail, "bob")["status"] == state


@pytest.mark.parametrize("state", ["parked", "Running", ""])
def test_no_other_state_can_be_registered(mail: Mail, state: str) -> None:
    done = mail.run(None, "register", "bob", "--state", state)
    assert done.status == 2
    assert "--state takes 'running' or 'idle'" in done.err
    assert status(mail, "bob") == []


def test_a_name_for_people_and_a_parent_are_shown(mail: Mail) -> None:
    Session(mail).named("bob", "--display", "Build agent", "--parent", "ALICE")
    assert (peer(mail, "bob")["displayName"], peer(mail, "bob")["parent"]) == ("Build agent", "alice")


def test_the_name_for_people_can_be_changed(mail: Mail) -> None:
    Session(mail).named("bob", "--display", "Build agent").named("bob", "--display", "Builder")
    assert peer(mail, "bob")["displayName"] == "Builder"


@pytest.mark.parametrize("kind", ["human", "claude"])
def test_a_session_with_a_parent_is_known_by_its_process(mail: Mail, kind: str) -> None:
    assert Session(mail, kind).named("bob", "--parent", "alice").name() == "bob"


def test_a_turn_changes_neither_the_name_for_people_nor_the_parent(mail: Mail) -> None:
    session = Session(mail, "claude", "s1").named("bob", "--display", "Build agent", "--parent", "alice")
    session.run("register", "--state", "running").ok()
    assert peer(mail, "bob")["status"] == "running"
    assert (peer(mail, "bob")["displayName"], peer(mail, "bob").get("parent")) == ("Build agent", "alice")


def test_an_unknown_parent_is_refused(mail: Mail) -> None:
    done = mail.run(None, "register", "bob", "--parent", "carol")
    assert done.status == 2
    assert "no agent 'carol' to be the parent" in done.err
    assert status(mail, "bob") == []


# park


def test_who_parks_is_told_so(mail: Mail) -> None:
    session = Session(mail).named("bob")
    assert session.run("park").ok().out == "bob is parked.\n"
    assert session.run("register", "carol").ok()
    assert session.run("park", "--json").ok().json == {"op": "park", "agent": "carol", "status": "parked"}


def test_mail_waits_for_a_parked_agent(mail: Mail) -> None:
    session = Session(mail).named("bob")
    session.run("park").ok()
    mail.send("alice", "bob", "hi")
    assert session.run("--as", "bob", "inbox").ok().out.endswith(": hi\n")


def test_whoever_does_something_after_parking_is_back(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("bob", "park").ok()
    assert status(mail, "bob") == ["parked"]
    mail.run("bob", "inbox").ok()
    assert status(mail, "bob") == ["idle"]


def test_looking_around_does_not_bring_anybody_back(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("bob", "park").ok()
    for words in (["list"], ["whoami"], ["log"]):
        mail.run("bob", *words).ok()
    assert status(mail, "bob") == ["parked"]


# abort


def test_who_is_aborted_is_gone(mail: Mail) -> None:
    register(mail, "bob")
    assert mail.run("alice", "abort", "BOB").ok().out == "bob is aborted.\n"
    assert mail.run("alice", "list").ok().out == "No other agents.\n"
    assert mail.run("alice", "send", "bob", "hi").status == 1


def test_aborting_in_json(mail: Mail) -> None:
    register(mail, "bob")
    assert mail.run("alice", "abort", "bob", "--json").ok().json == {
        "op": "abort",
        "agent": "bob",
        "status": "aborted",
    }


@pytest.mark.parametrize("words", [[], ["carol"], ["all"], [""]])
def test_nobody_else_can_be_aborted(mail: Mail, words: list[str]) -> None:
    done = mail.run("alice", "abort", *words)
    assert (done.status, done.out) == (2, "")
    assert status(mail, "alice") == ["idle"]


def test_an_aborted_agent_cannot_be_aborted_again(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("alice", "abort", "bob").ok()
    assert mail.run("alice", "abort", "bob").status == 2


def test_unread_mail_of_an_aborted_agent_is_dropped_and_read_mail_is_kept(mail: Mail) -> None:
    register(mail, "bob")
    mail.send("alice", "bob", "one")
    mail.run("bob", "wait").ok()
    mail.send("alice", "bob", "two")
    mail.run("alice", "abort", "bob").ok()
    assert mail.sql("SELECT state FROM receipts ORDER BY message") == [("read",), ("dropped",)]


def test_a_name_used_again_after_an_abort_starts_empty(mail: Mail) -> None:
    register(mail, "bob")
    mail.send("alice", "bob", "for the first")
    mail.run("alice", "abort", "bob").ok()
    register(mail, "bob")
    assert mail.run("bob", "inbox").ok().out == "Inbox empty.\n"
    assert mail.run("bob", "log").ok().out == "No messages.\n"
    assert status(mail, "bob") == ["aborted", "idle"]


def test_an_agent_may_abort_itself(mail: Mail) -> None:
    session = Session(mail).named("bob")
    session.run("abort", "bob").ok()
    assert status(mail, "bob") == ["aborted"]
    assert session.name() == "person"
