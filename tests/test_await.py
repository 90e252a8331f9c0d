"""A send that waits for its answer."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Mail, finish
from tests.sessions import Session, register, wait_until_it_blocks

if TYPE_CHECKING:
    import subprocess


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")


def ask(mail: Mail, *options: str) -> subprocess.Popen[str]:
    """Alice asks bob, and is blocked."""
    asking = mail.start("alice", "send", "bob", "which port?", "--await", *options)
    mail.wait_until_waiting("alice")
    return asking


def question(mail: Mail) -> str:
    """The id of what alice asked."""
    return str(mail.sql("SELECT id FROM messages WHERE body = 'which port?'")[0][0])


def pending(mail: Mail, agent: str = "alice") -> list[str]:
    return [item["body"] for item in mail.run(agent, "inbox", "--peek", "--json").ok().json["inbox"]]


def waiters(mail: Mail) -> int:
    return int(mail.sql("SELECT count(*) FROM waiters")[0][0])


def locks(mail: Mail) -> list[str]:
    return [path.name for path in mail.spool.with_name("spool.db-locks").iterdir() if path.name[0].isdigit()]


def test_the_answer_is_printed_after_the_receipt_as_wait_prints_it(mail: Mail) -> None:
    asking = ask(mail)
    answer = mail.run("bob", "reply", question(mail), "8080", "--json").ok().json["id"]
    shown = finish(asking).ok().out.splitlines()
    assert shown[0] == f"sent {question(mail)}"
    assert re.fullmatch(r"- bob: queued: idle for \d+s, 0 unread", shown[1])
    assert shown[2:] == [f"[{answer}] bob (claimed, reply to {question(mail)}): 8080"]
    assert pending(mail) == []


def test_the_answer_in_json_is_what_was_waited_for(mail: Mail) -> None:
    asking = ask(mail, "--json")
    mail.run("bob", "reply", question(mail), "8080").ok()
    done = finish(asking).ok()
    assert done.out.count("\n") == 1
    assert done.json["id"] == question(mail)
    assert [item["to"] for item in done.json["receipts"]] == ["bob"]
    waited = done.json["waited"]
    assert (waited["from"], waited["body"], waited["replyTo"]) == ("bob", "8080", question(mail))


def test_the_receipt_is_shown_before_the_answer_is_there(mail: Mail) -> None:
    asking = ask(mail)
    assert asking.stdout is not None
    assert asking.stdout.readline() == f"sent {question(mail)}\n"


def test_older_mail_of_the_peer_stays_pending(mail: Mail) -> None:
    mail.send("bob", "alice", "old news")
    asking = ask(mail)
    mail.send("bob", "alice", "fresh news")
    assert finish(asking).ok().out.endswith(": fresh news\n")
    assert pending(mail) == ["old news"]


def test_mail_of_others_stays_pending(mail: Mail) -> None:
    asking = ask(mail)
    mail.send("carol", "alice", "from carol")
    mail.send("bob", "alice", "from bob")
    assert finish(asking).ok().out.endswith(": from bob\n")
    assert pending(mail) == ["from carol"]


def test_a_message_that_answers_nothing_is_an_answer_too(mail: Mail) -> None:
    asking = ask(mail, "--json")
    mail.send("bob", "alice", "by the way")
    assert "replyTo" not in finish(asking).ok().json["waited"]


def test_an_answer_wins_over_other_mail_that_came_first(mail: Mail) -> None:
    asking = ask(mail)
    asking.send_signal(signal.SIGSTOP)
    mail.send("bob", "alice", "one moment")
    mail.run("bob", "reply", question(mail), "8080").ok()
    asking.send_signal(signal.SIGCONT)
    assert finish(asking).ok().out.endswith(": 8080\n")
    assert pending(mail) == ["one moment"]


def test_an_answer_to_another_question_wins_nothing(mail: Mail) -> None:
    earlier = mail.send("alice", "bob", "and the host?")
    asking = ask(mail)
    asking.send_signal(signal.SIGSTOP)
    mail.send("bob", "alice", "one moment")
    mail.run("bob", "reply", earlier, "localhost").ok()
    asking.send_signal(signal.SIGCONT)
    assert finish(asking).ok().out.endswith(": one moment\n")
    assert pending(mail) == ["localhost"]


def test_no_answer_in_time_is_told_and_is_no_error(mail: Mail) -> None:
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "20ms").ok()
    assert done.out.splitlines()[-1] == "No answer from bob within 20ms."
    assert waiters(mail) == 0


def test_no_answer_in_time_in_json(mail: Mail) -> None:
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--timeout-ms", "20", "--json").ok()
    assert (done.json["waited"], done.json["reason"]) == (None, "timeout")


def test_an_answer_after_the_timeout_is_ordinary_mail(mail: Mail) -> None:
    mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "20ms").ok()
    assert "queued" in mail.run("bob", "reply", question(mail), "8080").ok().out
    assert pending(mail) == ["8080"]


@pytest.mark.parametrize("to", ["dave", "bo"])
def test_nothing_is_waited_for_where_nothing_was_delivered(mail: Mail, to: str) -> None:
    done = mail.run("alice", "send", to, "hello?", "--await", "--timeout-ms", "0", "--json")
    assert done.status == 1
    assert "waited" not in done.json
    assert waiters(mail) == 0


def test_an_answer_may_be_awaited_too(mail: Mail) -> None:
    asking = ask(mail)
    answering = mail.start("bob", "reply", question(mail), "8080, or did you mean ssh?", "--await")
    finish(asking).ok()
    mail.wait_until_waiting("bob")
    mail.send("alice", "bob", "no, thank you")
    shown = finish(answering).ok().out
    assert shown.startswith("reply to [")
    assert shown.endswith(": no, thank you\n")


# The peer stops


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["register", "--state", "idle"], "ends its turn"),
        (["park"], "parks"),
        (["abort", "dave"], "is aborted"),
        (["register", "erin"], "takes another name"),
    ],
)
def test_a_peer_that_stops_without_an_answer_is_told_of_at_once(mail: Mail, words: list[str], why: str) -> None:
    dave = Session(mail).named("dave", "--state", "running")
    asking = mail.start("alice", "send", "dave", "which port?", "--await", "--timeout-ms", "0")
    mail.wait_until_waiting("alice")
    dave.run(*words).ok()
    shown = finish(asking).ok().out
    assert shown.splitlines()[-1] == "No answer from dave: dave has stopped without answering.", why
    assert waiters(mail) == 0


def test_a_peer_whose_session_dies_is_told_of_at_once(mail: Mail) -> None:
    dave = Session(mail).named("dave", "--state", "running")
    asking = mail.start("alice", "send", "dave", "which port?", "--await", "--timeout-ms", "0", "--json")
    mail.wait_until_waiting("alice")
    dave.end()
    done = finish(asking).ok()
    assert (done.json["waited"], done.json["reason"]) == (None, "stopped")
    assert mail.sql("SELECT status FROM agents WHERE name = 'dave'") == [("parked",)]


def test_a_peer_that_begins_a_turn_has_not_stopped(mail: Mail) -> None:
    dave = Session(mail).named("dave", "--state", "idle")
    asking = mail.start("alice", "send", "dave", "which port?", "--await")
    mail.wait_until_waiting("alice")
    dave.run("register", "--state", "running").ok()
    dave.run("reply", "1", "8080").ok()
    assert finish(asking).ok().out.endswith(": 8080\n")


def test_an_answer_counts_even_if_the_peer_stopped_right_after_it(mail: Mail) -> None:
    dave = Session(mail).named("dave", "--state", "running")
    asking = mail.start("alice", "send", "dave", "which port?", "--await")
    mail.wait_until_waiting("alice")
    asking.send_signal(signal.SIGSTOP)
    dave.run("reply", "1", "8080").ok()
    dave.run("park").ok()
    asking.send_signal(signal.SIGCONT)
    assert finish(asking).ok().out.endswith(": 8080\n")


def test_the_answer_of_a_parked_peer_is_waited_for(mail: Mail) -> None:
    mail.run("bob", "park").ok()
    asking = ask(mail)
    mail.run("bob", "reply", question(mail), "8080").ok()
    assert finish(asking).ok().out.endswith(": 8080\n")


# Rings


def test_two_that_wait_for_each_other_are_told_so(mail: Mail) -> None:
    waiting = mail.start("bob", "wait", "--from", "alice", "--timeout-ms", "0")
    mail.wait_until_waiting("bob")
    done = mail.run("alice", "wait", "--from", "bob", "--timeout", "50ms").ok()
    assert (
        done.err == "agentmail: each of these waits for the next: alice → bob → alice; somebody must answer first\n"
    )
    assert waiting.poll() is None


def test_a_ring_of_three_is_told_by_its_names(mail: Mail) -> None:
    for one, other in (("bob", "carol"), ("carol", "alice")):
        mail.start(one, "wait", "--from", other, "--timeout-ms", "0")
        mail.wait_until_waiting(one)
    done = mail.run("alice", "send", "bob", "are you there?", "--await", "--timeout", "50ms", "--json").ok()
    assert "alice → bob → carol → alice" in done.err
    assert done.json["reason"] == "timeout"


def test_a_peer_that_waits_for_us_is_answered_by_the_question_itself(mail: Mail) -> None:
    waiting = mail.start("bob", "wait", "--from", "alice")
    mail.wait_until_waiting("bob")
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "20ms").ok()
    assert "bob: injected" in done.out
    assert done.err == ""
    finish(waiting).ok()


def test_a_chain_is_no_ring(mail: Mail) -> None:
    mail.start("bob", "wait", "--from", "carol", "--timeout-ms", "0")
    mail.start("carol", "wait", "--timeout-ms", "0")
    mail.wait_until_waiting("bob")
    mail.wait_until_waiting("carol")
    assert mail.run("alice", "wait", "--from", "bob", "--timeout", "20ms").ok().err == ""


def test_a_dead_waiter_makes_no_ring(mail: Mail) -> None:
    waiting = mail.start("bob", "wait", "--from", "alice", "--timeout-ms", "0")
    mail.wait_until_waiting("bob")
    waiting.kill()
    waiting.wait()
    assert mail.run("alice", "wait", "--from", "bob", "--timeout", "20ms").ok().err == ""


# Cut off


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_wait_and_the_question_stays_sent(mail: Mail, number: int, status: int) -> None:
    asking = ask(mail)
    wait_until_it_blocks(asking)
    asking.send_signal(number)
    done = finish(asking)
    assert (done.status, done.err) == (status, "")
    assert waiters(mail) == 0
    assert locks(mail) == []
    assert pending(mail, "bob") == ["which port?"]


def test_a_send_that_was_cut_off_may_be_repeated_and_takes_up_its_wait(mail: Mail) -> None:
    asking = ask(mail, "--once", "key")
    asking.kill()
    asking.wait()
    again = ask(mail, "--once", "key", "--json")
    mail.run("bob", "reply", "1", "8080").ok()
    done = finish(again).ok()
    assert (done.json["id"], done.json["waited"]["body"]) == (question(mail), "8080")
    assert mail.sql("SELECT count(*) FROM messages WHERE body = 'which port?'") == [(1,)]


def test_what_came_in_between_is_there_when_the_send_is_repeated(mail: Mail) -> None:
    mail.send("bob", "alice", "old news")
    asking = ask(mail, "--once", "key")
    asking.kill()
    asking.wait()
    mail.send("bob", "alice", "one moment")
    mail.run("bob", "reply", question(mail), "8080").ok()
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--once", "key").ok()
    assert f"sent {question(mail)} before\n" in done.out
    assert done.out.endswith(": 8080\n")
    assert pending(mail) == ["old news", "one moment"]


def test_an_answer_that_the_killed_call_had_taken_is_given_to_the_repeated_one(mail: Mail) -> None:
    asking = ask(mail, "--once", "key")
    asking.send_signal(signal.SIGSTOP)
    mail.run("bob", "reply", question(mail), "8080").ok()
    asking.kill()
    asking.wait()
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--once", "key", "--timeout", "20s").ok()
    assert done.out.endswith(": 8080\n")
    assert "redelivered" in done.out


def test_a_reply_can_be_repeated_with_a_key(mail: Mail) -> None:
    mail.send("alice", "bob", "which port?")
    first = mail.run("bob", "reply", "1", "8080", "--once", "key", "--json").ok().json
    again = mail.run("bob", "reply", "1", "8080", "--once", "key", "--json").ok().json
    assert json.dumps(again) == json.dumps(first)
    assert pending(mail) == ["8080"]
