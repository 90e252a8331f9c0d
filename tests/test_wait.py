"""Waiting for one message."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Mail, finish
from tests.sessions import Session, register, wait_until_it_blocks

if TYPE_CHECKING:
    import subprocess


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob")


def waiting(mail: Mail, *options: str, count: int = 1) -> subprocess.Popen[str]:
    process = mail.start("bob", "wait", *options)
    mail.wait_until_waiting("bob", count)
    return process


def pending(mail: Mail) -> list[str]:
    return [item["body"] for item in mail.run("bob", "inbox", "--peek", "--json").ok().json["inbox"]]


def waiters(mail: Mail) -> int:
    return int(mail.sql("SELECT count(*) FROM waiters")[0][0])


def test_what_is_pending_is_given_at_once_the_oldest_first_and_one_only(mail: Mail) -> None:
    first, second = mail.send("alice", "bob", "one"), mail.send("alice", "bob", "two")
    assert mail.run("bob", "wait").ok().out == f"[{first}] alice (claimed): one\n"
    assert pending(mail) == ["two"]
    assert mail.run("bob", "wait").ok().out == f"[{second}] alice (claimed): two\n"
    assert pending(mail) == []


def test_a_blocked_wait_ends_with_the_message(mail: Mail) -> None:
    process = waiting(mail)
    sent = mail.send("alice", "bob", "hi")
    assert finish(process).ok().out == f"[{sent}] alice (claimed): hi\n"
    assert pending(mail) == []


def test_an_answer_names_what_it_answers(mail: Mail) -> None:
    asked = mail.send("bob", "alice", "which port?")
    mail.run("alice", "reply", asked, "8080").ok()
    assert mail.run("bob", "wait").ok().out.endswith(f"alice (claimed, reply to {asked}): 8080\n")


def test_the_message_in_json(mail: Mail) -> None:
    sent = mail.send("alice", "bob", "hi")
    got = mail.run("bob", "wait", "--json").ok().json
    assert got["waited"].pop("ts") > 1_700_000_000_000
    message = {"id": sent, "n": 1, "from": "alice", "to": "bob", "body": "hi", "claimed": True}
    assert got == {"op": "wait", "waited": message}


def test_nothing_in_time_is_told_and_is_no_error(mail: Mail) -> None:
    assert mail.run("bob", "wait", "--timeout", "20ms").ok().out == "No message within 20ms.\n"
    assert waiters(mail) == 0


def test_nothing_in_time_in_json(mail: Mail) -> None:
    got = mail.run("bob", "wait", "--timeout-ms", "1", "--json").ok().json
    assert got == {"op": "wait", "waited": None, "reason": "timeout"}


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_nothing_in_time_is_a_status_if_that_is_asked_for(mail: Mail, options: list[str]) -> None:
    assert mail.run("bob", "wait", "--timeout", "1ms", "--exit-code", *options).status == 124


def test_a_message_is_status_0_with_exit_code_too(mail: Mail) -> None:
    mail.send("alice", "bob", "hi")
    mail.run("bob", "wait", "--exit-code").ok()


@pytest.mark.parametrize(
    "options",
    [
        ["--timeout", "5"],
        ["--timeout", "soon"],
        ["--timeout-ms", "2m"],
        ["--timeout", "1s", "--timeout-ms", "1000"],
        ["--from", "dave"],
        ["--from", ""],
        ["--from", "alice", "--channel", "relay"],
        ["--channel", "nowhere"],
    ],
)
def test_a_wait_that_makes_no_sense_is_refused(mail: Mail, options: list[str]) -> None:
    mail.send("alice", "bob", "hi")
    done = mail.run("bob", "wait", *options)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("agentmail: ")
    assert waiters(mail) == 0
    assert pending(mail) == ["hi"]


def test_a_sender_may_be_chosen_and_the_mail_of_others_stays(mail: Mail) -> None:
    mail.send("carol", "bob", "from carol")
    mail.send("alice", "bob", "from alice")
    assert mail.run("bob", "wait", "--from", "ALICE").ok().out.endswith(": from alice\n")
    assert pending(mail) == ["from carol"]


def test_a_blocked_wait_for_one_sender_leaves_the_mail_of_others(mail: Mail) -> None:
    process = waiting(mail, "--from", "alice")
    assert "queued" in mail.run("carol", "send", "bob", "from carol").ok().out
    assert "injected" in mail.run("alice", "send", "bob", "from alice").ok().out
    assert finish(process).ok().out.endswith(": from alice\n")
    assert pending(mail) == ["from carol"]


def test_the_oldest_waiter_wins(mail: Mail) -> None:
    first = waiting(mail)
    second = waiting(mail, count=2)
    mail.send("alice", "bob", "one")
    assert finish(first).ok().out.endswith(": one\n")
    assert second.poll() is None
    mail.send("alice", "bob", "two")
    assert finish(second).ok().out.endswith(": two\n")


def test_an_older_waiter_that_does_not_match_is_passed_over(mail: Mail) -> None:
    register(mail, "carol")
    first = waiting(mail, "--from", "carol")
    second = waiting(mail, count=2)
    mail.send("alice", "bob", "from alice")
    assert finish(second).ok().out.endswith(": from alice\n")
    mail.send("carol", "bob", "from carol")
    assert finish(first).ok().out.endswith(": from carol\n")


def test_a_broadcast_ends_the_wait_of_everybody(mail: Mail) -> None:
    register(mail, "carol")
    processes = [waiting(mail), mail.start("carol", "wait")]
    mail.wait_until_waiting("carol")
    done = mail.run("alice", "send", "all", "hi", "--json").ok()
    assert [item["outcome"] for item in done.json["receipts"]] == ["injected", "injected"]
    for process in processes:
        assert finish(process).ok().out.endswith(": hi\n")


def test_after_a_timeout_mail_is_delivered_as_if_nobody_had_waited(mail: Mail) -> None:
    mail.run("bob", "wait", "--timeout", "1ms").ok()
    assert "queued" in mail.run("alice", "send", "bob", "hi").ok().out
    assert pending(mail) == ["hi"]


def test_a_waiter_that_was_killed_takes_no_mail(mail: Mail) -> None:
    process = waiting(mail)
    process.kill()
    process.wait()
    assert "queued" in mail.run("alice", "send", "bob", "hi").ok().out
    assert pending(mail) == ["hi"]


def test_mail_that_a_killed_waiter_had_taken_comes_back_and_says_so(mail: Mail) -> None:
    process = waiting(mail)
    process.send_signal(signal.SIGSTOP)
    mail.send("alice", "bob", "hi")
    process.kill()
    process.wait()
    again = mail.run("bob", "wait", "--json").ok().json["waited"]
    assert (again["body"], again["redelivered"]) == ("hi", True)


def test_mail_that_a_killed_waiter_had_taken_ends_the_wait_of_the_next(mail: Mail) -> None:
    first = waiting(mail)
    second = waiting(mail, count=2)
    first.send_signal(signal.SIGSTOP)
    mail.send("alice", "bob", "hi")
    first.kill()
    first.wait()
    assert finish(second).ok().out.endswith("alice (claimed, redelivered): hi\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("options", [[], ["--json"], ["--from", "alice"]])
def test_a_signal_ends_it_with_nothing_lost(mail: Mail, number: int, status: int, options: list[str]) -> None:
    process = waiting(mail, *options)
    wait_until_it_blocks(process)
    process.send_signal(number)
    assert finish(process) == (status, "", "")
    assert waiters(mail) == 0
    assert "queued" in mail.run("alice", "send", "bob", "hi").ok().out
    assert pending(mail) == ["hi"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_comes_together_with_mail_loses_nothing(mail: Mail, number: int, status: int) -> None:
    process = waiting(mail)
    wait_until_it_blocks(process)
    process.send_signal(signal.SIGSTOP)
    mail.send("alice", "bob", "hi")
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    done = finish(process)
    assert (done.status, done.out) == (status, "")
    assert pending(mail) == ["hi"]
    assert "redelivered" not in mail.run("bob", "inbox").out


@pytest.mark.parametrize("words", [["park"], ["register", "--state", "idle"]])
def test_a_wait_goes_on_when_its_sender_stops(mail: Mail, words: list[str]) -> None:
    dave = Session(mail).named("dave", "--state", "running")
    process = waiting(mail, "--from", "dave")
    dave.run(*words).ok()
    dave.run("send", "bob", "after all").ok()
    assert finish(process).ok().out.endswith("dave: after all\n")


def test_a_wait_tells_what_the_full_mailbox_lost(mail: Mail) -> None:
    mail.run("bob", "config", "cap", "1").ok()
    for body in ("one", "two", "three"):
        mail.send("alice", "bob", body)
    done = mail.run("bob", "wait").ok()
    assert done.out.endswith(": three\n")
    assert done.err == "agentmail: 2 older messages dropped unread: the mailbox was full.\n"


def test_waiting_registers_who_waits(mail: Mail) -> None:
    mail.run("erin", "wait", "--timeout", "1ms").ok()
    assert "- erin [" in mail.run("alice", "list").out


def test_waiting_for_oneself_is_refused(mail: Mail) -> None:
    mail.register("alice")
    done = mail.run("alice", "wait", "--from", "alice", "--timeout", "1s")
    assert done.status == 2
    assert "is yourself" in done.err
