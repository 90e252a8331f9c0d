"""Killed at any instant, or unable to write: nothing is lost, half stored, or read twice unmarked."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from agentmail.spool import open_spool
from tests import workers
from tests.conftest import AGENTMAIL, Mail
from tests.sessions import register

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.workers import Crew

KILLED_WAITS = 100
AT_ONCE = 6
KILLED_WORKERS = 150
KILLED_SENDERS = 60
BROKEN_OUTPUTS = ["closed", "full", "gone", "read-only"]
COMPLAINTS = {
    "closed": "agentmail: cannot write to standard output (bad file descriptor); nothing was consumed\n",
    "full": "agentmail: cannot write to standard output (no space left on device); nothing was consumed\n",
    "gone": "",
    "read-only": "agentmail: cannot write to standard output (bad file descriptor); nothing was consumed\n",
}

WAITED_FOR = """
    SELECT DISTINCT name FROM receipts JOIN agents ON agents.id = recipient WHERE state IN ('pending', 'claimed')
"""
FAULTS = [
    "SELECT id FROM messages WHERE id NOT IN (SELECT message FROM receipts)",
    "SELECT recipient FROM receipts GROUP BY recipient HAVING count(*) <> max(n) OR min(n) <> 1",
    "SELECT 1 FROM receipts AS a JOIN receipts AS b USING (recipient) WHERE b.n = a.n + 1 AND a.message > b.message",
    "SELECT message FROM receipts WHERE (state = 'claimed') <> (holder IS NOT NULL)",
]


@pytest.fixture
def crew(mail: Mail) -> Iterator[Crew]:
    crew = workers.Crew(mail.spool)
    yield crew
    crew.kill()


@pytest.fixture(autouse=True)
def _agents(mail: Mail) -> None:
    register(mail, "alice", "bob", "carol", "dave")
    mail.sql("UPDATE settings SET value = 100000 WHERE name = 'cap'")


def assert_whole(mail: Mail) -> None:
    """What must be true at any instant: seen while nobody can write."""
    spool = open_spool(str(mail.spool))
    with spool.transaction():
        for (name,) in spool.db.rows(WAITED_FOR):
            assert spool.bells.is_ringing(name), f"{name} has mail and its bell is silent"
        for fault in FAULTS:
            assert spool.db.rows(fault) == []
    spool.close()


def assert_nothing_lost(bodies: set[str], sightings: list[tuple[str, bool]]) -> None:
    """`sightings` are (body, redelivered), over all readers."""
    assert {body for body, _ in sightings} == bodies
    unmarked = Counter(body for body, redelivered in sightings if not redelivered)
    assert max(unmarked.values(), default=0) <= 1, "seen twice, and not marked as redelivered"


def printed(path: Path) -> list[tuple[str, bool]]:
    """The messages in what a command wrote as JSON; none in what is cut off."""
    text = path.read_text()
    if not text.endswith("\n"):
        return []
    record = json.loads(text)
    found = [*record.get("inbox", []), record.get("waited")]
    return [(item["body"], "redelivered" in item) for item in found if item]


def drain(mail: Mail) -> list[tuple[str, bool]]:
    found = mail.run("bob", "inbox", "--json").ok().json["inbox"]
    return [(item["body"], "redelivered" in item) for item in found]


def test_a_blocked_wait_killed_around_the_moment_of_its_mail_loses_nothing(
    mail: Mail, crew: Crew, tmp_path: Path
) -> None:
    near, far = workers.CONTEXT.Pipe()
    crew.start(workers.send_on_demand, "alice", "bob", far)
    near.recv()
    outs = [tmp_path / f"out{number}" for number in range(KILLED_WAITS + AT_ONCE)]

    def wait(out: Path) -> subprocess.Popen[bytes]:
        with out.open("wb") as stream:
            return subprocess.Popen([*AGENTMAIL, "wait", "--json"], env=mail.environment("bob"), stdout=stream)

    waiting = [wait(out) for out in outs[:AT_ONCE]]
    mail.wait_until_waiting("bob", AT_ONCE)
    for number in range(KILLED_WAITS):
        near.send((random.uniform(0, 0.01), f"m{number}"))
        time.sleep(random.uniform(0.002, 0.02))
        victim = waiting.pop(0)
        victim.kill()
        victim.wait()
        near.recv()
        waiting.append(wait(outs[AT_ONCE + number]))
    for process in waiting:
        process.kill()
        process.wait()
    assert_whole(mail)
    seen = [sighting for out in outs for sighting in printed(out)]
    assert_nothing_lost({f"m{number}" for number in range(KILLED_WAITS)}, seen + drain(mail))


def test_readers_and_writers_killed_at_random_instants_leave_the_spool_whole(
    mail: Mail, crew: Crew, tmp_path: Path
) -> None:
    over, out = tmp_path / "over", tmp_path / "seen"
    living, killed = [], 0
    for number in range(KILLED_WORKERS):
        if number % 2:
            living.append(crew.start(workers.read, "bob", out, over))
        else:
            living.append(crew.start(workers.write, f"writer{number}", ["bob"], 40))
        if len(living) >= AT_ONCE:
            time.sleep(random.uniform(0, 0.04))
            victim = living.pop(0)
            victim.kill()
            victim.join()
            killed += victim.exitcode == -signal.SIGKILL
            assert_whole(mail)
    crew.kill()
    assert_whole(mail)
    over.touch()
    crew.finish(*(crew.start(workers.read, "bob", out, over) for _ in range(2)))
    seen = [(f"{item.sender} {item.number}", item.redelivered) for item in workers.sightings(out)]
    sent = "SELECT body FROM receipts JOIN messages AS m ON m.id = message JOIN agents AS a ON a.id = recipient"
    bodies = {body for (body,) in mail.sql(f"{sent} WHERE name = 'bob'")}
    print(killed, "killed;", len(bodies), "messages,", len(seen) - len(bodies), "of them seen again")
    assert_nothing_lost(bodies, seen)
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]


def test_a_killed_sender_has_stored_its_mail_for_everybody_or_for_nobody(mail: Mail) -> None:
    commands = [["send", "all"], ["send", "bob"], ["send", "bob", "--await", "--timeout-ms", "0"]]
    sending: list[subprocess.Popen[str]] = []
    for number in range(KILLED_SENDERS):
        sending.append(mail.start("alice", *commands[number % 3], f"m{number}"))
        if len(sending) >= 3:
            time.sleep(random.uniform(0, 0.08))
            sending.pop(0).kill()
            assert_whole(mail)
    for process in sending:
        process.kill()
    for process in mail.started:
        process.communicate()
    assert_whole(mail)
    shares = "SELECT body, count(*) FROM messages JOIN receipts ON message = id GROUP BY id"
    for body, count in mail.sql(shares):
        assert count == (3 if int(body[1:]) % 3 == 0 else 1)
    assert "queued" in mail.run("bob", "send", "alice", "nobody waits any more").ok().out
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]


# Output that cannot be written


def run_into(mail: Mail, sink: str, agent: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a command whose output goes nowhere."""
    closed: tuple[int, int] | None = None
    if sink == "gone":
        closed = os.pipe()
        os.close(closed[0])
    elif sink == "full" and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    target = {"closed": ">&-", "full": "> /dev/full", "gone": "", "read-only": "1< /dev/null"}[sink]
    process = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {target}', "sh", *AGENTMAIL, *words],
        env=mail.environment(agent),
        stdin=subprocess.DEVNULL,
        stdout=closed[1] if closed else None,
        stderr=subprocess.PIPE,
    )
    if closed:
        os.close(closed[1])
    return process


def complaint(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The exit status, and what stderr says."""
    _, err = process.communicate(timeout=40)
    return process.returncode, err.decode()


@pytest.mark.parametrize("sink", BROKEN_OUTPUTS)
@pytest.mark.parametrize("words", [["wait"], ["inbox"], ["wait", "--json"], ["inbox", "--json"]], ids=" ".join)
def test_mail_that_could_not_be_written_out_stays(mail: Mail, sink: str, words: list[str]) -> None:
    mail.send("alice", "bob", "hello")
    assert complaint(run_into(mail, sink, "bob", *words)) == (1, COMPLAINTS[sink])
    assert_whole(mail)
    assert drain(mail) == [("hello", True)]


@pytest.mark.parametrize("sink", BROKEN_OUTPUTS)
def test_mail_that_a_blocked_wait_could_not_write_out_stays(mail: Mail, sink: str) -> None:
    waiting = run_into(mail, sink, "bob", "wait")
    mail.wait_until_waiting("bob")
    mail.send("alice", "bob", "hello")
    assert complaint(waiting) == (1, COMPLAINTS[sink])
    assert drain(mail) == [("hello", True)]


@pytest.mark.parametrize("sink", BROKEN_OUTPUTS)
def test_an_answer_that_could_not_be_written_out_stays(mail: Mail, sink: str) -> None:
    asking = run_into(mail, sink, "bob", "send", "alice", "which port?", "--await", "--json")
    mail.wait_until_waiting("bob")
    mail.run("alice", "reply", "1", "8080").ok()
    assert complaint(asking) == (1, COMPLAINTS[sink])
    assert drain(mail) == [("8080", True)]


@pytest.mark.parametrize("sink", BROKEN_OUTPUTS)
@pytest.mark.parametrize("options", [[], ["--json"]], ids=" ".join)
def test_mail_is_sent_although_its_receipt_could_not_be_written_out(
    mail: Mail, sink: str, options: list[str]
) -> None:
    status, err = complaint(run_into(mail, sink, "alice", "send", "bob", "hello", *options))
    [(sent,)] = mail.sql("SELECT id FROM messages")
    told = COMPLAINTS[sink].replace("nothing was consumed", f"message {sent} is sent, do not send it again")
    assert (status, err) == (0, told)
    assert drain(mail) == [("hello", False)]


@pytest.mark.parametrize("sink", BROKEN_OUTPUTS)
def test_a_failed_send_is_failed_wherever_its_receipt_goes(mail: Mail, sink: str) -> None:
    status, _ = complaint(run_into(mail, sink, "alice", "send", "nobody", "hello"))
    assert status == 1


@pytest.mark.parametrize("sink", BROKEN_OUTPUTS)
def test_who_cannot_show_its_receipt_awaits_nothing(mail: Mail, sink: str) -> None:
    status, _ = complaint(run_into(mail, sink, "bob", "send", "alice", "which port?", "--await", "--timeout-ms", "0"))
    assert status == 1
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]
    assert "queued" in mail.run("alice", "reply", "1", "8080").ok().out
    assert drain(mail) == [("8080", False)]


def test_an_answer_stays_if_the_reader_leaves_after_the_receipt(mail: Mail) -> None:
    asking = mail.start("bob", "send", "alice", "which port?", "--await")
    assert asking.stdout is not None
    assert asking.stdout.readline().startswith("sent ")
    mail.wait_until_waiting("bob")
    asking.stdout.close()
    mail.run("alice", "reply", "1", "8080").ok()
    asking.wait(40)
    assert asking.returncode == 1
    assert drain(mail) == [("8080", True)]


def test_a_slow_reader_of_a_pipe_that_never_blocks_gets_all(mail: Mail) -> None:
    # Some harnesses leave the pipes of their children in that mode.
    big = "x" * 500_000
    mail.run("alice", "send", "bob", stdin=big).ok()
    near, far = os.pipe()
    os.set_blocking(far, False)
    reading = subprocess.Popen(
        [*AGENTMAIL, "wait", "--json"], env=mail.environment("bob"), stdout=far, stderr=subprocess.PIPE
    )
    os.close(far)
    time.sleep(0.5)
    with os.fdopen(near, "rb") as stream:
        got = json.loads(stream.read())
    assert complaint(reading) == (0, "")
    assert got["waited"]["body"] == big
    assert drain(mail) == []


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-"])
def test_our_words_never_go_into_the_spool_in_place_of_a_closed_descriptor(mail: Mail, closed: str) -> None:
    commands: list[list[str]] = [
        ["send", "bob", "hello"],
        ["inbox"],
        ["wait", "--timeout-ms", "1"],
        ["wait", "--nonsense"],
    ]
    script = "\n".join(f"{' '.join([*AGENTMAIL, *words])} {closed}" for words in commands)
    subprocess.run(["sh", "-c", script], env=mail.environment("carol"), check=False, timeout=60, capture_output=True)
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]
    for path in mail.spool.parent.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(word in content for word in (b"agentmail: ", b"message:", b"No message", b"peers:")), path
    assert drain(mail) == [("hello", False)]
