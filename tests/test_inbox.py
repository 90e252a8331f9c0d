"""Reading what is pending without blocking."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import AGENTMAIL, Mail
from tests.sessions import register


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")


def bodies(mail: Mail, *options: str) -> list[str]:
    return [item["body"] for item in mail.run("bob", "inbox", "--json", *options).ok().json["inbox"]]


def test_an_empty_inbox_says_so(mail: Mail) -> None:
    assert mail.run("bob", "inbox").ok().out == "Inbox empty.\n"
    assert mail.run("bob", "inbox", "--json").ok().json == {"op": "inbox", "inbox": []}


def test_whoever_looks_for_the_first_time_finds_nothing_and_is_registered(mail: Mail) -> None:
    assert mail.run("erin", "inbox").ok().out == "Inbox empty.\n"
    assert "- erin [" in mail.run("alice", "list").out


def test_messages_are_shown_oldest_first_with_their_numbers_and_ids(mail: Mail) -> None:
    first, second = mail.send("alice", "bob", "one"), mail.send("carol", "bob", "two")
    assert mail.run("bob", "inbox").ok().out == (
        f"2 messages:\n- 1. [{first}] alice (claimed): one\n- 2. [{second}] carol (claimed): two\n"
    )


def test_one_message_is_not_called_messages(mail: Mail) -> None:
    mail.send("alice", "bob", "one")
    assert mail.run("bob", "inbox").ok().out.startswith("1 message:\n- 1. [")


def test_reading_consumes(mail: Mail) -> None:
    mail.send("alice", "bob", "one")
    assert bodies(mail) == ["one"]
    assert bodies(mail) == []


def test_numbers_go_on_after_the_inbox_was_emptied(mail: Mail) -> None:
    for body in ("one", "two"):
        mail.send("alice", "bob", body)
    bodies(mail)
    mail.send("alice", "bob", "three")
    assert [item["n"] for item in mail.run("bob", "inbox", "--json").json["inbox"]] == [3]


def test_peeking_consumes_nothing(mail: Mail) -> None:
    for body in ("one", "two"):
        mail.send("alice", "bob", body)
    shown = mail.run("bob", "inbox", "--peek").ok().out
    assert mail.run("bob", "inbox", "--peek").ok().out == shown
    assert mail.run("bob", "inbox").ok().out == shown
    assert mail.run("bob", "inbox", "--peek").ok().out == "Inbox empty.\n"


def test_a_sender_may_be_chosen_and_the_mail_of_others_stays(mail: Mail) -> None:
    for sender in ("alice", "carol", "alice"):
        mail.send(sender, "bob", f"from {sender}")
    assert bodies(mail, "--from", "Carol") == ["from carol"]
    assert bodies(mail) == ["from alice", "from alice"]


def test_a_sender_may_be_chosen_when_peeking(mail: Mail) -> None:
    for sender in ("alice", "carol"):
        mail.send(sender, "bob", f"from {sender}")
    assert bodies(mail, "--peek", "--from", "carol") == ["from carol"]


@pytest.mark.parametrize("options", [["--from", "dave"], ["--from", ""]])
def test_an_unknown_sender_is_refused_with_the_known_ones(mail: Mail, options: list[str]) -> None:
    mail.send("alice", "bob", "one")
    done = mail.run("bob", "inbox", *options)
    assert (done.status, done.out) == (2, "")
    assert "known: " in done.err
    assert "alice" in done.err
    assert bodies(mail) == ["one"]


def test_a_limit_takes_the_oldest_and_leaves_the_rest(mail: Mail) -> None:
    for body in ("one", "two", "three"):
        mail.send("alice", "bob", body)
    assert bodies(mail, "--limit", "2") == ["one", "two"]
    assert bodies(mail, "--limit", "2") == ["three"]


def test_a_limit_of_nothing_takes_nothing(mail: Mail) -> None:
    mail.send("alice", "bob", "one")
    assert bodies(mail, "--limit", "0") == []
    assert bodies(mail) == ["one"]


@pytest.mark.parametrize("limit", ["-1", "1.5", "many", "", "٣"])
def test_a_limit_that_is_no_number_is_refused(mail: Mail, limit: str) -> None:
    mail.send("alice", "bob", "one")
    done = mail.run("bob", "inbox", f"--limit={limit}")
    assert done.status == 2
    assert "--limit takes a whole number" in done.err
    assert bodies(mail) == ["one"]


def test_what_was_read_but_not_handled_can_be_seen_again(mail: Mail) -> None:
    for body in ("answered", "acknowledged", "forgotten"):
        mail.send("alice", "bob", body)
    bodies(mail)
    mail.run("bob", "reply", "1", "yes").ok()
    mail.run("bob", "ack", "2").ok()
    mail.send("alice", "bob", "new")
    assert bodies(mail, "--unhandled") == ["forgotten", "new"]
    assert bodies(mail, "--unhandled") == ["forgotten", "new"]
    assert bodies(mail) == []


def test_peeking_at_what_is_not_handled_leaves_the_new_pending(mail: Mail) -> None:
    mail.send("alice", "bob", "old")
    bodies(mail)
    mail.send("alice", "bob", "new")
    assert bodies(mail, "--unhandled", "--peek") == ["old", "new"]
    assert bodies(mail) == ["new"]


def test_what_is_not_handled_obeys_sender_and_limit(mail: Mail) -> None:
    for sender in ("alice", "carol", "alice"):
        mail.send(sender, "bob", f"from {sender}")
    bodies(mail)
    assert bodies(mail, "--unhandled", "--from", "carol") == ["from carol"]
    assert bodies(mail, "--unhandled", "--limit", "2") == ["from alice", "from carol"]


def test_mail_lost_to_the_cap_is_told_once(mail: Mail) -> None:
    mail.run("bob", "config", "cap", "1").ok()
    for body in ("one", "two", "three"):
        mail.send("alice", "bob", body)
    shown = mail.run("bob", "inbox").ok().out
    assert shown.startswith("2 older messages dropped unread: the mailbox was full.\n1 message:\n- 3. [")
    mail.send("alice", "bob", "four")
    assert "dropped" not in mail.run("bob", "inbox").ok().out


def test_mail_lost_to_the_cap_is_told_in_json(mail: Mail) -> None:
    mail.run("bob", "config", "cap", "1").ok()
    for body in ("one", "two"):
        mail.send("alice", "bob", body)
    assert mail.run("bob", "inbox", "--json").ok().json["dropped"] == 1
    assert "dropped" not in mail.run("bob", "inbox", "--json").ok().json


def test_peeking_leaves_the_loss_to_be_told(mail: Mail) -> None:
    mail.run("bob", "config", "cap", "1").ok()
    for body in ("one", "two"):
        mail.send("alice", "bob", body)
    assert "1 older message dropped" in mail.run("bob", "inbox", "--peek").ok().out
    assert "1 older message dropped" in mail.run("bob", "inbox").ok().out


@pytest.mark.parametrize("words", [["inbox"], ["inbox", "--json"], ["wait"]])
@pytest.mark.parametrize(
    "output",
    [
        ">&-",
        pytest.param(">/dev/full", marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")),
    ],
)
def test_what_could_not_be_written_is_still_there(mail: Mail, words: list[str], output: str) -> None:
    mail.send("alice", "bob", "hi")
    done = subprocess.run(
        ["sh", "-c", f'"$@" {output}', "sh", *AGENTMAIL, *words],
        env=mail.environment("bob"),
        cwd=mail.home,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("agentmail: cannot write to standard output (")
    assert done.stderr.count("\n") == 1
    again = mail.run("bob", "inbox", "--json").ok().json["inbox"]
    assert [(item["body"], item["redelivered"]) for item in again] == [("hi", True)]


def test_reading_leaves_no_lock_behind(mail: Mail) -> None:
    mail.send("alice", "bob", "hi")
    bodies(mail)
    assert [path for path in Path(f"{mail.spool}-locks").iterdir() if path.name[0].isdigit()] == []
