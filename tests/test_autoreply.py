"""An autoreply command answers an awaited question for who is mid-turn and cannot; whatever goes wrong is told."""

from __future__ import annotations

import json
import os

import pytest

from agentmail.operations import autoreply
from tests.conftest import Mail, Result, eventually, finish
from tests.rousing import Command, interval, pending
from tests.sessions import register

ASK = ("send", "bob", "which port?", "--await", "--timeout", "20s")


@pytest.fixture(autouse=True)
def _alice(mail: Mail) -> None:
    register(mail, "alice")
    interval(mail, 0)


def busy(mail: Mail, command: object, *options: str, state: str = "running") -> None:
    words = ("--autoreply", str(command), "--state", state, *(options or ("--sync",)))
    mail.run("bob", "register", "bob", *words).ok()


def ask(mail: Mail, *options: str) -> Result:
    return mail.run("alice", *ASK, *options)


def unanswered(mail: Mail) -> Result:
    """Ask, and have bob stop once alice waits and was told of what she is told of."""
    asking = mail.start("alice", *ASK)
    mail.wait_until_waiting("alice")
    assert asking.stderr is not None
    told = asking.stderr.readline()
    mail.run("bob", "register", "bob", "--state", "idle").ok()
    done = finish(asking)
    return Result(done.status, done.out, told + done.err)


def test_it_answers_once_with_the_question_on_stdin(mail: Mail) -> None:
    command = Command(mail, rest="print('8080, says', *sys.argv[1:])")
    busy(mail, f"{command} 'the machine'")
    waited = ask(mail, "--json").ok().json["waited"]
    (question,) = mail.sql("SELECT id FROM messages WHERE body = 'which port?'")[0]
    assert (waited["from"], waited["body"], waited["replyTo"]) == ("bob", "8080, says the machine", str(question))
    assert waited["automatic"] is True
    (start,) = command.starts
    assert (start["stdin"], start["arguments"]) == ("which port?", ["the machine"])
    assert "AGENTMAIL_AGENT" not in start["environment"]


def test_it_is_marked_in_text_recorded_and_leaves_the_question(mail: Mail) -> None:
    busy(mail, Command(mail, rest="print('8080')"))
    shown = ask(mail).ok().out
    assert "bob (automatic, reply to " in shown
    assert pending(mail) == ["which port?"]
    assert "bob → alice (automatic, reply to " in mail.run("bob", "log").ok().out
    question = json.loads(mail.run("bob", "inbox", "--peek", "--json").ok().out)["inbox"][0]["id"]
    assert "now pending" in mail.run("bob", "show", question).ok().out
    assert [item["body"] for item in mail.run("bob", "inbox", "--unhandled", "--json").ok().json["inbox"]] == [
        "which port?"
    ]


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("print('no key', file=sys.stderr); sys.exit(4)", "bob's autoreply gave status 4: no key"),
        ("pass", "bob's autoreply gave no text"),
        ("print('  ')", "bob's autoreply gave no text"),
        ("print('x' * 2_000_000)", "the autoreply could not be sent: the message has 2000000 bytes and the limit is"),
        ("print('\\\\x1b[31mred', file=sys.stderr); sys.exit(1)", "status 1: \\x1b[31mred"),
    ],
)
def test_a_failure_is_told_to_the_sender(mail: Mail, rest: str, told: str) -> None:
    busy(mail, Command(mail, rest=rest))
    done = unanswered(mail)
    assert told in done.err
    assert done.err.count("\n") == 1
    assert done.out.splitlines()[-1] == "No answer from bob: bob has stopped without answering."
    assert pending(mail) == ["which port?"]


def test_a_missing_program_is_told(mail: Mail) -> None:
    busy(mail, "/no/such/program")
    assert unanswered(mail).err == "agentmail: bob's autoreply cannot run: no such file or directory\n"


def test_who_is_told_of_a_failure_still_gets_an_answer(mail: Mail) -> None:
    busy(mail, "/no/such/program")
    asking = mail.start("alice", *ASK)
    mail.wait_until_waiting("alice")
    mail.run("bob", "send", "alice", "8080").ok()
    done = finish(asking).ok()
    assert done.out.endswith(": 8080\n")


def test_the_recipient_may_be_faster(mail: Mail) -> None:
    busy(mail, Command(mail, rest="time.sleep(20); print('late')"))
    asking = mail.start("alice", *ASK)
    mail.wait_until_waiting("alice")
    mail.run("bob", "send", "alice", "8080").ok()
    assert finish(asking).ok().out.endswith(": 8080\n")


@pytest.mark.parametrize(("state", "options"), [("idle", ("--sync",)), ("running", ("--display", "Bob"))])
def test_only_for_who_is_mid_turn_and_reaches_no_step(mail: Mail, state: str, options: tuple[str, ...]) -> None:
    command = Command(mail, rest="print('8080')")
    busy(mail, command, *options, state=state)
    assert "within 300ms" in mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "300ms").ok().out
    assert command.starts == []


def test_a_send_that_awaits_nothing_is_not_answered(mail: Mail) -> None:
    command = Command(mail, rest="print('8080')")
    busy(mail, command)
    mail.run("alice", "send", "bob", "which port?").ok()
    assert command.starts == []


def test_whose_wait_took_the_question_can_answer_it(mail: Mail) -> None:
    command = Command(mail, rest="print('8080')")
    busy(mail, command)
    waiting = mail.start("bob", "wait")
    mail.wait_until_waiting("bob")
    mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "300ms").ok()
    finish(waiting).ok()
    assert command.starts == []


def test_exec_off_answers_nothing(mail: Mail) -> None:
    command = Command(mail, rest="print('8080')")
    busy(mail, command)
    mail.run("alice", "config", "exec", "off").ok()
    mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "300ms").ok()
    assert command.starts == []


def test_an_automatic_message_is_never_answered_automatically(mail: Mail) -> None:
    command = Command(mail, rest="print('8080')")
    busy(mail, command)
    mail.run("alice", "send", "bob", "which port?").ok()
    mail.sql("UPDATE messages SET automatic = 1")
    (message,), (bob,) = (
        mail.sql("SELECT id FROM messages")[0],
        mail.sql("SELECT id FROM agents WHERE name = 'bob'")[0],
    )
    assert autoreply.Autoreply(str(mail.spool), bob, message, 10).run() is None
    assert command.starts == []


def test_moving_its_state_keeps_what_was_registered(mail: Mail) -> None:
    busy(mail, Command(mail, rest="print('8080')"), state="idle")
    mail.run("bob", "register", "bob", "--state", "running").ok()
    assert ask(mail, "--json").ok().json["waited"]["body"] == "8080"


def test_a_command_that_hangs_ends_with_the_wait(mail: Mail) -> None:
    command = Command(mail, rest="time.sleep(60)")
    busy(mail, command)
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "500ms").ok()
    assert "within 500ms" in done.out
    (start,) = command.starts
    eventually(lambda: not os.path.exists(f"/proc/{start['pid']}"))
