"""History goes when it is old; unread mail stays unless one insists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmail.spool.mail import EPOCH, LOW_BITS
from tests.conftest import finish

if TYPE_CHECKING:
    from tests.conftest import Mail

DAY = 86_400_000


def count(mail: Mail, table: str = "messages") -> int:
    return int(mail.sql(f"SELECT count(*) FROM {table}")[0][0])


def age(mail: Mail, days: int) -> None:
    """Make every message so many days older, as its id and its time tell."""
    mail.sql("UPDATE receipts SET message = message - ?", (days * DAY) << LOW_BITS)
    mail.sql("UPDATE messages SET id = id - ?, ts = ts - ?", (days * DAY) << LOW_BITS, days * DAY)


@pytest.fixture
def history(mail: Mail) -> Mail:
    """Three messages that were read and one that was not, all 40 days old."""
    mail.register("bob")
    for body in ("one", "two", "three"):
        mail.send("alice", "bob", body)
    mail.run("bob", "inbox").ok()
    mail.send("alice", "bob", "unread")
    age(mail, 40)
    return mail


def test_an_id_tells_its_time(mail: Mail) -> None:
    mail.register("bob")
    mail.send("alice", "bob", "hi")
    [(message, ts)] = mail.sql("SELECT id, ts FROM messages")
    assert (message >> LOW_BITS) + EPOCH == ts


def test_what_was_read_long_ago_goes_with_its_receipts(history: Mail) -> None:
    assert "removed 3 messages" in history.run(None, "cleanup").ok().out
    assert count(history) == count(history, "receipts") == 1


def test_unread_mail_stays_and_is_still_delivered(history: Mail) -> None:
    history.run(None, "cleanup").ok()
    assert "unread" in history.run("bob", "inbox").ok().out


def test_unread_mail_goes_if_asked_for(history: Mail) -> None:
    history.run(None, "cleanup", "--unread").ok()
    assert count(history) == 0


def test_young_history_stays(history: Mail) -> None:
    assert "removed 0 messages" in history.run(None, "cleanup", "--older-than", "41d").ok().out
    assert count(history) == 4


def test_the_setting_says_how_long_history_is_kept(history: Mail) -> None:
    history.run(None, "config", "keep_days", "50").ok()
    history.run(None, "cleanup").ok()
    assert count(history) == 4


def test_only_the_newest_messages_are_kept_if_a_number_is_given(mail: Mail) -> None:
    mail.register("bob")
    for number in range(5):
        mail.send("alice", "bob", f"m{number}")
    mail.run("bob", "inbox").ok()
    mail.run(None, "cleanup", "--max-messages", "2").ok()
    assert [row[0] for row in mail.sql("SELECT body FROM messages ORDER BY id")] == ["m3", "m4"]


def test_a_dry_run_removes_nothing_and_says_what_would_go(history: Mail) -> None:
    assert history.run(None, "cleanup", "--dry-run", "--json").ok().json["removed"]["messages"] == 3
    assert count(history) == 4


def test_several_at_once_remove_each_message_once(history: Mail) -> None:
    started = [history.start(None, "cleanup", "--json") for _ in range(4)]
    import json

    removed = [json.loads(finish(process).out)["removed"]["messages"] for process in started]
    assert sum(removed) == 3
    assert count(history) == 1


def test_it_works_with_an_empty_environment_as_cron_gives(history: Mail) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "agentmail", "cleanup", "--spool", str(history.spool)],
        env={"PYTHONPATH": history.environment()["PYTHONPATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert count(history) == 1


def test_ids_go_on_rising_after_everything_was_removed(mail: Mail) -> None:
    mail.register("bob")
    before = int(mail.send("alice", "bob", "hi"))
    mail.run(None, "cleanup", "--older-than", "0s", "--unread").ok()
    mail.sql("UPDATE sqlite_sequence SET seq = seq + (1 << 40) WHERE name = 'messages'")
    assert int(mail.send("alice", "bob", "hi")) > before + (1 << 40)


def test_vacuum_gives_the_space_back(mail: Mail) -> None:
    mail.register("bob")
    mail.run("alice", "send", "bob", stdin="x" * 900_000).ok()
    mail.run("bob", "inbox").ok()
    mail.run(None, "cleanup", "--max-messages", "0", "--vacuum").ok()
    assert mail.spool.stat().st_size < 500_000


def test_bells_and_locks_of_the_dead_go(mail: Mail) -> None:
    mail.register("alice", "bob")
    mail.run("alice", "abort", "bob").ok()
    bells, locks = mail.spool.parent / "spool.db-bells", mail.spool.parent / "spool.db-locks"
    locks.mkdir(exist_ok=True)
    stale = locks / "99999-deadbeef"
    stale.touch()
    import os

    os.utime(stale, (1, 1))
    waiting = mail.start("alice", "wait")
    mail.wait_until_waiting("alice")
    mail.run(None, "cleanup").ok()
    assert not stale.exists()
    assert [bell.name for bell in bells.iterdir()] == ["alice"]
    assert len(list(locks.iterdir())) == 1  # the one of the wait
    waiting.terminate()
