"""Two agents through sixty user turns: Claude Code, and Codex, which crashes. Everything is told once, at its time.

The script is a table of what happens before a turn; the expectations are written down beside it, not computed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agentmail.hooks.compose import _NUDGES
from tests.conftest import Mail
from tests.hooked import END, PROMPT, START, STEP, STOP, Program, context, send_as

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 60
HINT = "Tell the others what you work on: agentmail status"
BREADCRUMB = re.compile(r"(\d+) messages? reached you before.*?'agentmail log --limit (\d+)'")
# Every hundredth event or so goes through the real command: the answers are the same, and twenty times as slow.
BY_COMMAND = {1, 5, 16, 20, 31, 46}


class Seen(NamedTuple):
    """What the model of the first agent read, at a turn and a moment."""

    turn: int
    moment: int
    text: str


class Stage:
    """The two sessions, and what the first one's model has read so far."""

    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.ada = Program(mail, "claude", AGENTMAIL_AGENT="ada")
        self.cole = Program(mail, "codex", cwd="/", AGENTMAIL_AGENT="cole")
        self.seen: list[Seen] = []
        self.sent: dict[str, int] = {}  # body → turn
        self.turn = 0

    def ada_hears(self, moment: int, **fields: object) -> str:
        by_command = self.turn in BY_COMMAND and moment in (PROMPT, STEP)
        text = context(self.ada.command(moment, **fields).ok().out) if by_command else self.ada.told(moment, **fields)
        if text:
            self.seen.append(Seen(self.turn, moment, text))
        return text

    def cole_sends(self, to: str, body: str) -> None:
        self.cole.send(to, body)
        self.sent[body] = self.turn

    def bob_sends(self, to: str, body: str) -> None:
        send_as(self.mail, "bob", to, body)
        self.sent[body] = self.turn

    def cole_turns(self) -> None:
        """A turn of the other agent's; what it reads is looked at elsewhere."""
        for moment in (PROMPT, STEP, STOP):
            self.cole.fire(moment)

    def log(self, *words: str) -> None:
        self.mail.run(None, "log", *words, "--as", "ada", "--force").ok()


def play(stage: Stage) -> None:
    """All of the script."""
    stage.ada_hears(START)
    stage.cole.fire(START)
    for turn in range(1, TURNS + 1):
        stage.turn = turn
        BEFORE.get(turn, _nothing)(stage)
        stage.ada_hears(PROMPT, prompt=f"turn {turn}")
        if turn % 3 == 0:  # some turns call tools
            DURING.get(turn, _nothing)(stage)
            stage.ada_hears(STEP)
            stage.ada_hears(STEP)
        while stage.ada_hears(STOP):
            pass
        if turn < 45 and turn % 4 == 0:
            stage.cole_turns()


def _nothing(stage: Stage) -> None:
    pass


def _four_posts(stage: Stage) -> None:
    for number in range(4):
        stage.cole_sends("+relay", f"post 9.{number}")


def _three_posts(stage: Stage) -> None:
    for number in range(3):
        stage.cole_sends("+relay", f"post 20.{number}")


def _own_post(stage: Stage) -> None:
    stage.ada.send("+relay", "ada's own post")
    stage.ada.send("cole", "ada's own mail")


def _compaction(stage: Stage) -> None:
    assert stage.ada_hears(START, source="compact")


def _resume(stage: Stage) -> None:
    stage.ada.fire(END)
    stage.cole_sends("ada", "mail while away 40")
    stage.ada_hears(START, source="resume")


def _crash(stage: Stage) -> None:
    stage.cole_sends("ada", "last words 45")
    stage.cole.end()


def _announce(stage: Stage) -> None:
    stage.mail.run(None, "status", "the login tests", "--as", "ada", "--force").ok()


BEFORE: dict[int, Callable[[Stage], None]] = {
    2: lambda stage: stage.cole_sends("ada", "direct mail 2"),
    5: lambda stage: stage.cole_sends("+relay", "post 5"),
    7: lambda stage: stage.cole_sends("+relay", "@ada, mention 7"),
    9: _four_posts,
    20: _three_posts,
    25: _compaction,
    26: _compaction,
    28: lambda stage: stage.log("--limit", "100"),
    29: _compaction,
    33: lambda stage: stage.bob_sends("ada", "direct mail 33"),
    36: _announce,
    37: _own_post,
    40: _resume,
    45: _crash,
    50: lambda stage: stage.bob_sends("ada", "direct mail 50"),
}
DURING: dict[int, Callable[[Stage], None]] = {
    3: lambda stage: stage.cole_sends("ada", "mid-turn mail 3"),
    12: lambda stage: stage.cole_sends("all", "to everybody 12"),
    42: lambda stage: stage.bob_sends("+relay", "mid-turn post 42"),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    mail = Mail(tmp_path_factory.mktemp("sixty"))
    stage = Stage(mail)
    play(stage)
    stage.ada.end()
    return stage


def told(stage: Stage, words: str) -> list[tuple[int, int]]:
    """(turn, moment) of every delivery with these words, as often as they stand there."""
    return [(one.turn, one.moment) for one in stage.seen for _ in range(one.text.count(words))]


def test_every_message_is_seen_once_and_at_its_time(stage: Stage) -> None:
    when = {
        "direct mail 2": (2, PROMPT),
        "mid-turn mail 3": (3, STEP),
        "post 5": (5, PROMPT),
        "mention 7": (7, PROMPT),
        "to everybody 12": (12, STEP),
        "direct mail 33": (33, PROMPT),
        "mail while away 40": (40, START),
        "mid-turn post 42": (42, STEP),
        "last words 45": (45, PROMPT),
        "direct mail 50": (50, PROMPT),
        **{f"post 20.{number}": (20, PROMPT) for number in range(3)},
    }
    assert {body: told(stage, f"  {body}\n") or told(stage, body) for body in when} == {
        body: [place] for body, place in when.items()
    }
    assert set(stage.sent) == {"@ada, mention 7" if body == "mention 7" else body for body in when} | {
        f"post 9.{number}" for number in range(4)
    }


def test_four_posts_are_a_badge_with_the_last_line_once(stage: Stage) -> None:
    assert told(stage, "+relay: 4 new posts, the last by cole") == [(9, PROMPT)]
    assert told(stage, ": post 9.3\n") == [(9, PROMPT)]
    assert [told(stage, f"post 9.{number}") for number in range(3)] == [[], [], []]


def test_nudges_come_at_their_turns_and_nowhere_else(stage: Stage) -> None:
    """15, 16, 17, and again 32, 33, 34; the post before turn 37 counts as the beginning, so 51, 52, 53 follow.

    At those turns bob, who is no session's but has just written, is still there.
    """
    nudges = [told(stage, words) for words in _NUDGES]
    assert nudges == [
        [(15, PROMPT), (32, PROMPT), (51, PROMPT)],
        [(16, PROMPT), (33, PROMPT), (52, PROMPT)],
        [(17, PROMPT), (34, PROMPT), (53, PROMPT)],
    ]
    assert len(told(stage, 'agentmail send +relay "…"')) == 9


def test_a_compaction_leaves_a_breadcrumb_that_counts_right_until_the_log_is_read(stage: Stage) -> None:
    found = [
        (one.turn, *map(int, BREADCRUMB.findall(one.text)[0])) for one in stage.seen if BREADCRUMB.search(one.text)
    ]
    # Seen by turn 25: mail 2, 3, 12 and mention 7, posts 5, 9 (4), 20 (3): twelve, and nothing of one's own between.
    # The log before turn 28 clears it: silence at 29. By turn 40: mail 33; the mail while away comes with it.
    assert found == [(25, 12, 12), (26, 12, 12), (40, 1, 4)]  # two of one's own came between
    texts = [one.text for one in stage.seen if one.turn in (25, 26, 40) and one.moment == START]
    assert all(text.startswith("agentmail: you are ada.") for text in texts)
    assert "reached you before" not in "".join(one.text for one in stage.seen if one.turn == 29)


def test_arrivals_and_the_crash_are_told_once(stage: Stage) -> None:
    assert told(stage, "cole has joined") == [(1, PROMPT)]
    assert told(stage, "cole has ended without a word.") == [(45, PROMPT)]
    assert told(stage, "cole has left") == []
    assert told(stage, "ada has") == []


def test_one_s_own_name_is_in_every_delivery_and_own_words_in_none(stage: Stage) -> None:
    assert stage.seen
    assert all(one.text.startswith("agentmail: you are ada.") for one in stage.seen)
    assert told(stage, "ada's own") == []


def test_the_hint_is_there_until_the_announcement(stage: Stage) -> None:
    before = [HINT in one.text for one in stage.seen if one.turn < 36]
    after = [HINT in one.text for one in stage.seen if one.turn >= 36]
    assert len(before) > 10
    assert all(before)
    assert len(after) > 5
    assert not any(after)


def test_most_turns_hear_nothing(stage: Stage) -> None:
    heard = {one.turn for one in stage.seen}
    assert {4, 6, 8, 10, 11, 13, 14, 18, 19, 21, 22, 23, 24, 27, 30, 31, 35, 38, 39, 41, 43, 44, 46}.isdisjoint(heard)
    assert len(stage.seen) == len({(one.turn, one.moment, one.text) for one in stage.seen})


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_who_is_alone_is_never_nudged(mail: Mail, kind: str) -> None:
    session = Program(mail, kind)
    session.fire(START)
    if kind == "claude":
        session.fire("SubagentStart")  # one's own sub-agents are no company
    other = Program(mail, "codex", session="other", cwd="/")
    other.fire(START)
    other.fire(END)
    assert "has left" in session.told(PROMPT)
    assert [session.told(PROMPT) for _ in range(40)] == [""] * 40


def test_a_post_just_before_the_nudge_starts_the_count_anew(mail: Mail) -> None:
    session, other = Program(mail, "claude"), Program(mail, "codex", session="other", cwd="/")
    session.fire(START)
    other.fire(START)
    session.fire(PROMPT)
    assert [session.told(PROMPT) for _ in range(13)] == [""] * 13
    session.send("+relay", "still here")
    assert [bool(session.told(PROMPT)) for _ in range(20)] == [False] * 14 + [True] * 3 + [False] * 3


def test_nudges_come_as_often_as_it_is_set_and_not_at_all_at_0(mail: Mail) -> None:
    session, other = Program(mail, "claude"), Program(mail, "codex", session="other", cwd="/")
    session.fire(START)
    other.fire(START)
    session.fire(PROMPT)
    mail.sql("UPDATE settings SET value = 2 WHERE name = 'nudge'")
    assert [bool(session.told(PROMPT)) for _ in range(9)] == [True, True, True, False] * 2 + [True]
    mail.sql("UPDATE settings SET value = 0 WHERE name = 'nudge'")
    assert [session.told(PROMPT) for _ in range(20)] == [""] * 20


def test_a_breadcrumb_s_command_shows_all_that_it_counts(mail: Mail) -> None:
    session = Program(mail, "claude")
    session.fire(START)
    me = session.name()
    for number in range(5):
        send_as(mail, "bob", me, f"mail {number}")
        session.send("bob", f"mine {number}")
        send_as(mail, "bob", "+relay", f"post {number}")
        session.fire(PROMPT)
    count, limit = BREADCRUMB.findall(session.told(START, source="compact"))[0]
    assert (count, limit) == ("10", "15")
    half = mail.run(None, "log", "--limit", "7", "--as", me, "--force").ok().out
    assert half.count("bob → ") == 5
    count, limit = BREADCRUMB.findall(session.told(START, source="resume"))[0]
    assert (count, limit) == ("5", "7")
    shown = mail.run(None, "log", "--limit", limit, "--as", me, "--force").ok().out
    assert shown.count("bob → ") == 5
    assert "reached you before" not in session.told(START, source="compact")


def test_a_breadcrumb_leaves_with_the_channel_s_log_too(mail: Mail) -> None:
    session = Program(mail, "claude")
    session.fire(START)
    send_as(mail, "bob", "+relay", "a post")
    assert "  a post\n" in session.told(PROMPT)
    assert "1 message reached you before" in session.told(START, source="compact")
    mail.run(None, "log", "--channel", "relay", "--as", session.name(), "--force").ok()
    assert "reached you before" not in session.told(START, source="compact")
