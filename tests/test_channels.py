"""Channels: the hub that everybody is in, others beside it, marks, mentions, waiting for a post."""

from __future__ import annotations

import subprocess

import pytest

from agentmail.operations.channels import mentions
from tests.conftest import AGENTMAIL, Mail, finish
from tests.hooked import PROMPT, START, Program, send_as
from tests.sessions import register


def post(mail: Mail, sender: str, channel: str, *bodies: str) -> None:
    for body in bodies:
        send_as(mail, sender, channel, body)


def unread(mail: Mail, agent: str, channel: str = "relay") -> int:
    """As ``channel list`` says."""
    found = mail.run(agent, "channel", "list", "--json").ok().json["channels"]
    return int(next(item["unread"] for item in found if item["name"] == channel))


def bodies(mail: Mail, agent: str, channel: str, limit: int = 100) -> list[str]:
    log = mail.run(agent, "log", "--channel", channel, "--limit", str(limit), "--json").ok().json["log"]
    return [str(item["body"]) for item in log]


def receipts(mail: Mail, message: int | None = None) -> list[tuple[str, str]]:
    """(recipient, state) of every receipt."""
    query = "SELECT name, state FROM receipts JOIN agents ON id = recipient WHERE message = ? OR ? IS NULL ORDER BY 1"
    return mail.sql(query, message, message)


# Membership


def test_everybody_is_in_the_hub_from_registration(mail: Mail) -> None:
    assert mail.run("alice", "channel", "list").ok().out == "- relay: 0 members\n"
    register(mail, "alice", "bob")
    mail.run("cron", "send", "bob", "hello").ok()
    assert mail.run("alice", "channel").ok().out == "- relay: 3 members, joined, 0 unread\n"


def test_the_hub_cannot_be_left(mail: Mail) -> None:
    register(mail, "alice")
    for name in ("relay", "+relay", "#relay", "RELAY"):
        done = mail.run("alice", "channel", "leave", name)
        assert (done.status, done.out) == (2, "")
        assert done.err == "agentmail: everybody is in relay, always; it cannot be left\n"


def test_a_channel_is_joined_used_and_left(mail: Mail) -> None:
    register(mail, "alice", "bob")
    assert mail.run("alice", "channel", "join", "#front").ok().out == "alice has joined front.\n"
    assert mail.run("bob", "channel", "join", "FRONT").ok().out == "bob has joined front.\n"
    assert mail.run("bob", "channel", "join", "front").ok().out == "bob has joined front.\n"
    listed = "- relay: 2 members, joined, 0 unread\n- front: 2 members, joined, 0 unread\n"
    assert mail.run("bob", "channel", "list").ok().out == listed
    assert mail.run("bob", "channel", "leave", "+front", "--json").ok().json == {
        "op": "channel",
        "channel": "front",
        "left": True,
    }
    assert mail.run("bob", "channel", "list").ok().out.endswith("- front: 1 member\n")
    again = mail.run("bob", "channel", "leave", "front")
    assert (again.status, again.err) == (2, "agentmail: you are not in front; see 'agentmail channel list'\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["join"], "there is no channel; write 'agentmail channel join NAME'"),
        (["leave", "nowhere"], "there is no channel 'nowhere'; the channels are relay"),
        (["shut", "relay"], "'channel' takes join, leave or list, not 'shut'"),
        (["join", "two words"], "'two words' is no agent name"),
        (["join", "+"], "'' is no agent name"),
        (["join", "all"], "'all' means everybody"),
        (["join", "x" * 65], "is no agent name"),
    ],
)
def test_misuse_is_refused(mail: Mail, words: list[str], complaint: str) -> None:
    register(mail, "alice")
    done = mail.run("alice", "channel", *words)
    assert (done.status, done.out) == (2, "")
    assert complaint in done.err
    assert mail.sql("SELECT name FROM channels") == [("relay",)]


# Posting


def test_a_post_is_one_row_and_no_receipt_whatever_the_membership(mail: Mail) -> None:
    register(mail, "alice", *(f"member{number}" for number in range(20)))
    done = mail.run("alice", "send", "+relay", "to", "all", "of", "you").ok()
    assert done.out.splitlines()[1:] == ["- +relay: queued: 20 other members"]
    mail.run("alice", "send", "#Relay", "once more").ok()
    assert mail.sql("SELECT count(*) FROM messages") == [(2,)]
    assert receipts(mail) == []
    assert bodies(mail, "member7", "#relay") == ["to all of you", "once more"]


def test_a_post_in_json_says_where_it_went(mail: Mail) -> None:
    register(mail, "alice", "bob")
    sent = mail.run("alice", "send", "+relay", "hello", "--json").ok().json
    assert sent["receipts"] == [{"to": "+relay", "outcome": "queued"}]
    log = mail.run("bob", "log", "--channel", "relay", "--json").ok().json["log"]
    assert [(item["channel"], item["to"], item["from"], item["body"]) for item in log] == [
        ("relay", "+relay", "alice", "hello")
    ]


def test_who_is_no_member_cannot_post_and_who_names_no_channel_neither(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.run("bob", "channel", "join", "front").ok()
    outside = mail.run("alice", "send", "+front", "hello")
    assert (outside.status, outside.out) == (2, "")
    assert outside.err == "agentmail: you are not in front; join it with 'agentmail channel join front'\n"
    unknown = mail.run("alice", "send", "#nowhere", "hello")
    assert (unknown.status, unknown.out) == (2, "")
    assert unknown.err.startswith("agentmail: there is no channel 'nowhere'; the channels are relay, front, ")
    assert mail.sql("SELECT count(*) FROM messages") == [(0,)]


@pytest.mark.parametrize("to", ["+relay", "#relay"])
def test_awaiting_a_channel_is_refused(mail: Mail, to: str) -> None:
    register(mail, "alice", "bob")
    done = mail.run("alice", "send", to, "hello", "--await")
    assert done.status == 2
    assert "--await needs one peer" in done.err
    assert mail.sql("SELECT count(*) FROM messages") == [(0,)]


def test_to_all_is_mail_to_each_and_to_the_hub_is_a_post(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")
    mail.run("carol", "park").ok()
    mail.run("alice", "send", "all", "as mail").ok()
    assert receipts(mail) == [("bob", "pending")]
    assert bodies(mail, "bob", "relay") == []
    mail.run("alice", "send", "+relay", "as a post").ok()
    assert receipts(mail) == [("bob", "pending")]
    assert "1. [" in mail.run("bob", "inbox").ok().out
    assert bodies(mail, "carol", "relay") == ["as a post"]  # a parked member may read it later


def test_a_late_comer_starts_at_now_and_can_read_what_was(mail: Mail) -> None:
    register(mail, "alice")
    post(mail, "alice", "+relay", *(f"old {number}" for number in range(50)))
    register(mail, "bob")
    assert unread(mail, "bob") == 0
    session = Program(mail, "claude")
    assert "old" not in session.told(START)
    assert session.told(PROMPT) == ""
    assert bodies(mail, "bob", "relay", 10) == [f"old {number}" for number in range(40, 50)]
    post(mail, "alice", "+relay", "new")
    assert unread(mail, "bob") == 1


def test_an_answer_to_a_post_goes_to_its_author_alone(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")
    message = send_as(mail, "alice", "+relay", "who can review?")
    mail.run("bob", "reply", str(message), "I can").ok()
    assert [name for name, _ in receipts(mail)] == ["alice"]
    assert bodies(mail, "carol", "relay") == ["who can review?"]


# Two marks


def seen(mail: Mail, agent: str) -> tuple[int, int]:
    """How many posts are at or below the two marks, offered and read."""
    query = """
        SELECT (SELECT count(*) FROM messages WHERE channel = 1 AND id <= m.offered),
               (SELECT count(*) FROM messages WHERE channel = 1 AND id <= m.read)
        FROM members AS m JOIN agents AS a ON a.id = m.agent WHERE a.name = ?"""
    found: tuple[int, int] = mail.sql(query, agent)[0]
    return found


def test_a_few_posts_are_read_where_they_are_shown_and_many_are_only_offered(mail: Mail) -> None:
    session = Program(mail, "claude")
    session.fire(START)
    me = session.name()
    post(mail, "bob", "+relay", "one", "two", "three")
    text = session.told(PROMPT)
    assert [text.count(f"\n  {body}\n") for body in ("one", "two", "three")] == [1, 1, 1]
    assert seen(mail, me) == (3, 3)
    post(mail, "bob", "+relay", "four", "five", "six", "seven\nand its end")
    text = session.told(PROMPT)
    assert "+relay: 4 new posts, the last by bob " in text
    assert ": and its end\n  all of them: agentmail log --channel relay --limit 4\n" in text
    assert "five" not in text
    assert seen(mail, me) == (7, 3)
    assert session.told(PROMPT) == ""  # offered once
    post(mail, "bob", "+relay", "eight")
    assert "\n  eight\n" in session.told(PROMPT)
    assert seen(mail, me) == (8, 3)  # four older ones are still unread


def test_the_command_of_a_badge_shows_all_that_is_unread(mail: Mail) -> None:
    session = Program(mail, "claude")
    session.fire(START)
    me = session.name()
    post(mail, "bob", "+relay", "one", "two", f"three, @{me}", "four", "five")
    session.send("+relay", "one of my own")
    text = session.told(PROMPT)
    assert f"\n  three, @{me}\n" in text  # a mention, whole
    assert "+relay: 4 new posts, the last by bob " in text
    assert "agentmail log --channel relay --limit 6\n" in text
    done = mail.run(None, "log", "--channel", "relay", "--limit", "6", "--as", me, "--force").ok()
    assert [line.rpartition(": ")[2] for line in done.out.splitlines()] == [
        *("one", "two", f"three, @{me}", "four", "five", "one of my own")
    ]
    assert seen(mail, me) == (6, 6)


def test_a_log_clears_only_when_all_that_was_unread_was_shown(mail: Mail) -> None:
    register(mail, "alice", "bob")
    post(mail, "alice", "+relay", "one", "two", "three")
    assert bodies(mail, "bob", "relay", 2) == ["two", "three"]
    assert unread(mail, "bob") == 3
    assert bodies(mail, "bob", "relay", 0) == []
    assert unread(mail, "bob") == 3
    assert len(bodies(mail, "bob", "relay", 3)) == 3
    assert unread(mail, "bob") == 0
    post(mail, "alice", "+relay", "four")
    post(mail, "bob", "+relay", "mine", "mine too")
    assert bodies(mail, "bob", "relay", 2) == ["mine", "mine too"]
    assert unread(mail, "bob") == 1


def test_a_log_that_nobody_read_clears_nothing(mail: Mail) -> None:
    register(mail, "alice", "bob")
    post(mail, "alice", "+relay", "one")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*AGENTMAIL, "log", "--channel", "relay"],
            env=mail.environment("bob"),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert unread(mail, "bob") == 1


def test_looking_at_somebody_else_s_history_moves_no_mark(mail: Mail) -> None:
    register(mail, "alice", "bob")
    post(mail, "alice", "+relay", "one")
    assert bodies(mail, "nobody", "relay") == ["one"]
    mail.run("bob", "log", "--all").ok()
    mail.run("bob", "log").ok()
    assert unread(mail, "bob") == 1
    assert mail.run("bob", "log", "--channel", "nowhere").status == 2


# Waiting for a post


def test_a_post_that_is_there_is_taken_at_once_oldest_first(mail: Mail) -> None:
    register(mail, "alice", "bob")
    post(mail, "alice", "+relay", "one", "two")
    post(mail, "bob", "+relay", "my own")
    for body in ("one", "two"):
        assert mail.run("bob", "wait", "--channel", "relay").ok().out.endswith(f" alice (claimed): {body}\n")
    done = mail.run("bob", "wait", "--channel", "#relay", "--timeout-ms", "1", "--exit-code")
    assert (done.status, done.out) == (124, "No message within 1ms.\n")
    assert unread(mail, "bob") == 0


def test_a_blocked_wait_gets_the_post_when_it_comes_and_mail_does_not_disturb_it(mail: Mail) -> None:
    register(mail, "alice", "bob")
    waiting = mail.start("bob", "wait", "--channel", "relay", "--json")
    mail.wait_until_waiting("bob")
    mail.run("alice", "send", "bob", "mail").ok()
    mail.run("alice", "send", "+relay", "a post").ok()
    got = finish(waiting).ok().json["waited"]
    assert (got["body"], got["channel"], got["from"]) == ("a post", "relay", "alice")
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]
    assert mail.run("bob", "inbox").ok().out.endswith("alice (claimed): mail\n")


def test_two_waits_of_one_agent_get_a_post_each_and_those_of_two_agents_the_same(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")
    waits = [mail.start(name, "wait", "--channel", "relay") for name in ("bob", "bob", "carol")]
    mail.wait_until_waiting("bob", 2)
    mail.wait_until_waiting("carol")
    post(mail, "alice", "+relay", "one", "two")
    out = [finish(wait).ok().out.rpartition(": ")[2] for wait in waits]
    assert sorted(out[:2]) == ["one\n", "two\n"]
    assert out[2] == "one\n"


def test_a_wait_whose_reader_has_gone_leaves_the_post_unread(mail: Mail) -> None:
    register(mail, "alice", "bob")
    waiting = mail.start("bob", "wait", "--channel", "relay")
    mail.wait_until_waiting("bob")
    assert waiting.stdout is not None
    waiting.stdout.close()
    post(mail, "alice", "+relay", "one")
    assert waiting.wait(20) == 1
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]
    assert unread(mail, "bob") == 1
    assert mail.run("bob", "wait", "--channel", "relay").ok().out.endswith(": one\n")


def test_a_killed_wait_is_no_obstacle_for_the_next(mail: Mail) -> None:
    register(mail, "alice", "bob")
    first = mail.start("bob", "wait", "--channel", "relay")
    mail.wait_until_waiting("bob")
    second = mail.start("bob", "wait", "--channel", "relay")
    mail.wait_until_waiting("bob", 2)
    first.kill()
    first.wait()
    post(mail, "alice", "+relay", "one")
    assert finish(second).ok().out.endswith(": one\n")


def test_waiting_where_one_is_no_member_is_refused(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.run("alice", "channel", "join", "front").ok()
    assert "you are not in front" in mail.run("bob", "wait", "--channel", "front").err
    assert "there is no channel 'x'" in mail.run("bob", "wait", "--channel", "x").err
    assert "exclude each other" in mail.run("bob", "wait", "--channel", "relay", "--from", "alice").err
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]


def test_a_wait_ends_quietly_for_who_leaves_meanwhile(mail: Mail) -> None:
    register(mail, "alice", "bob")
    for name in ("alice", "bob"):
        mail.run(name, "channel", "join", "front").ok()
    waiting = mail.start("bob", "wait", "--channel", "front", "--timeout-ms", "1000")
    mail.wait_until_waiting("bob")
    mail.run("bob", "channel", "leave", "front").ok()
    post(mail, "alice", "+front", "not for bob any more")
    assert finish(waiting).ok().out == "No message within 1s.\n"


# Mentions


MEMBERS = [(1, "bob"), (2, "claude-5d00b2"), (3, "a.b"), (4, "x" * 64), (5, "Ann_"), (6, "ann")]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("@bob", [1]),
        ("hello @bob, look", [1]),
        ("hello @bob.", [1]),
        ("(@bob)", [1]),
        ("@bob's and @bob", [1]),
        ("@BOB!", [1]),
        ("**@bob**", [1]),
        ("`@bob`\n@claude-5d00b2:", [1, 2]),
        ("@claude-5d00b2...", [2]),
        ("@bob-", [1]),
        ("@a.b.", [3]),
        ("@a.bc", []),
        ("@" + "x" * 64, [4]),
        ("@" + "x" * 65, []),
        ("@ann_", [5, 6]),
        ("@ann", [6]),
        ("@bobby", []),
        ("@bob.smith", []),
        ("joe@bob", []),
        ("joe@bob.com", []),
        ("joe.x_@bob", []),
        ("é@bob", []),
        ("@ bob", []),
        ("bob", []),
        ("@@bob", [1]),
        ("@", []),
        ("", []),
        ("@bob@bob @bob", [1]),
    ],
)
def test_who_is_named(body: str, named: list[int]) -> None:
    assert mentions(body, MEMBERS) == named


def test_a_mention_is_mail_once_and_no_post_besides(mail: Mail) -> None:
    session = Program(mail, "claude")
    session.fire(START)
    me = session.name()
    register(mail, "bob", "carol")
    done = mail.run("bob", "send", "+relay", f"@{me.upper()} and @{me}: look, @carol; not @bob").ok()
    assert done.out.splitlines()[1] == "- +relay: queued: 2 other members"
    assert [line.partition(":")[0] for line in done.out.splitlines()[2:]] == [f"- {me}", "- carol"]
    text = session.told(PROMPT)
    assert text.count("look, @carol") == 1
    assert "names you in +relay):\n" in text
    assert "+relay: [" not in text
    assert session.told(PROMPT) == ""
    inbox = mail.run("carol", "inbox").ok().out
    assert inbox.count("look, @carol") == 1
    assert "bob (in +relay, claimed): " in inbox
    assert unread(mail, "carol") == 0
    assert mail.run("carol", "wait", "--channel", "relay", "--timeout-ms", "1").ok().out == "No message within 1ms.\n"
    assert unread(mail, "bob") == 0
    assert mail.sql("SELECT count(*) FROM messages") == [(1,)]


def test_a_parked_agent_that_is_named_finds_it_when_it_comes_back(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.run("bob", "park").ok()
    done = mail.run("alice", "send", "+relay", "for @bob").ok()
    assert "- bob: queued: parked for " in done.out
    assert "for @bob" in mail.run("bob", "inbox").ok().out


def test_who_is_named_in_a_channel_that_it_is_not_in_gets_nothing(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.run("alice", "channel", "join", "front").ok()
    mail.run("alice", "send", "+front", "for @bob").ok()
    assert receipts(mail) == []


def test_a_blocked_wait_takes_a_mention_as_mail(mail: Mail) -> None:
    register(mail, "alice", "bob")
    waiting = mail.start("bob", "wait")
    mail.wait_until_waiting("bob")
    done = mail.run("alice", "send", "+relay", "for @bob").ok()
    assert "- bob: injected: its wait took it" in done.out
    assert finish(waiting).ok().out.endswith("alice (in +relay, claimed): for @bob\n")


def test_a_log_shows_a_mention_once(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol")
    mail.run("alice", "send", "+relay", "for @bob and @carol").ok()
    for name in ("alice", "bob", "carol"):
        assert mail.run(name, "log").ok().out.count("for @bob") == 1, name


def test_several_channels_are_told_side_by_side(mail: Mail) -> None:
    session = Program(mail, "claude")
    session.fire(START)
    me = session.name()
    register(mail, "bob")
    for name in (me, "bob"):
        mail.run(None, "channel", "join", "front", "--as", name, "--force").ok()
    post(mail, "bob", "+relay", "in the hub")
    post(mail, "bob", "+front", *(f"front {number}" for number in range(4)))
    text = session.told(PROMPT)
    assert "\n+relay: [" in text
    assert "\n  in the hub\n" in text
    assert "\n+front: 4 new posts, the last by bob " in text
    assert text.index("+relay") < text.index("+front")
    assert session.told(PROMPT) == ""
