"""The cap against a model of it, and where it meets readers, refusals and foreign writers."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmail.identity import Caller
from agentmail.operations import receive, send, session
from agentmail.spool import Spool, open_spool
from tests.conftest import FOREIGN, Mail, finish
from tests.sessions import register

if TYPE_CHECKING:
    from collections.abc import Iterator

POST = """
INSERT INTO messages (sender, body) SELECT id, ? FROM agents WHERE name = 'alice';
INSERT INTO receipts (message, recipient)
  SELECT (SELECT max(id) FROM messages), id FROM agents WHERE name = 'bob';
"""
COUNTS = st.integers(1, 6)
STEPS = st.one_of(
    st.tuples(st.just("send"), COUNTS),
    st.tuples(st.just("insert"), COUNTS),
    st.tuples(st.just("read"), COUNTS),
    st.tuples(st.just("fail"), COUNTS),
    st.tuples(st.just("die"), COUNTS),
    st.tuples(st.just("wait"), COUNTS),
    st.tuples(st.just("cap"), COUNTS),
)


def insert(path: Path, *bodies: str) -> None:
    """Write as a program would that knows nothing of agentmail."""
    connection = sqlite3.connect(path, timeout=10)
    with connection:
        for body in bodies:
            for statement in POST.strip().split(";\n"):
                connection.execute(statement.rstrip(";"), (body,) if "?" in statement else ())
    connection.close()


class Mailbox:
    """Bob's mailbox, and what should be in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spool: Spool = open_spool(str(path))
        self.alice = session.enter(self.spool, Caller("alice"))
        self.bob = session.enter(self.spool, Caller("bob"))
        self.cap, self.sent, self.untold = 100, 0, 0
        self.pending: list[int] = []
        self.dead: list[int] = []  # claimed by a reader that has died
        self.waits: list[receive.Wait] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            self._bury()
            send.send(self.alice, send.Draft("bob", str(self.sent)))
            self._arrived()

    def insert(self, count: int) -> None:
        for _ in range(count):
            insert(self.path, str(self.sent))
            self._arrived()

    def read(self, count: int) -> None:
        with self._inbox(count) as got:
            assert got.dropped == self.untold
        self.untold = 0

    def fail(self, count: int) -> None:
        with pytest.raises(OSError), self._inbox(count) as got:
            raise OSError
        self._returned([int(message.body) for message in got.messages])

    def die(self, count: int) -> None:
        got = self._inbox(count)
        if got._holder:
            got._holder.release()
        self.dead += [int(message.body) for message in got.messages]

    def wait(self, _: int) -> None:
        self._bury()
        wait = receive.wait(self.bob, asked=0)
        if wait.is_over:
            self._finish(wait, self.pending.pop(0))
        else:
            assert not self.pending
            self.waits.append(wait)

    def set_cap(self, count: int) -> None:
        self.cap = count
        self.spool.db.run("UPDATE settings SET value = :cap WHERE name = 'cap'", cap=count)

    def check(self) -> None:
        rows = self.spool.db.rows
        bodies = (
            "SELECT body, r.n FROM receipts AS r JOIN messages ON id = message WHERE state = 'pending' ORDER BY id"
        )
        assert [(int(body), n) for body, n in rows(bodies)] == [(number, number + 1) for number in self.pending]
        assert rows("SELECT untold FROM agents WHERE name = 'bob'") == [(self.untold,)]
        assert self.spool.db.value("SELECT count(*) FROM waiters") == len(self.waits)
        assert self.spool.db.value("SELECT last_n FROM agents WHERE name = 'bob'") == self.sent

    def close(self) -> None:
        for wait in self.waits:
            wait._cancel()
        self.spool.close()

    def _inbox(self, limit: int) -> receive.Delivery:
        if self.untold or self.pending or self.dead:
            self._bury()
        got = receive.inbox(self.bob, limit=limit)
        expected, self.pending = self.pending[:limit], self.pending[limit:]
        assert [int(message.body) for message in got.messages] == expected
        return got

    def _arrived(self) -> None:
        number, self.sent = self.sent, self.sent + 1
        self._hand_over_or_keep(number)

    def _returned(self, numbers: list[int]) -> None:
        for number in numbers:
            self._hand_over_or_keep(number)

    def _bury(self) -> None:
        """Whoever looks next gives back what the dead had claimed."""
        numbers, self.dead = sorted(self.dead), []
        self._returned(numbers)

    def _hand_over_or_keep(self, number: int) -> None:
        if self.waits:
            self._finish(self.waits.pop(0), number)
            return
        self.pending = sorted([*self.pending, number])
        dropped = max(0, len(self.pending) - self.cap)
        self.untold += dropped
        self.pending = self.pending[dropped:]

    def _finish(self, wait: receive.Wait, number: int) -> None:
        got = wait.result()
        assert isinstance(got, receive.Delivery)
        with got:
            assert [int(message.body) for message in got.messages] == [number]
            assert got.dropped == self.untold
        self.untold = 0


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A spool to copy."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    with patch.dict(os.environ, clean, clear=True):
        directory = tmp_path_factory.mktemp("empty") / "spool"
        mailbox = Mailbox(directory / "spool.db")
        mailbox.spool.db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        mailbox.close()
        yield directory


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=25))
def test_the_mailbox_is_what_the_rules_say_after_any_steps(empty: Path, steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "spool"
        shutil.copytree(empty, path)
        path.chmod(0o700)
        mailbox = Mailbox(path / "spool.db")
        mailbox.set_cap(5)
        for what, count in steps:
            getattr(mailbox, "set_cap" if what == "cap" else what)(count)
            mailbox.check()
        assert mailbox.spool.db.value("PRAGMA integrity_check") == "ok"
        mailbox.close()


@pytest.fixture
def bob(mail: Mail) -> Mail:
    register(mail, "alice", "bob", "carol")
    return mail


def set_rule(mail: Mail, cap: int, overflow: str = "drop-oldest") -> None:
    mail.sql("UPDATE settings SET value = ? WHERE name = 'cap'", cap)
    mail.sql("UPDATE settings SET value = ? WHERE name = 'overflow'", overflow)


def test_two_readers_at_once_tell_of_a_drop_without_losing_the_next(bob: Mail) -> None:
    set_rule(bob, 2)
    insert(bob.spool, *"abcde")
    spool = open_spool(str(bob.spool))
    me = session.enter(spool, Caller("bob"))
    first, second = receive.inbox(me, limit=1), receive.inbox(me, limit=1)
    with first, second:
        pass
    insert(bob.spool, *"fgh")
    assert receive.inbox(me, peek=True).dropped == 1
    spool.close()


@pytest.mark.parametrize("writer", ["python", "agentmail"])
def test_the_oldest_waiter_gets_the_mail_whoever_writes(bob: Mail, writer: str) -> None:
    waiting = []
    for number in range(2):
        waiting.append(bob.start("bob", "wait", "--timeout", "40s", "--json"))
        bob.wait_until_waiting("bob", number + 1)
    for body in ("one", "two"):
        if writer == "python":
            insert(bob.spool, body)
        else:
            bob.send("alice", "bob", body)
    assert [finish(process).ok().json["waited"]["body"] for process in waiting] == ["one", "two"]


def test_a_blocked_wait_sees_a_foreign_write_within_seconds(bob: Mail) -> None:
    waiting = bob.start("bob", "wait", "--timeout", "60s")
    bob.wait_until_waiting("bob")
    time.sleep(0.5)
    insert(bob.spool, "from elsewhere")
    began = time.monotonic()
    assert finish(waiting).ok().out.endswith(": from elsewhere\n")
    assert time.monotonic() - began < 8


def test_a_foreign_writer_does_not_feed_the_dead(bob: Mail) -> None:
    dead = bob.start("bob", "wait")
    bob.wait_until_waiting("bob")
    dead.kill()
    dead.wait()
    insert(bob.spool, "hello")
    assert "hello" in bob.run("bob", "inbox").ok().out


def test_foreign_rows_are_told_and_numbered_like_others(bob: Mail) -> None:
    set_rule(bob, 100)
    insert(bob.spool, *(f"m{number}" for number in range(150)))
    shown = bob.run("bob", "inbox", "--json").ok().json
    assert [item["body"] for item in shown["inbox"]] == [f"m{number}" for number in range(50, 150)]
    assert [item["n"] for item in shown["inbox"]] == list(range(51, 151))
    assert shown["dropped"] == 50
    ids = [int(item["id"]) for item in shown["inbox"]]
    assert ids == sorted(set(ids))
    after = bob.send("alice", "bob", "next")
    assert int(after) > ids[-1]


def test_a_refusal_says_who_and_how_many_and_stores_nothing(bob: Mail) -> None:
    set_rule(bob, 2, "refuse")
    insert(bob.spool, "one", "two")
    done = bob.run("alice", "send", "bob", "three", "--json")
    assert done.status == 1
    [receipt] = done.json["receipts"]
    assert (receipt["to"], receipt["outcome"]) == ("bob", "failed")
    assert receipt["error"].startswith("mailbox full (2 unread)")
    assert bob.sql("SELECT count(*) FROM messages") == [(2,)]
    with pytest.raises(sqlite3.IntegrityError, match="mailbox full"):
        insert(bob.spool, "three")
    assert bob.sql("SELECT count(*) FROM messages") == [(2,)]


def test_a_post_that_names_somebody_with_a_full_mailbox_is_posted(bob: Mail) -> None:
    set_rule(bob, 1, "refuse")
    insert(bob.spool, "one")
    done = bob.run("alice", "send", "+relay", "@bob and @carol: look", "--json").ok()
    outcomes = {receipt["to"]: receipt["outcome"] for receipt in done.json["receipts"]}
    assert outcomes == {"+relay": "queued", "bob": "failed", "carol": "queued"}
    assert "look" in bob.run("bob", "log").ok().out


def test_what_a_dead_reader_gives_back_to_a_full_mailbox_that_refuses_is_kept(bob: Mail) -> None:
    set_rule(bob, 1, "refuse")
    big = json.dumps("x" * 300_000)  # more than a pipe holds
    bob.run("alice", "send", "bob", stdin=big).ok()
    reader = bob.start("bob", "inbox")
    while bob.sql("SELECT state FROM receipts") != [("claimed",)]:
        time.sleep(0.02)
    bob.send("alice", "bob", "accepted, too")
    reader.kill()
    reader.wait()
    found = bob.run("bob", "inbox", "--json").ok().json["inbox"]
    assert [item["body"] for item in found] == [big, "accepted, too"]
