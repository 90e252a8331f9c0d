"""Processes that send and read by the operations themselves: a command for each message takes 70 ms.

They are forked from a server that has loaded all they need, so that hundreds of them may be killed in seconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from agentmail import doorbell
from agentmail.identity import Caller
from agentmail.model import Stopped
from agentmail.operations import receive, send, session
from agentmail.spool import open_spool
from tests.conftest import FOREIGN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

    from agentmail.operations.receive import Delivery

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.workers"])
LONG = 60.0


class Seen(NamedTuple):
    """One message as a reader wrote it down."""

    sender: str
    number: int
    redelivered: bool


class Crew:
    """The worker processes of a test."""

    def __init__(self, spool: Path) -> None:
        self.spool = str(spool)
        self.all: list[ForkServerProcess] = []

    def start(self, work: Callable[..., None], *arguments: object) -> ForkServerProcess:
        process = CONTEXT.Process(target=_run, args=(work, self.spool, *arguments))
        process.start()
        self.all.append(process)
        return process

    def finish(self, *processes: ForkServerProcess, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        for process in processes:
            process.join(max(0, deadline - time.monotonic()))
            assert process.exitcode == 0, process

    def kill(self) -> None:
        for process in self.all:
            process.kill()
        for process in self.all:
            process.join()


def enter(spool: str, name: str) -> session.Session:
    return session.enter(open_spool(spool), Caller(name))


def write(spool: str, name: str, to: list[str], count: int) -> None:
    """Send `name 0`, `name 1`, … to each of `to` in turn."""
    me = enter(spool, name)
    for number in range(count):
        sent, _ = send.send(me, send.Draft(to[number % len(to)], f"{name} {number}"))
        assert sent.id, sent


def read(spool: str, name: str, out: Path, over: Path) -> None:
    """Take mail by `wait` and `inbox` at random until `over` exists and there is no more."""
    me = enter(spool, name)
    fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while True:
        is_last = over.exists()
        got = _take(me)
        if got is None:
            if is_last:
                return
            continue
        with got:
            for message in got.messages:
                line = json.dumps([*message.body.split(), bool(message.redelivered)]) + "\n"
                os.write(fd, line.encode())


def sightings(out: Path) -> list[Seen]:
    """What a reader wrote down."""
    lines = out.read_text().splitlines() if out.exists() else []
    return [Seen(sender, int(number), redelivered) for sender, number, redelivered in map(json.loads, lines)]


def wait_on_demand(spool: str, name: str, orders: Connection[Any, Any]) -> None:
    """For each delay that comes, wait for a message so much later; give its text and how long that took.

    A notice that is lost shows: this process does not look without one.
    """
    watch_only()
    me = enter(spool, name)
    orders.send(None)
    for delay in _received(orders):
        spin(delay)
        began = time.monotonic()
        got = receive.wait(me, asked=LONG * 500).result()
        took = time.monotonic() - began
        if isinstance(got, Stopped):
            orders.send((None, took))
            continue
        with got:
            orders.send((got.messages[0].body, took))


def send_on_demand(spool: str, name: str, to: str, orders: Connection[Any, Any]) -> None:
    """For each (delay, text) that comes, send it so much later."""
    me = enter(spool, name)
    orders.send(None)
    for delay, text in _received(orders):
        spin(delay)
        send.send(me, send.Draft(to, text))
        orders.send(None)


def watch_only() -> None:
    """Never poll, where bells can be watched."""
    doorbell.POLL_SECONDS = doorbell.LONGEST_POLL_SECONDS = LONG


def can_watch(bell: str) -> bool:
    """Whether bells can be watched here: a system may have no means, or its watches may be used up."""
    with doorbell.open_doorbell(bell) as opened:
        return type(opened) is not doorbell.Doorbell


def spin(seconds: float) -> None:
    """Sleep, but exactly."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _received(orders: Connection[Any, Any]) -> Iterator[Any]:
    while True:
        try:
            yield orders.recv()
        except EOFError:
            return


def _take(me: session.Session) -> Delivery | None:
    if random.random() < 0.5:
        got = receive.wait(me, asked=200.0).result()
        return None if isinstance(got, Stopped) else got
    delivery = receive.inbox(me, limit=random.choice([receive.ALL, 1, 3]))
    return delivery if delivery.messages else None


def _run(work: Callable[..., None], *arguments: Any) -> None:
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            del os.environ[name]
    random.seed()
    work(*arguments)
