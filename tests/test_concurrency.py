"""Many at one mailbox: every message is read once and in order, the oldest waiter first, and no wake is lost."""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from tests import workers
from tests.conftest import Mail, eventually, finish
from tests.sessions import register, wait_until_it_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.workers import Crew, Seen

WRITERS, MESSAGES, READERS = 8, 500, 4
ROUNDS = 300  # of a wait and a send that meet


@pytest.fixture
def crew(mail: Mail) -> Iterator[Crew]:
    crew = workers.Crew(mail.spool)
    yield crew
    crew.kill()


@pytest.fixture(autouse=True)
def _bob(mail: Mail) -> None:
    register(mail, "alice", "bob")
    mail.sql("UPDATE settings SET value = 100000 WHERE name = 'cap'")


def assert_read_once_in_order(readers: list[list[Seen]], writers: int, messages: int) -> None:
    for seen in readers:
        last: dict[str, int] = {}
        for message in seen:
            assert last.get(message.sender, -1) < message.number, "out of order"
            last[message.sender] = message.number
    times = Counter(message for seen in readers for message in seen)
    assert not any(message.redelivered for message in times)
    assert set(times.values()) == {1}
    assert len(times) == writers * messages


def test_four_readers_of_one_mailbox_share_the_mail_of_eight_writers(mail: Mail, crew: Crew, tmp_path: Path) -> None:
    over, outs = tmp_path / "over", [tmp_path / f"reader{number}" for number in range(READERS)]
    readers = [crew.start(workers.read, "bob", out, over) for out in outs]
    writers = [crew.start(workers.write, f"writer{number}", ["bob"], MESSAGES) for number in range(WRITERS)]
    crew.finish(*writers)
    over.touch()
    crew.finish(*readers)
    assert_read_once_in_order([workers.sightings(out) for out in outs], WRITERS, MESSAGES)
    assert mail.sql("SELECT state, count(*) FROM receipts GROUP BY 1") == [("read", WRITERS * MESSAGES)]
    assert mail.sql("SELECT count(*) FROM waiters") == [(0,)]
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]


def test_the_same_with_a_command_for_each_message(mail: Mail) -> None:
    writers, messages, readers = 3, 15, 2
    seen: list[list[Seen]] = [[] for _ in range(readers)]
    over = Event()

    def write(name: str) -> None:
        for number in range(messages):
            mail.run(name, "send", "bob", f"{name} {number}").ok()

    def read(into: list[Seen]) -> None:
        while True:
            is_last = over.is_set()
            words = random.choice([["wait", "--timeout", "300ms"], ["inbox"], ["inbox", "--limit", "2"]])
            got = mail.run("bob", *words, "--json").ok().json
            found = got["inbox"] if "inbox" in got else [got["waited"]] if got["waited"] else []
            if is_last and not found:
                return
            for item in found:
                sender, number = item["body"].split()
                into.append(workers.Seen(sender, int(number), item.get("redelivered", False)))

    reading = [Thread(target=read, args=(into,)) for into in seen]
    writing = [Thread(target=write, args=(f"writer{number}",)) for number in range(writers)]
    for thread in reading + writing:
        thread.start()
    for thread in writing:
        thread.join()
    over.set()
    for thread in reading:
        thread.join()
    assert_read_once_in_order(seen, writers, messages)


def test_waiters_get_the_mail_in_the_order_in_which_they_began(mail: Mail, crew: Crew) -> None:
    waiting = []
    for number in range(6):
        waiting.append(mail.start("bob", "wait"))
        mail.wait_until_waiting("bob", number + 1)
    crew.finish(crew.start(workers.write, "alice", ["bob"], 6))
    assert [finish(process).ok().out.rpartition(" ")[2] for process in waiting] == [f"{n}\n" for n in range(6)]


def test_waiters_that_began_at_once_never_get_the_same(mail: Mail, crew: Crew) -> None:
    waiting = [mail.start("bob", "wait", "--json") for _ in range(8)]
    crew.finish(*(crew.start(workers.write, f"writer{number}", ["bob"], 4) for number in range(4)))
    got = [finish(process).ok().json["waited"] for process in waiting]
    rest = mail.run("bob", "inbox", "--json").ok().json["inbox"]
    assert len({item["id"] for item in got + rest}) == len(got + rest) == 16
    assert not any("redelivered" in item for item in got + rest)


def test_nothing_is_lost_between_looking_and_blocking(mail: Mail, crew: Crew) -> None:
    bell = f"{mail.spool}-bells/bob"
    if not workers.can_watch(bell):
        pytest.skip("bells cannot be watched here, so each wake is by polling")
    reader, writer = workers.CONTEXT.Pipe(), workers.CONTEXT.Pipe()
    crew.start(workers.wait_on_demand, "bob", reader[1])
    crew.start(workers.send_on_demand, "alice", "bob", writer[1])
    for end in (reader[0], writer[0]):
        assert end.poll(30)
        end.recv()
    for number in range(ROUNDS):
        reader[0].send(random.uniform(0, 0.006))
        writer[0].send((random.uniform(0, 0.006), f"m{number}"))
        assert reader[0].poll(workers.LONG / 4), f"round {number}: the wake was lost"
        assert reader[0].recv()[0] == f"m{number}"
        writer[0].recv()


def test_a_command_that_begins_to_wait_around_a_send_gets_the_mail(mail: Mail, crew: Crew) -> None:
    orders, far = workers.CONTEXT.Pipe()
    crew.start(workers.send_on_demand, "alice", "bob", far)
    orders.recv()
    for number in range(25):
        waiting = mail.start("bob", "wait", "--timeout", "20s")
        orders.send((random.uniform(0.02, 0.12), f"m{number}"))
        assert finish(waiting).ok().out.endswith(f": m{number}\n")
        orders.recv()


def test_a_send_to_one_of_twenty_wakes_one_process(mail: Mail, crew: Crew) -> None:
    names = [f"agent{number}" for number in range(20)]
    register(mail, *names)
    if sys.platform != "linux" or not workers.can_watch(f"{mail.spool}-bells/bob"):
        pytest.skip("bells cannot be watched here, or wakes not be counted")
    pipes = {name: workers.CONTEXT.Pipe() for name in names}
    pids = {name: crew.start(workers.wait_on_demand, name, far).pid for name, (_, far) in pipes.items()}
    for near, _ in pipes.values():
        near.recv()
        near.send(0)
    for name in names:
        mail.wait_until_waiting(name)

    def wakes() -> dict[str, int]:
        """How often each process has gone to sleep so far."""
        status = {name: Path(f"/proc/{pid}/status").read_text() for name, pid in pids.items()}
        count = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.M)
        return {name: int(count.findall(text)[0]) for name, text in status.items()}

    def is_quiet() -> bool:
        before = wakes()
        time.sleep(0.3)
        return wakes() == before

    eventually(is_quiet)
    before = wakes()
    mail.send("alice", "agent7", "hi")
    assert pipes["agent7"][0].recv()[0] == "hi"
    time.sleep(0.5)
    after = wakes()
    assert {name for name in names if after[name] != before[name]} == {"agent7"}


def test_a_waiter_gets_what_a_killed_inbox_was_writing(mail: Mail) -> None:
    big = "x" * 300_000  # more than a pipe holds, and nobody reads it
    mail.run("alice", "send", "bob", stdin=big).ok()
    reader = mail.start("bob", "inbox")
    eventually(lambda: mail.sql("SELECT state FROM receipts") == [("claimed",)])
    waiting = mail.start("bob", "wait", "--json", "--timeout", "40s")
    mail.wait_until_waiting("bob")
    reader.kill()
    reader.wait()
    got = finish(waiting).ok().json["waited"]
    assert (got["body"], got["redelivered"]) == (big, True)


def test_the_next_waiter_gets_what_a_stopped_one_gives_back(mail: Mail) -> None:
    first = mail.start("bob", "wait", "--timeout", "40s")
    mail.wait_until_waiting("bob")
    wait_until_it_blocks(first)
    second = mail.start("bob", "wait", "--timeout", "40s")
    mail.wait_until_waiting("bob", 2)
    first.terminate()
    assert finish(first).status == 143
    mail.send("alice", "bob", "hi")
    assert finish(second).ok().out.endswith("alice (claimed): hi\n")
