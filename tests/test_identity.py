"""Who a command speaks for."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agentmail import names
from tests.conftest import Mail
from tests.sessions import Session, register

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _spool(mail: Mail) -> None:
    register(mail)


@pytest.fixture
def project(mail: Mail) -> Path:
    """A directory to work in, outside of any work tree but its own."""
    place = mail.home / "project"
    place.mkdir()
    return place


def whoami(session: Session, *options: str, **env: str) -> dict[str, Any]:
    found: dict[str, Any] = session.run("whoami", "--json", *options, **env).ok().json["agent"]
    return found


def sender(mail: Mail) -> tuple[str, bool]:
    """Who the newest message is from, and whether that is only claimed."""
    return mail.sql("SELECT a.name, NOT m.verified FROM messages AS m JOIN agents AS a ON a.id = m.sender")[-1]


# The order


def test_as_comes_before_the_variable(mail: Mail) -> None:
    done = mail.run("alice", "--as", "carol", "whoami").ok()
    assert done.out.startswith("carol (by --as, claimed; not registered yet")


def test_the_variable_comes_before_the_session(mail: Mail, project: Path) -> None:
    session = Session(mail, "claude", "s1", project).named("bob")
    assert whoami(session)["name"] == "bob"
    assert whoami(session, AGENTMAIL_AGENT="carol") == {
        "name": "carol",
        "verified": False,
        "because": "AGENTMAIL_AGENT",
        "registered": False,
        "spool": str(mail.spool),
    }


def test_an_empty_variable_is_none(mail: Mail) -> None:
    assert whoami(Session(mail).named("bob"), AGENTMAIL_AGENT="")["name"] == "bob"


def test_the_session_id_comes_before_ancestry(mail: Mail) -> None:
    Session(mail, "claude", "s1").named("bob")
    other = Session(mail, "claude", "s2").named("carol")
    found = whoami(other, CLAUDE_CODE_SESSION_ID="s1")
    assert (found["name"], found["because"], found["verified"]) == ("bob", "the session id of claude", True)


def test_without_a_session_id_an_ancestor_process_tells(mail: Mail, project: Path) -> None:
    session = Session(mail, "claude", "", project).named("bob")
    found = whoami(session)
    assert (found["name"], found["because"], found["verified"]) == ("bob", "an ancestor process", True)


def test_an_ancestor_tells_from_any_directory(mail: Mail, project: Path) -> None:
    session = Session(mail, "claude", "", project).named("bob")
    session.directory = mail.home
    assert session.name() == "bob"


def test_without_either_the_directory_tells(mail: Mail, project: Path) -> None:
    session = Session(mail, "claude", "", project)
    found = whoami(session)
    assert found["name"] == names.from_directory("claude", str(project))
    assert (found["because"], found["registered"]) == ("the directory", False)


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode"])
def test_the_name_from_a_directory_begins_with_the_kind_of_harness(mail: Mail, project: Path, kind: str) -> None:
    session = Session(mail, kind, "s1", project)
    assert session.name() == names.from_directory(kind, str(project))
    assert re.fullmatch(kind + "-[0-9a-f]{6}", session.name())


def test_a_person_goes_by_the_login_name(mail: Mail) -> None:
    session = Session(mail)
    session.run("inbox").ok()
    found = whoami(session)
    assert (found["name"], found["kind"], found["because"]) == ("person", "human", "an ancestor process")


def test_a_harness_in_a_persons_terminal_is_not_that_person(mail: Mail) -> None:
    session = Session(mail).named("alice")
    inner = session.run("whoami", "--json", CLAUDECODE="1").ok().json["agent"]
    assert inner["name"] == names.from_directory("claude", str(mail.home))


def test_a_harness_in_another_is_told_by_its_own_session(mail: Mail) -> None:
    Session(mail, "claude", "s1").named("bob")
    inner = Session(mail, "codex", "t1", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="s1").named("carol")
    found = whoami(inner)
    assert (found["name"], found["because"]) == ("carol", "the session id of codex")


def test_one_person_at_two_terminals_is_one_agent(mail: Mail) -> None:
    first, second = Session(mail), Session(mail)
    assert first.run("inbox").ok().out == "Inbox empty.\n"
    register(mail, "bob")
    mail.send("bob", "person", "hi")
    assert second.run("inbox").ok().out.endswith(": hi\n")


# Names from directories


def test_the_name_of_a_project_holds_in_all_its_directories(mail: Mail, project: Path) -> None:
    (project / ".git").mkdir()
    (project / "deep").mkdir()
    assert Session(mail, "claude", "", project / "deep").name() == names.from_directory("claude", str(project))


def test_a_real_work_tree_is_known_by_its_root(mail: Mail, project: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "deep").mkdir()
    expected = names.from_directory("claude", str(project))
    assert Session(mail, "claude", "", project / "deep").name() == expected


def test_a_symlink_to_a_project_gives_the_projects_name(mail: Mail, project: Path) -> None:
    link = mail.home / "link"
    link.symlink_to(project)
    assert Session(mail, "claude", "", link).name() == names.from_directory("claude", str(project))


def test_a_name_from_a_directory_is_kept_over_restarts(mail: Mail, project: Path) -> None:
    session = Session(mail, "claude", "", project)
    session.run("inbox").ok()
    name = session.name()
    session.end()
    assert Session(mail, "claude", "", project).name() == name


# Two sessions in one directory


@pytest.mark.parametrize(
    ("kind", "ids"), [("claude", ("", "")), ("claude", ("s1", "s2")), ("codex", ("t1", "t2"))], ids=str
)
def test_a_second_live_session_in_a_directory_gets_a_name_of_its_own(
    mail: Mail, project: Path, kind: str, ids: tuple[str, str]
) -> None:
    base = names.from_directory(kind, str(project))
    sessions = [Session(mail, kind, one, project) for one in ids]
    for session, name in zip(sessions, (base, f"{base}-2"), strict=True):
        session.run("inbox").ok()
        assert session.name() == name
    assert sessions[0].name() == base


def test_a_third_is_the_third(mail: Mail, project: Path) -> None:
    sessions = [Session(mail, "claude", "", project) for _ in range(3)]
    for session in sessions:
        session.run("inbox").ok()
    assert sessions[2].name() == names.from_directory("claude", str(project)) + "-3"


def test_two_sessions_in_a_directory_do_not_get_each_others_mail(mail: Mail, project: Path) -> None:
    first, second = (Session(mail, "claude", "", project) for _ in range(2))
    for session in (first, second):
        session.run("inbox").ok()
    register(mail, "alice")
    for session in (first, second):
        mail.send("alice", session.name(), f"for {session.name()}")
    for session in (second, first):
        shown = session.run("inbox").ok().out
        assert shown.startswith("1 message:\n")
        assert shown.endswith(f": for {session.name()}\n")


def test_the_second_keeps_its_name_when_the_first_has_gone(mail: Mail, project: Path) -> None:
    first, second = (Session(mail, "claude", "", project) for _ in range(2))
    for session in (first, second):
        session.run("inbox").ok()
    first.end()
    second.run("inbox").ok()
    assert second.name().endswith("-2")


# Taking up a name again


@pytest.mark.parametrize("end", ["parks", "dies"])
def test_the_next_session_in_the_directory_takes_the_name_up_with_its_mail(
    mail: Mail, project: Path, end: str
) -> None:
    register(mail, "alice")
    first = Session(mail, "claude", "", project)
    first.run("inbox").ok()
    name = first.name()
    mail.send("alice", name, "for whoever comes")
    if end == "parks":
        first.run("park").ok()
    first.end()
    second = Session(mail, "claude", "", project)
    assert second.run("inbox").ok().out.endswith(": for whoever comes\n")
    assert second.name() == name
    assert mail.sql("SELECT status FROM agents WHERE name = ?", name) == [("idle",)]


def test_an_aborted_name_starts_with_an_empty_mailbox(mail: Mail, project: Path) -> None:
    register(mail, "alice")
    first = Session(mail, "claude", "", project)
    first.run("inbox").ok()
    name = first.name()
    mail.send("alice", name, "for the first alone")
    mail.run("alice", "abort", name).ok()
    first.end()
    second = Session(mail, "claude", "", project)
    assert second.run("inbox").ok().out == "Inbox empty.\n"
    assert second.name() == name
    assert mail.run("alice", "send", name, "for the second", "--json").ok().json["receipts"][0]["to"] == name
    assert [item["n"] for item in second.run("inbox", "--json").json["inbox"]] == [1]


# Nobody borrows a name


def test_who_is_not_registered_reads_nobody_elses_mail(mail: Mail, project: Path) -> None:
    Session(mail, "claude", "", mail.home).named("bob")
    register(mail, "alice")
    mail.send("alice", "bob", "for bob")
    stranger = Session(mail, "claude", "", project)
    assert stranger.run("inbox").ok().out == "Inbox empty.\n"
    assert mail.sql("SELECT state FROM receipts") == [("pending",)]


def test_who_is_not_registered_sends_under_a_name_of_its_own(mail: Mail, project: Path) -> None:
    Session(mail, "claude", "", mail.home).named("bob")
    register(mail, "alice")
    stranger = Session(mail, "claude", "", project)
    stranger.run("send", "alice", "hi").ok()
    assert sender(mail) == (names.from_directory("claude", str(project)), False)


TAKEN = (
    "agentmail: 'bob' belongs to another live session (human in {place});"
    " choose another name, or insist with --force\n"
)


def test_a_name_of_a_live_session_is_refused_to_others_whatever_they_want(mail: Mail) -> None:
    Session(mail).named("bob")
    register(mail, "alice")
    mail.send("alice", "bob", "for bob")
    for line in (
        *("send alice hi", "inbox", "wait --timeout-ms 1", "reply 1 hi", "ack 1", "status busy", "park", "whoami"),
        *("log", "show 1", "list", "register"),
    ):
        done = mail.run(None, "--as", "bob", *line.split())
        assert done == (2, "", TAKEN.format(place=mail.home)), line
    assert mail.sql("SELECT state FROM receipts") == [("pending",)]


def test_a_live_name_cannot_be_registered_by_others(mail: Mail) -> None:
    Session(mail).named("bob")
    done = Session(mail).run("register", "bob")
    assert (done.status, done.err) == (2, TAKEN.format(place=mail.home))


def test_whoever_insists_gets_the_name_and_it_is_claimed(mail: Mail) -> None:
    bob = Session(mail).named("bob")
    register(mail, "alice")
    mail.run("bob", "send", "alice", "hi", "--force").ok()
    assert sender(mail) == ("bob", True)
    assert bob.name() == "bob"


def test_a_claim_does_not_take_the_name_from_its_session(mail: Mail) -> None:
    bob = Session(mail).named("bob")
    mail.run("bob", "inbox", "--force").ok()
    register(mail, "alice")
    bob.run("send", "alice", "hi").ok()
    assert sender(mail) == ("bob", False)


def test_a_name_that_nobody_holds_may_be_claimed_by_anybody(mail: Mail) -> None:
    register(mail, "bob", "alice")
    mail.send("alice", "bob", "hi")
    assert Session(mail).run("--as", "bob", "inbox").ok().out.endswith(": hi\n")


def test_names_that_are_no_names_cannot_be_claimed(mail: Mail) -> None:
    for name in ("all", "../bob", "b b", "x" * 65):
        done = mail.run(name, "send", "alice", "hi")
        assert done.status == 2
        assert repr(name) in done.err


def test_a_name_that_differs_only_by_case_is_not_claimed(mail: Mail) -> None:
    register(mail, "bob")
    done = mail.run("Bob", "inbox")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("agentmail: 'Bob' differs from 'bob' only by case")
    assert mail.sql("SELECT name FROM agents") == [("bob",)]


def test_the_owner_may_name_itself(mail: Mail) -> None:
    bob = Session(mail).named("bob")
    register(mail, "alice")
    bob.run("--as", "bob", "send", "alice", "hi").ok()
    assert sender(mail) == ("bob", False)


# Claimed and verified


def test_claimed_is_shown_in_text_and_verified_is_not(mail: Mail) -> None:
    register(mail, "alice")
    first = str(Session(mail).named("bob").run("send", "alice", "hi", "--json").ok().json["id"])
    second = mail.send("carol", "alice", "hi")
    shown = mail.run("alice", "inbox").ok().out
    assert shown == f"2 messages:\n- 1. [{first}] bob: hi\n- 2. [{second}] carol (claimed): hi\n"


def test_claimed_is_a_key_in_json_and_verified_is_none(mail: Mail) -> None:
    register(mail, "alice")
    Session(mail).named("bob").run("send", "alice", "hi").ok()
    mail.send("carol", "alice", "hi")
    first, second = mail.run("alice", "inbox", "--json").ok().json["inbox"]
    assert "claimed" not in first
    assert second["claimed"] is True


def test_a_session_id_verifies_from_any_process(mail: Mail) -> None:
    Session(mail, "claude", "s1").named("bob")
    register(mail, "alice")
    mail.run(None, "send", "alice", "hi", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="s1").ok()
    assert sender(mail) == ("bob", False)


def test_a_session_id_of_another_kind_of_harness_verifies_nothing(mail: Mail) -> None:
    Session(mail, "claude", "s1").named("bob")
    found = mail.run(None, "whoami", "--json", GEMINI_CLI="1", GEMINI_SESSION_ID="s1").ok().json["agent"]
    assert found["name"] != "bob"


def test_whoami_says_who_and_why(mail: Mail) -> None:
    session = Session(mail, "claude", "s1").named("bob")
    shown = session.run("whoami").ok().out
    assert shown == f"bob (by the session id of claude; claude, idle)\nspool: {mail.spool}\n"


def test_asking_who_one_is_registers_nobody(mail: Mail) -> None:
    assert "not registered yet" in mail.run("bob", "whoami").ok().out
    assert mail.sql("SELECT count(*) FROM agents") == [(0,)]


def test_an_empty_name_is_refused(mail: Mail) -> None:
    assert mail.run("alice", "inbox", "--as", "").status == 2


def test_nobody_is_its_own_parent(mail: Mail) -> None:
    mail.register("bob")
    assert mail.run("bob", "register", "bob", "--parent", "bob").status == 2
