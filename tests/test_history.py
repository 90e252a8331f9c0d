"""What was said, and what became of it."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Mail
from tests.sessions import Session, register

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
NOWHERE = str(1 << 60)


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")


def shown(mail: Mail, agent: str, message: str) -> list[str]:
    """The lines of `show`, without the times."""
    return [re.sub(TIME, "TIME", line) for line in mail.run(agent, "show", message).ok().out.splitlines()]


def log(mail: Mail, *options: str) -> list[str]:
    return [item["body"] for item in mail.run("alice", "log", "--json", *options).ok().json["log"]]


# show


def test_a_message_is_shown_with_each_stage_that_it_has_reached(mail: Mail) -> None:
    message = mail.send("alice", "bob", "which port?")
    head = f"[{message}] alice (claimed): which port?"
    stored = "    stored    TIME"
    assert shown(mail, "alice", message) == [head, "- bob: queued, now pending (number 1 there)", stored]
    mail.run("bob", "inbox").ok()
    assert shown(mail, "alice", message)[1:] == [
        "- bob: queued, now read (number 1 there)",
        stored,
        "    offered   TIME",
        "    read      TIME",
    ]
    answer = mail.run("bob", "reply", "1", "8080", "--json").ok().json["id"]
    assert shown(mail, "alice", message)[-1] == f"    answered  TIME by [{answer}]"
    assert "now handled" in shown(mail, "alice", message)[1]


def test_an_acknowledged_message_was_not_answered(mail: Mail) -> None:
    message = mail.send("alice", "bob", "fyi")
    mail.run("bob", "ack", "1").ok()
    assert shown(mail, "alice", message)[-1] == "    acked     TIME"


def test_a_dropped_message_says_so(mail: Mail) -> None:
    mail.run("bob", "config", "cap", "1").ok()
    message = mail.send("alice", "bob", "one")
    mail.send("alice", "bob", "two")
    assert shown(mail, "alice", message)[1:] == [
        "- bob: queued, now dropped (number 1 there)",
        "    stored    TIME",
        "    dropped   TIME unread",
    ]


def test_every_recipient_has_its_own_stages(mail: Mail) -> None:
    message = mail.send("alice", "all", "hi")
    mail.run("carol", "inbox").ok()
    assert [line for line in shown(mail, "alice", message) if line.startswith("- ")] == [
        "- bob: queued, now pending (number 1 there)",
        "- carol: queued, now read (number 1 there)",
    ]


def test_the_stages_in_json(mail: Mail) -> None:
    message = mail.send("alice", "bob", "which port?")
    answer = mail.run("bob", "reply", "1", "8080", "--json").ok().json["id"]
    found = mail.run("alice", "show", message, "--json").ok().json
    assert (found["op"], found["message"]["id"], found["message"]["to"]) == ("show", message, "bob")
    receipt = found["receipts"][0]
    assert receipt["stored"] <= receipt["offered"] <= receipt["read"] <= receipt["handled"]
    assert (receipt["to"], receipt["n"], receipt["state"], receipt["outcome"], receipt["answer"]) == (
        *("bob", 1, "handled", "queued"),
        answer,
    )


def test_a_number_is_that_of_ones_own_mailbox(mail: Mail) -> None:
    mail.send("alice", "bob", "for bob")
    mail.send("alice", "carol", "for carol")
    assert shown(mail, "carol", "1")[0].endswith(": for carol")


def test_showing_consumes_nothing(mail: Mail) -> None:
    message = mail.send("alice", "bob", "hi")
    mail.run("bob", "show", message).ok()
    assert mail.sql("SELECT state, offered FROM receipts") == [("pending", None)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "there is no message id"),
        (["7"], "there is no message 7"),
        ([NOWHERE], f"there is no message {NOWHERE}"),
        (["first"], "'first' is no message id"),
    ],
)
def test_what_is_no_message_cannot_be_shown(mail: Mail, words: list[str], told: str) -> None:
    done = mail.run("bob", "show", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


# log


def test_with_no_messages_it_says_so(mail: Mail) -> None:
    assert mail.run("alice", "log").ok().out == "No messages.\n"
    assert mail.run("alice", "log", "--json").ok().json == {"op": "log", "log": []}


def test_messages_are_shown_with_time_sender_and_recipient_oldest_first(mail: Mail) -> None:
    first = mail.send("alice", "bob", "which port?")
    second = mail.run("bob", "reply", "1", "8080", "--json").ok().json["id"]
    lines = [re.sub(TIME, "TIME", line) for line in mail.run("alice", "log").ok().out.splitlines()]
    assert lines == [
        f"TIME [{first}] alice → bob (claimed): which port?",
        f"TIME [{second}] bob → alice (claimed, reply to {first}): 8080",
    ]


def test_ones_own_and_received_messages_are_shown_and_no_others(mail: Mail) -> None:
    mail.send("alice", "bob", "sent")
    mail.send("carol", "alice", "got")
    mail.send("bob", "carol", "between others")
    assert log(mail) == ["sent", "got"]
    assert log(mail, "--all") == ["sent", "got", "between others"]


def test_one_correspondent_may_be_chosen(mail: Mail) -> None:
    mail.send("alice", "bob", "to bob")
    mail.send("carol", "alice", "from carol")
    mail.send("bob", "alice", "from bob")
    assert log(mail, "--with", "BOB") == ["to bob", "from bob"]


def test_an_unknown_correspondent_is_refused(mail: Mail) -> None:
    done = mail.run("alice", "log", "--with", "dave")
    assert done.status == 2
    assert "no agent 'dave'; known: " in done.err


def test_the_last_ten_are_shown_unless_another_number_is_asked_for(mail: Mail) -> None:
    mail.send("alice", "bob", "0")
    for number in range(1, 12):
        mail.sql("INSERT INTO messages (sender, body) SELECT sender, ? FROM messages LIMIT 1", str(number))
        mail.sql(
            "INSERT INTO receipts (message, recipient) SELECT max(id), (SELECT recipient FROM receipts) FROM messages"
        )
    assert log(mail) == [str(number) for number in range(2, 12)]
    assert log(mail, "--limit", "2") == ["10", "11"]
    assert log(mail, "--limit", "100") == [str(number) for number in range(12)]
    assert log(mail, "--limit", "0") == []


def test_the_log_consumes_nothing_and_registers_nobody(mail: Mail) -> None:
    mail.send("bob", "alice", "hi")
    assert log(mail) == ["hi"]
    assert mail.sql("SELECT state, offered FROM receipts") == [("pending", None)]
    assert mail.run("stranger", "log").ok().out == "No messages.\n"
    assert mail.sql("SELECT count(*) FROM agents WHERE name = 'stranger'") == [(0,)]


def test_read_and_dropped_messages_stay_in_the_log(mail: Mail) -> None:
    mail.run("alice", "config", "cap", "1").ok()
    for body in ("dropped", "read"):
        mail.send("bob", "alice", body)
    mail.run("alice", "inbox").ok()
    assert log(mail) == ["dropped", "read"]


def test_a_broadcast_is_in_the_log_once_for_each_recipient(mail: Mail) -> None:
    mail.send("alice", "all", "hi")
    found = mail.run("alice", "log", "--json").ok().json["log"]
    assert [(item["to"], item["body"]) for item in found] == [("bob", "hi"), ("carol", "hi")]


def test_the_log_of_an_aborted_correspondent_can_still_be_read(mail: Mail) -> None:
    mail.send("bob", "alice", "last words")
    mail.run("alice", "abort", "bob").ok()
    assert log(mail) == ["last words"]


def test_whether_a_sender_was_verified_is_in_the_log(mail: Mail) -> None:
    Session(mail).named("dave").run("send", "alice", "hi").ok()
    assert " dave → alice: hi\n" in mail.run("alice", "log").ok().out
