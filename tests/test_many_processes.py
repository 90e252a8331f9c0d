"""Many writers and readers at once, and readers that are killed: all is read, in order, and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import AGENTMAIL, Mail, finish

if TYPE_CHECKING:
    from pathlib import Path

WRITERS, MESSAGES, READERS = 8, 500, 4
KILLS, AT_ONCE = 300, 6

WRITER = """
import sys
from agentmail.identity import Caller
from agentmail.operations import send, session
from agentmail.spool import open_spool
path, name, readers, count = sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
me = session.enter(open_spool(path), Caller(name))
for number in range(count):
    sent, _ = send.send(me, send.Draft(readers[number % len(readers)], f"{name} {number}"))
    assert sent.id, sent
"""

READER = """
import random, sys
from agentmail.identity import Caller
from agentmail.model import Stopped
from agentmail.operations import receive, session
from agentmail.spool import open_spool
path, name, expected = sys.argv[1], sys.argv[2], int(sys.argv[3])
me = session.enter(open_spool(path), Caller(name))
read = 0
while read < expected:
    if random.random() < 0.5:
        got = receive.wait(me, asked=2000.0).result()
        if isinstance(got, Stopped):
            continue
    else:
        got = receive.inbox(me, limit=random.choice([-1, 1, 3]))
    with got:
        for message in got.messages:
            print(message.body, message.redelivered, flush=True)
    read += len(got.messages)
"""


def worker(mail: Mail, script: str, *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(mail.spool), *words],
        env=mail.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    mail.started.append(process)
    return process


def test_every_message_of_eight_writers_is_read_once_and_in_order_by_four_readers(mail: Mail) -> None:
    names = [f"reader{number}" for number in range(READERS)]
    mail.register(*names)
    mail.run(None, "config", "cap", "100000").ok()
    share = WRITERS * MESSAGES // READERS
    readers = [worker(mail, READER, name, str(share)) for name in names]
    writers = [worker(mail, WRITER, f"writer{n}", ",".join(names), str(MESSAGES)) for n in range(WRITERS)]
    for writer in writers:
        done = finish(writer, 120)
        assert done.status == 0, done.err
    seen: Counter[str] = Counter()
    for reader in readers:
        done = finish(reader, 120)
        assert done.status == 0, done.err
        last: dict[str, int] = {}
        for line in done.out.splitlines():
            writer_name, number, redelivered = line.split()
            assert redelivered == "0"
            assert last.get(writer_name, -1) < int(number), "out of order"
            last[writer_name] = int(number)
            seen[f"{writer_name} {number}"] += 1
    assert len(seen) == WRITERS * MESSAGES
    assert set(seen.values()) == {1}
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]


def test_a_reader_killed_at_any_instant_loses_nothing(mail: Mail, tmp_path: Path) -> None:
    mail.register("bob")
    mail.run(None, "config", "cap", "100000").ok()
    bodies = [f"m{number}" for number in range(KILLS)]
    writing = worker(mail, WRITER, "alice", "bob", str(KILLS))
    assert finish(writing, 60).status == 0
    random.seed(7)
    outputs: list[Path] = []
    started: list[subprocess.Popen[bytes]] = []
    for round_ in range(KILLS):
        outputs.append(tmp_path / f"out{round_}")
        words = ["wait", "--timeout-ms", "1"] if round_ % 2 else ["inbox", "--limit", "2"]
        with outputs[-1].open("wb") as out:
            reader = subprocess.Popen([*AGENTMAIL, *words, "--json"], env=mail.environment("bob"), stdout=out)
        started.append(reader)
        if len(started) >= AT_ONCE:
            time.sleep(random.uniform(0, 0.06))
            victim = started.pop(0)
            victim.send_signal(signal.SIGKILL)
            victim.wait()
    for reader in started:
        reader.kill()
        reader.wait()
    while True:
        outputs.append(tmp_path / f"last{len(outputs)}")
        done = mail.run("bob", "inbox", "--json").ok()
        outputs[-1].write_text(done.out)
        if not done.json["inbox"]:
            break
    times: Counter[str] = Counter()
    unmarked: Counter[str] = Counter()
    for path in outputs:
        for message in _messages(path.read_text()):
            times[message["body"]] += 1
            unmarked[message["body"]] += not message.get("redelivered")
    assert {f"alice {body[1:]}" for body in bodies} == set(times)
    assert max(unmarked.values()) <= 1, "seen twice, and not marked as redelivered"
    assert mail.sql("SELECT count(*) FROM receipts WHERE state IN ('pending', 'claimed')") == [(0,)]
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]


def _messages(text: str) -> list[dict[str, Any]]:
    if not text.endswith("\n"):
        return []  # killed before it had written it all
    record = json.loads(text)
    return [item for item in [*record.get("inbox", []), record.get("waited")] if item]


@pytest.mark.parametrize("words", [["inbox"], ["wait"]])
@pytest.mark.parametrize("sink", [">&-", "> /dev/full", "| head -0"])
def test_what_could_not_be_written_out_is_still_there(mail: Mail, words: list[str], sink: str) -> None:
    if sink == "> /dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    mail.register("bob")
    mail.send("alice", "bob", "hello")
    command = " ".join([*AGENTMAIL, *words])
    subprocess.run(["sh", "-c", f"{command} {sink}"], env=mail.environment("bob"), check=False, timeout=30)
    kept = mail.run("bob", "inbox").ok().out
    assert re.search(r"alice \(claimed, redelivered\): hello", kept)
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]
