"""Answering, and saying that no answer is needed."""

from __future__ import annotations

import pytest

from tests.conftest import Mail
from tests.sessions import register

NOWHERE = str(1 << 60)


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")


def state(mail: Mail, message: str) -> str:
    return str(mail.sql("SELECT state FROM receipts WHERE message = ?", int(message))[0][0])


def counts(mail: Mail) -> tuple[int, int]:
    return mail.sql("SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM receipts)")[0]


@pytest.mark.parametrize("form", ["{id}", "#{id}", "1", "#1", " 1 "])
def test_a_reply_goes_to_the_sender_of_the_original_whatever_form_the_id_has(mail: Mail, form: str) -> None:
    question = mail.send("alice", "bob", "which port?")
    mail.run("bob", "reply", form.format(id=question), "it is", "8080").ok()
    answer = mail.run("alice", "inbox", "--json").ok().json["inbox"][0]
    assert (answer["from"], answer["body"], answer["replyTo"]) == ("bob", "it is 8080", question)


def test_a_reply_shows_what_it_answers(mail: Mail) -> None:
    question = mail.send("alice", "bob", "which port?\nand which host?")
    shown = mail.run("bob", "reply", "1", "8080").ok().out.splitlines()
    assert shown[0] == f"reply to [{question}] alice:"
    assert shown[1:3] == ["  > which port?", "  > and which host?"]
    assert shown[3].startswith("sent ")
    assert shown[4].startswith("- alice: queued: ")


def test_a_reply_in_json_holds_its_source(mail: Mail) -> None:
    question = mail.send("alice", "bob", "which port?")
    done = mail.run("bob", "reply", "1", "8080", "--json").ok().json
    assert (done["op"], done["from"], done["to"]) == ("reply", "bob", "alice")
    assert done["receipts"] == [{"to": "alice", "outcome": "queued"}]
    assert (done["source"]["id"], done["source"]["from"]) == (question, "alice")
    assert done["source"]["body"] == "which port?"


@pytest.mark.parametrize("read_before", [True, False])
def test_the_original_is_handled_by_the_answer(mail: Mail, read_before: bool) -> None:
    question = mail.send("alice", "bob", "which port?")
    if read_before:
        mail.run("bob", "inbox").ok()
    mail.run("bob", "reply", "1", "8080").ok()
    assert state(mail, question) == "handled"
    assert mail.run("bob", "inbox", "--unhandled").ok().out == "Inbox empty.\n"


def test_each_of_two_questions_is_handled_by_its_own_answer(mail: Mail) -> None:
    first, second = mail.send("alice", "bob", "one?"), mail.send("alice", "bob", "two?")
    mail.run("bob", "reply", "1", "one!").ok()
    assert (state(mail, first), state(mail, second)) == ("handled", "pending")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "there is no message to answer"),
        (["1"], "the message is empty"),
        (["1", "  "], "the message is empty"),
        (["2", "hi"], "there is no message 2"),
        (["0", "hi"], "there is no message 0"),
        ([NOWHERE, "hi"], f"there is no message {NOWHERE}"),
        (["bob", "hi"], "'bob' is no message id"),
        (["", "hi"], "'' is no message id"),
    ],
)
def test_a_reply_that_makes_no_sense_stores_and_handles_nothing(mail: Mail, words: list[str], told: str) -> None:
    question = mail.send("alice", "bob", "which port?")
    done = mail.run("bob", "reply", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert counts(mail) == (1, 1)
    assert state(mail, question) == "pending"


def test_ones_own_message_cannot_be_answered(mail: Mail) -> None:
    question = mail.send("alice", "bob", "which port?")
    done = mail.run("alice", "reply", question, "anyone?")
    assert done.status == 2
    assert "is your own; use 'agentmail send' to write to bob" in done.err
    assert counts(mail) == (1, 1)


def test_where_the_asker_is_gone_the_question_stays_unhandled(mail: Mail) -> None:
    question = mail.send("alice", "bob", "which port?")
    mail.run("bob", "abort", "alice").ok()
    done = mail.run("bob", "reply", "1", "8080")
    assert done.status == 1
    assert "alice, who sent message " in done.err
    assert "was aborted" in done.err
    assert counts(mail) == (1, 1)
    assert state(mail, question) == "pending"


def test_a_namesake_does_not_get_the_answer(mail: Mail) -> None:
    question = mail.send("alice", "bob", "which port?")
    mail.run("bob", "abort", "alice").ok()
    mail.register("alice")
    assert mail.run("bob", "reply", question, "8080").status == 1
    assert mail.run("alice", "inbox").out == "Inbox empty.\n"


def test_a_number_is_that_of_ones_own_mailbox(mail: Mail) -> None:
    mail.send("alice", "bob", "to bob alone")
    shared = mail.send("alice", "all", "to all")
    mail.run("carol", "reply", "1", "carol here").ok()
    mail.run("bob", "reply", "2", "bob here").ok()
    answers = mail.run("alice", "inbox", "--json").ok().json["inbox"]
    assert {(item["from"], item["replyTo"]) for item in answers} == {("bob", shared), ("carol", shared)}


def test_a_broadcast_answered_by_one_is_unhandled_at_the_other(mail: Mail) -> None:
    mail.send("alice", "all", "who can look?")
    mail.run("carol", "reply", "1", "me").ok()
    assert mail.sql("SELECT count(*) FROM receipts WHERE state = 'handled'") == [(1,)]
    assert mail.run("bob", "inbox").ok().out.startswith("1 message:\n")


# ack


def test_acknowledged_mail_is_handled_and_nothing_is_sent(mail: Mail) -> None:
    message = mail.send("alice", "bob", "fyi")
    mail.run("bob", "inbox").ok()
    assert mail.run("bob", "ack", "1").ok().out == f"handled [{message}] from alice\n"
    assert state(mail, message) == "handled"
    assert counts(mail) == (1, 1)
    assert mail.run("alice", "inbox").out == "Inbox empty.\n"


def test_several_are_acknowledged_at_once_by_number_or_id(mail: Mail) -> None:
    ids = [mail.send("alice", "bob", "fyi") for _ in range(3)]
    assert mail.run("bob", "ack", "1", ids[1], f"#{ids[2]}", "--json").ok().json == {"op": "ack", "acked": ids}
    assert mail.run("bob", "inbox", "--unhandled").out == "Inbox empty.\n"


def test_acknowledging_unread_mail_takes_it_out_of_the_inbox(mail: Mail) -> None:
    for body in ("one", "two"):
        mail.send("alice", "bob", body)
    mail.run("bob", "ack", "1").ok()
    assert [item["body"] for item in mail.run("bob", "inbox", "--json").json["inbox"]] == ["two"]


def test_acknowledging_twice_changes_nothing(mail: Mail) -> None:
    message = mail.send("alice", "bob", "fyi")
    mail.run("bob", "ack", "1").ok()
    before = mail.sql("SELECT * FROM receipts")
    mail.run("bob", "ack", message).ok()
    assert mail.sql("SELECT * FROM receipts") == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "there is nothing to acknowledge"),
        (["1", "7"], "there is no message 7"),
        (["1", NOWHERE], f"there is no message {NOWHERE}"),
        (["1", "x"], "'x' is no message id"),
    ],
)
def test_an_ack_is_of_all_or_none(mail: Mail, words: list[str], told: str) -> None:
    message = mail.send("alice", "bob", "fyi")
    done = mail.run("bob", "ack", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert state(mail, message) == "pending"


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_mail_of_others_cannot_be_acknowledged(mail: Mail, who: str) -> None:
    message = mail.send("alice", "bob", "fyi")
    done = mail.run(who, "ack", message)
    assert done.status == 2
    assert f"message {message} was not sent to you" in done.err
    assert state(mail, message) == "pending"
