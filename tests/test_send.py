"""What a sender may rely on."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

from tests.conftest import Mail, Result, finish
from tests.sessions import Session, register

LIMIT = 1 << 20
NOWHERE = str(1 << 60)  # an id that no message has


def stored(mail: Mail) -> tuple[int, int]:
    """How many messages and receipts there are."""
    return mail.sql("SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM receipts)")[0]


def bodies(mail: Mail, agent: str) -> list[str]:
    return [item["body"] for item in mail.run(agent, "inbox", "--json").ok().json["inbox"]]


def bullets(done: Result) -> list[str]:
    return [line for line in done.out.splitlines() if line.startswith("- ")]


# What arrives


def test_a_message_arrives_byte_for_byte(mail: Mail) -> None:
    register(mail, "bob")
    body = "  leading, trailing  \n\ttabs, ünïcödé 🙂\r\n-- and / @ signs\n\n"
    mail.run("alice", "send", "bob", stdin=body).ok()
    assert mail.run("bob", "inbox", "--json").ok().json["inbox"][0]["body"] == body


def test_bare_words_are_joined_by_one_space(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("alice", "send", "bob", "which", "port?", "--json").ok()
    assert mail.run("bob", "inbox", "--json").json["inbox"][0]["body"] == "which port?"


@pytest.mark.parametrize("size", [1, 456, 457, 495, 512, 513, 5_000, 70_000])
def test_bodies_of_any_size_arrive_whole(mail: Mail, size: int) -> None:
    register(mail, "bob")
    mail.run("alice", "send", "bob", stdin="x" * size).ok()
    assert bodies(mail, "bob") == ["x" * size]


@pytest.mark.parametrize(
    "words",
    [
        ["/tmp/x", "is", "a", "path"],
        ["@carol", "look"],
        ["-"],
        ["--", "--await", "is", "an", "option"],
        ["--", "-5", "degrees"],
        ["é" * 300],
        ["one\n/quit\n\nthree\n"],
        ["  blanks  kept  "],
    ],
)
def test_a_body_is_never_taken_for_anything_else(mail: Mail, words: list[str]) -> None:
    register(mail, "bob")
    mail.run("alice", "send", "bob", *words).ok()
    assert bodies(mail, "bob") == [" ".join(word for word in words if word != "--")]


@pytest.mark.parametrize("source", ["notes.txt", "-"])
def test_a_body_may_come_from_a_file(mail: Mail, source: str) -> None:
    register(mail, "bob")
    (mail.home / "notes.txt").write_bytes(b"from the file\n")
    mail.run("alice", "send", "bob", "--body-file", source, stdin="from the file\n").ok()
    assert bodies(mail, "bob") == ["from the file\n"]


def test_several_messages_arrive_in_the_order_they_were_sent_in(mail: Mail) -> None:
    register(mail, "bob")
    ids = [mail.send("alice", "bob", f"message {number}") for number in range(5)]
    assert bodies(mail, "bob") == [f"message {number}" for number in range(5)]
    assert [int(one) for one in ids] == sorted(int(one) for one in ids)


def test_ids_rise_even_if_the_clock_stood_ahead_before(mail: Mail) -> None:
    register(mail, "bob")
    mail.send("alice", "bob", "first")
    ahead = 1 << 62
    mail.sql("UPDATE sqlite_sequence SET seq = ? WHERE name = 'messages'", ahead)
    assert int(mail.send("alice", "bob", "second")) == ahead + 1


def test_the_first_send_needs_no_set_up(mail: Mail) -> None:
    mail.run("alice", "send", "bob", "hi", "--hold").ok()
    assert "- alice [" in mail.run("bob", "list").ok().out


# What is refused

REFUSED = [
    ([], "no recipient"),
    ([""], "no recipient"),
    (["  ", "hi"], "no recipient"),
    (["bob"], "the message is empty"),
    (["bob", ""], "the message is empty"),
    (["bob", " \n\t ", "\r\n"], "the message is empty"),
    (["bob", "\u2003\u00a0"], "the message is empty"),
    (["alice", "hi"], "alice is yourself"),
    (["ALICE", "hi"], "ALICE is yourself"),
    ([" alice ", "hi"], "alice is yourself"),
    (["alice", "hi", "--hold"], "alice is yourself"),
    (["all", "hi", "--await"], "--await needs one peer"),
    (["All", "hi", "--await"], "--await needs one peer"),
    (["+relay", "hi", "--await"], "--await needs one peer"),
    (["#relay", "hi", "--await"], "--await needs one peer"),
    (["bob", "hi", "--reply-to", NOWHERE], f"there is no message {NOWHERE}"),
    (["bob", "hi", "--reply-to", "1"], "there is no message 1"),
    (["bob", "hi", "--reply-to", "0"], "there is no message 0"),
    (["bob", "hi", "--reply-to", "-1"], "'-1' is no message id"),
    (["bob", "hi", "--reply-to", "yesterday"], "'yesterday' is no message id"),
    (["bob", "hi", "--reply-to", ""], "'' is no message id"),
    (["bob", "hi", "--reply-to", "9" * 30], "is no message id"),
    (["bob", "hi", "--body-file", "-"], "the message is given twice"),
    (["bob", "--body-file", "nothing.txt"], "cannot read nothing.txt: no such file"),
    (["bob", "--body-file", "."], "cannot read .: is a directory"),
    (["bob", "--body-file", ""], "cannot read"),
    (["bob", os.fsdecode(b"caf\xe9")], "not valid UTF-8"),
    ([os.fsdecode(b"\xff"), "hi"], "not valid UTF-8"),
    (["bob", "hi", "--timeout", "5"], "'5' is no duration"),
    (["bob", "hi", "--timeout-ms", "soon"], "takes a number of milliseconds, not 'soon'"),
    (["bob", "hi", "--timeout", "5s", "--timeout-ms", "5000"], "use one of them"),
    (["bo/b", "hi", "--hold"], "'bo/b' is no agent name"),
]


@pytest.mark.parametrize(("words", "told"), REFUSED)
def test_what_cannot_be_sent_is_refused_and_nothing_is_stored(mail: Mail, words: list[str], told: str) -> None:
    register(mail, "alice", "bob")
    done = mail.run("alice", "send", *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("agentmail: ")
    assert told in done.err
    assert stored(mail) == (0, 0)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "the message is empty"),
        (b"\n \n", "the message is empty"),
        (b"\xff\xfe", "not valid UTF-8 (byte 0)"),
        (b"surrogate \xed\xa0\x80", "not valid UTF-8 (byte 10)"),
        (b"one\0two", "NUL"),
        (b"x" * (LIMIT + 1), f"has {LIMIT + 1} bytes and the limit is {LIMIT}"),
    ],
    ids=["nothing", "blank", "latin", "surrogate", "nul", "too long"],
)
@pytest.mark.parametrize("source", ["stdin", "file"])
def test_a_bad_body_is_refused_wherever_it_comes_from(mail: Mail, source: str, body: bytes, told: str) -> None:
    register(mail, "alice", "bob")
    (mail.home / "body").write_bytes(body)
    options = ["--body-file", "body"] if source == "file" else []
    done = mail.run("alice", "send", "bob", *options, stdin=body)
    assert done.status == 2
    assert told in done.err
    assert stored(mail) == (0, 0)


def test_a_body_may_have_just_the_limit(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("alice", "send", "bob", stdin="x" * LIMIT).ok()
    assert len(bodies(mail, "bob")[0]) == LIMIT


def test_the_limit_counts_bytes_and_can_be_set(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.run("alice", "config", "max_body", "10").ok()
    assert mail.run("alice", "send", "bob", "é" * 6).status == 2
    mail.run("alice", "send", "bob", "é" * 5).ok()
    assert bodies(mail, "bob") == ["é" * 5]


# To whom


def test_the_recipient_is_trimmed_and_known_in_any_letter_case(mail: Mail) -> None:
    register(mail, "bob")
    done = mail.run("alice", "send", " BoB\n", "hi", "--json").ok()
    assert [receipt["to"] for receipt in done.json["receipts"]] == ["bob"]
    assert bodies(mail, "bob") == ["hi"]


def test_an_unknown_recipient_is_a_failed_receipt_with_the_likeliest_names_first(mail: Mail) -> None:
    register(mail, "bobby", "carol", "dave")
    done = mail.run("alice", "send", "bobbi", "hi")
    assert done.status == 1
    assert re.fullmatch(r"not sent\n- bobbi: failed — bobbi is unknown; known: bobby, (carol|dave), \w+\n", done.out)
    assert stored(mail) == (0, 0)


def test_a_failed_receipt_in_json_has_no_id(mail: Mail) -> None:
    register(mail, "bob")
    done = mail.run("alice", "send", "bobb", "hi", "--json")
    assert done.status == 1
    assert done.json == {
        "op": "send",
        "from": "alice",
        "to": "bobb",
        "receipts": [{"to": "bobb", "outcome": "failed", "error": "bobb is unknown; known: bob"}],
    }


def test_with_nobody_else_a_failed_receipt_says_so(mail: Mail) -> None:
    assert "known: nobody else has registered yet" in mail.run("alice", "send", "bob", "hi").out


def test_an_aborted_recipient_is_told_from_an_unknown_one(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("alice", "abort", "bob").ok()
    done = mail.run("alice", "send", "Bob", "hi")
    assert done.status == 1
    assert "Bob was aborted" in done.out
    assert stored(mail) == (0, 0)


def test_a_failed_send_may_be_repeated_and_is_then_sent(mail: Mail) -> None:
    assert mail.run("alice", "send", "bob", "hi", "--once", "key").status == 1
    register(mail, "bob")
    mail.run("alice", "send", "bob", "hi", "--once", "key").ok()
    assert bodies(mail, "bob") == ["hi"]


def test_mail_is_held_for_a_name_that_has_not_registered_yet(mail: Mail) -> None:
    done = mail.run("alice", "send", "bob", "welcome", "--hold").ok()
    assert bullets(done) == ["- bob: queued: held until bob registers"]
    assert bodies(mail, "bob") == ["welcome"]


def test_a_name_that_mail_is_held_for_is_no_agent_yet(mail: Mail) -> None:
    mail.run("alice", "send", "bob", "welcome", "--hold").ok()
    assert mail.run("alice", "list").ok().out == "No other agents.\n"
    assert mail.run("alice", "send", "all", "hi").ok().out == "No live peers.\n"
    assert mail.run("alice", "send", "bob", "without hold").status == 1
    assert stored(mail) == (1, 1)


def test_more_mail_is_held_in_any_letter_case(mail: Mail) -> None:
    mail.run("alice", "send", "bob", "first", "--hold").ok()
    mail.run("alice", "send", "BOB", "second", "--hold").ok()
    assert bodies(mail, "bob") == ["first", "second"]


# Everybody


def test_everybody_who_is_live_gets_a_broadcast(mail: Mail) -> None:
    register(mail, "bob", "carol", "dave")
    mail.run("dave", "park").ok()
    done = mail.run("alice", "send", "ALL", "hi", "--json").ok()
    assert [receipt["to"] for receipt in done.json["receipts"]] == ["bob", "carol"]
    assert (bodies(mail, "bob"), bodies(mail, "carol")) == (["hi"], ["hi"])
    assert mail.run("dave", "inbox").ok().out == "Inbox empty.\n"


def test_a_broadcast_to_nobody_is_done_at_once(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.run("bob", "park").ok()
    done = mail.run("alice", "send", "all", "hi").ok()
    assert (done.out, done.err) == ("No live peers.\n", "")
    assert mail.run("alice", "send", "all", "hi", "--json").ok().json["receipts"] == []
    assert stored(mail) == (0, 0)


def test_a_broadcast_skips_a_session_that_died_without_a_word(mail: Mail) -> None:
    bob = Session(mail).named("bob")
    register(mail, "alice")
    bob.end()
    assert mail.run("alice", "send", "all", "hi").ok().out == "No live peers.\n"


def test_a_broadcast_is_stored_once_and_each_mailbox_has_its_own_number(mail: Mail) -> None:
    register(mail, "bob", "carol")
    mail.send("alice", "bob", "for bob alone")
    mail.send("alice", "all", "for all")
    assert stored(mail) == (2, 3)
    numbers = {
        name: [item["n"] for item in mail.run(name, "inbox", "--json").json["inbox"]] for name in ("bob", "carol")
    }
    assert numbers == {"bob": [1, 2], "carol": [1]}


def test_a_full_mailbox_does_not_hurt_the_others(mail: Mail) -> None:
    register(mail, "bob", "carol")
    for setting in (("cap", "1"), ("overflow", "refuse")):
        mail.run("alice", "config", *setting).ok()
    mail.send("alice", "bob", "fills it")
    done = mail.run("alice", "send", "all", "hi").ok()
    assert "- bob: failed — mailbox full (1 unread); try again once it has read some" in bullets(done)
    assert bodies(mail, "carol") == ["hi"]
    assert bodies(mail, "bob") == ["fills it"]


def test_a_send_that_reaches_nobody_for_full_mailboxes_is_not_done(mail: Mail) -> None:
    register(mail, "bob")
    for setting in (("cap", "1"), ("overflow", "refuse")):
        mail.run("alice", "config", *setting).ok()
    mail.send("alice", "bob", "fills it")
    done = mail.run("alice", "send", "bob", "hi")
    assert (done.status, done.out.splitlines()[0]) == (1, "not sent")
    assert stored(mail) == (1, 1)


# Receipts


def test_a_receipt_names_the_id_that_the_recipient_sees(mail: Mail) -> None:
    register(mail, "bob")
    done = mail.run("alice", "send", "bob", "hi").ok()
    sent = re.match(r"sent (\d+)\n- bob: ", done.out)
    assert sent
    assert f"[{sent[1]}] alice" in mail.run("bob", "inbox").out


def test_idle_recipients_queue_and_the_receipt_says_what_is_known(mail: Mail) -> None:
    register(mail, "bob")
    first, second = (mail.run("alice", "send", "bob", "hi").ok() for _ in range(2))
    assert re.fullmatch(r"- bob: queued: idle for \d+s, 0 unread", bullets(first)[0])
    assert re.fullmatch(r"- bob: queued: idle for \d+s, 1 unread", bullets(second)[0])


def test_the_receipt_tells_how_long_a_recipient_has_been_so(mail: Mail) -> None:
    register(mail, "bob")
    mail.sql("UPDATE agents SET since = since - 3 * 3600 * 1000 WHERE name = 'bob'")
    assert bullets(mail.run("alice", "send", "bob", "hi")) == ["- bob: queued: idle for 3h, 0 unread"]


def test_parked_recipients_keep_their_mail(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("bob", "park").ok()
    assert re.match(
        r"- bob: queued: parked for \d+s, 0 unread", bullets(mail.run("alice", "send", "bob", "hi").ok())[0]
    )
    assert bodies(mail, "bob") == ["hi"]


def test_a_recipient_mid_turn_without_hooks_only_queues(mail: Mail) -> None:
    Session(mail).named("bob", "--state", "running")
    done = mail.run("alice", "send", "bob", "hi", "--json").ok()
    assert done.json["receipts"] == [{"to": "bob", "outcome": "queued"}]
    assert "- bob: queued: running for " in mail.run("alice", "send", "bob", "hi").out


def test_a_recipient_mid_turn_with_hooks_will_see_it_at_its_next_step(mail: Mail) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(mail.home), "prompt": "go"}
    mail.run(None, "hook", "claude", stdin=json.dumps(event), AGENTMAIL_AGENT="bob").ok()
    done = mail.run("alice", "send", "bob", "hi").ok()
    assert bullets(done) == ["- bob: injected: mid-turn, its hooks show it at the next step"]


def test_a_blocked_wait_takes_it(mail: Mail) -> None:
    waiting = mail.start("bob", "wait")
    mail.wait_until_waiting("bob")
    done = mail.run("alice", "send", "bob", "hi").ok()
    assert bullets(done) == ["- bob: injected: its wait took it"]
    assert finish(waiting).ok().out.endswith(": hi\n")
    assert mail.run("bob", "inbox").out == "Inbox empty.\n"


def test_a_receipt_tells_what_it_pushed_out(mail: Mail) -> None:
    register(mail, "bob")
    mail.run("alice", "config", "cap", "1").ok()
    first = mail.send("carol", "bob", "first")
    done = mail.run("alice", "send", "bob", "second").ok()
    assert f"\n  its mailbox was full: [{first}] from carol was dropped unread\n" in done.out
    third = mail.run("alice", "send", "bob", "third", "--json").ok()
    assert [item["from"] for item in third.json["receipts"][0]["dropped"]] == ["alice"]


def test_send_never_waits_for_a_waiter_that_does_not_answer(mail: Mail) -> None:
    waiting = mail.start("bob", "wait")
    mail.wait_until_waiting("bob")
    waiting.send_signal(signal.SIGSTOP)
    assert "injected" in mail.run("alice", "send", "bob", "hi").ok().out
    waiting.send_signal(signal.SIGCONT)
    assert finish(waiting).ok().out.endswith(": hi\n")


def test_a_reply_to_may_be_a_number_in_the_own_mailbox(mail: Mail) -> None:
    register(mail, "alice", "bob")
    question = mail.send("bob", "alice", "which port?")
    mail.run("alice", "send", "bob", "8080", "--reply-to", "1").ok()
    assert mail.run("bob", "inbox", "--json").json["inbox"][0]["replyTo"] == question


# Once


def test_a_repeated_key_stores_nothing_and_gives_the_first_receipt(mail: Mail) -> None:
    register(mail, "bob")
    first = mail.run("alice", "send", "bob", "hi", "--once", "key", "--json").ok().json
    again = mail.run("alice", "send", "bob", "hi", "--once", "key", "--json").ok().json
    assert again == first
    assert stored(mail) == (1, 1)


def test_the_receipt_of_a_repeated_key_says_so(mail: Mail) -> None:
    register(mail, "bob")
    first = mail.send("alice", "bob", "hi", "--once", "key")
    assert mail.run("alice", "send", "bob", "hi", "--once", "key").ok().out == f"sent {first} before\n- bob: queued\n"


def test_a_repeated_key_tells_the_outcome_of_that_time(mail: Mail) -> None:
    waiting = mail.start("bob", "wait")
    mail.wait_until_waiting("bob")
    mail.send("alice", "bob", "hi", "--once", "key")
    finish(waiting).ok()
    again = mail.run("alice", "send", "bob", "hi", "--once", "key", "--json").ok().json
    assert again["receipts"] == [{"to": "bob", "outcome": "injected"}]


def test_a_repeated_broadcast_gives_every_receipt_again(mail: Mail) -> None:
    register(mail, "bob", "carol")
    first = mail.run("alice", "send", "all", "hi", "--once", "key", "--json").ok().json
    register(mail, "dave")
    assert mail.run("alice", "send", "all", "hi", "--once", "key", "--json").ok().json == first
    assert mail.run("dave", "inbox").out == "Inbox empty.\n"


def test_a_key_is_repeated_even_after_the_recipient_has_gone(mail: Mail) -> None:
    register(mail, "bob")
    first = mail.send("alice", "bob", "hi", "--once", "key")
    mail.run("alice", "abort", "bob").ok()
    assert mail.send("alice", "bob", "hi", "--once", "key") == first


def test_a_key_is_the_senders_own(mail: Mail) -> None:
    register(mail, "bob")
    assert mail.send("alice", "bob", "hi", "--once", "key") != mail.send("carol", "bob", "hi", "--once", "key")
    assert stored(mail) == (2, 2)
