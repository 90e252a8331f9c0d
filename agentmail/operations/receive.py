"""``wait`` and ``inbox``: taking mail so that none is lost and none is read twice unknowingly."""

from __future__ import annotations

import time

from agentmail import locks, processes
from agentmail.clock import now
from agentmail.locks import Holder
from agentmail.model import Agent, Message, Stopped
from agentmail.operations import presence
from agentmail.operations.session import Session
from agentmail.spool import Spool, agents, mail, waiters
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from agentmail.doorbell import Doorbell

ALL = -1


class Delivery:
    """Claimed messages. Leaving the ``with`` block normally means that they were fully handed over: they are read.

    After an exception they are pending again, and say that they may have been seen.
    """

    def __init__(self, session: Session, messages: tuple[Message, ...], dropped: int, holder: Holder | None) -> None:
        self.messages = messages
        self.dropped = dropped  # lost to the cap, not told before
        self._session = session
        self._holder = holder

    def __enter__(self) -> Delivery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._holder is None:
            return
        spool, me = self._session.spool, self._session.me
        try:
            with spool.transaction():
                if error is None:
                    mail.settle(spool.db, me.id, self._holder.token, now())
                    if self.dropped:
                        agents.told_of_drops(spool.db, me.id, self.dropped)
                else:
                    mail.give_back(spool.db, me.id, self._holder.token, perhaps_seen=True)
        finally:
            self._holder.release()
        hush(spool, me)


class Wait:
    """A registered waiter. `result` blocks; an exception there, or in a ``with`` block, gives everything back."""

    def __init__(
        self,
        session: Session,
        holder: Holder,
        timeout_ms: int,
        *,
        peer: Agent | None = None,
        until_it_stops: bool = False,
        answers: int | None = None,
        first: tuple[Message, ...] = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self._session = session
        self._holder = holder
        self.peer = peer  # whose mail is awaited, as it was when the wait began
        self._until_it_stops = until_it_stops
        self._answers = answers
        self._first = first
        self._changes = -1
        self._others: list[str] = []  # other readers that may die with claims on this mailbox

    @property
    def is_over(self) -> bool:
        """Whether `result` will give a message without blocking."""
        return bool(self._first)

    def __enter__(self) -> Wait:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._cancel()

    def result(self) -> Delivery | Stopped:
        """The message, or why there is none."""
        if self._first:
            return self._deliver(self._first, agents.untold_drops(self._session.spool.db, self._session.me.id))
        with self:
            return self._block()

    def _block(self) -> Delivery | Stopped:
        from agentmail.doorbell import open_doorbell  # a wait that blocks can afford what a quick one cannot

        spool, me = self._session.spool, self._session.me
        deadline = time.monotonic() + self.timeout_ms / 1000 if self.timeout_ms else None
        bell = open_doorbell(spool.bells.path(me.name))
        # Closing an inotify takes the kernel 5 to 15 ms: that must not come between the mail and its reader.
        self._holder.when_released(bell.close)
        self._watch_peer(bell)
        look = True
        while True:
            if look or self._has_changed():
                found = self._look()
                if found:
                    return found
            if self._reap_others() or self._peer_is_gone():
                look = True  # our own writing does not show as a change
                continue
            left = deadline - time.monotonic() if deadline is not None else float("inf")
            if left <= 0:
                return self._end("timeout")
            look = bell.wait(left)

    def _has_changed(self) -> bool:
        """Whether anybody else has written since this was last asked."""
        before, self._changes = self._changes, self._session.spool.db.changed()
        return before != self._changes

    def _look(self) -> Delivery | Stopped | None:
        spool, me = self._session.spool, self._session.me
        messages, dropped = mail.claimed_and_dropped(spool.db, me.id, self._holder.token)
        if messages:
            return self._deliver(messages, dropped)
        if self.peer and self._until_it_stops and agents.by_id(spool.db, self.peer.id).stops != self.peer.stops:
            return self._end("stopped")
        self._others = [token for _, token in waiters.holders(spool.db, me.id) if token != self._holder.token]
        return None

    def _deliver(self, messages: tuple[Message, ...], dropped: int) -> Delivery:
        spool, me = self._session.spool, self._session.me
        if self.peer and self._answers and messages[0].reply_to != self._answers:
            with spool.transaction():
                token = self._holder.token
                if mail.exchange(spool.db, me.id, token, sender=self.peer.id, answers=self._answers, now=now()):
                    messages = mail.claimed(spool.db, me.id, token)
        return Delivery(self._session, messages, dropped, self._holder)

    def _end(self, reason: str) -> Delivery | Stopped:
        """Leave, unless a message came at the last moment."""
        spool, me = self._session.spool, self._session.me
        with spool.transaction():
            waiters.leave(spool.db, self._holder.token)
            messages, dropped = mail.claimed_and_dropped(spool.db, me.id, self._holder.token)
        if messages:
            return self._deliver(messages, dropped)
        self._holder.release()
        hush(spool, me)
        return Stopped(reason, self.timeout_ms, self.peer.name if self.peer else None)

    def _cancel(self) -> None:
        spool = self._session.spool
        try:
            with spool.transaction():
                waiters.leave(spool.db, self._holder.token)
                mail.give_back(spool.db, self._session.me.id, self._holder.token, perhaps_seen=False)
        finally:
            self._holder.release()

    def _reap_others(self) -> bool:
        """Whether mail was claimed by a reader that has died since: it comes back, perhaps to this very waiter."""
        spool = self._session.spool
        if all(locks.is_alive(spool.locks, token) for token in self._others):
            return False
        self._others = []
        with spool.transaction():
            presence.reap(spool, self._session.me.id)
        return True

    def _watch_peer(self, bell: Doorbell) -> None:
        if self.peer and self._until_it_stops and self.peer.process and processes.is_alive(self.peer.process):
            bell.watch_process(processes.pid_of(self.peer.process))

    def _peer_is_gone(self) -> bool:
        if self.peer is None or not self._until_it_stops:
            return False
        return presence.park_gone(self._session.spool, [agents.by_id(self._session.spool.db, self.peer.id)])


def wait(session: Session, *, sender: Agent | None = None, asked: float | str | None = None) -> Wait:
    """Begin to wait for one message; `asked` is the timeout in milliseconds as the caller wrote it."""
    spool, me = session.spool, session.me
    holder = Holder(spool.locks)
    try:
        with spool.transaction():
            presence.reap(spool, me.id)
            agents.touch(spool.db, me.id, now())
            timeout = waiters.register(
                spool.db, me.id, holder.token, asked=asked, sender=sender.id if sender else None
            )
            first = mail.claimed(spool.db, me.id, holder.token)
    except BaseException:
        holder.release()
        raise
    return Wait(session, holder, timeout, peer=sender, first=first)


def wait_for_idle(session: Session, peer: Agent, asked: float | str | None) -> Wait | Stopped:
    """Begin to wait until `peer` ends its turn or its session; nothing to wait for if it is in none."""
    spool, me = session.spool, session.me
    holder = Holder(spool.locks)
    try:
        with spool.transaction():
            peer = presence.refreshed(spool, [agents.by_id(spool.db, peer.id)])[0]
            if peer.status != "running":
                holder.release()
                return Stopped("idle", 0, peer.name)
            # Registered as one who waits for mail of the far future, so that the peer's stop strikes this bell.
            timeout = waiters.register(
                spool.db, me.id, holder.token, asked=asked, sender=peer.id, after=(1 << 63) - 1
            )
    except BaseException:
        holder.release()
        raise
    return Wait(session, holder, timeout, peer=peer, until_it_stops=True)


def rest_of(session: Session, peer: Agent) -> str:
    """What became of a peer that has ended its turn, or its session."""
    status = agents.by_id(session.spool.db, peer.id).status
    return "idle" if status == "running" else status  # it is in its next turn by now


def inbox(
    session: Session,
    *,
    peek: bool = False,
    sender: Agent | None = None,
    limit: int = ALL,
    unhandled: bool = False,
) -> Delivery:
    """All pending messages at once, oldest first; with `unhandled` also those read but not answered yet.

    `peek` consumes nothing.
    """
    spool, me = session.spool, session.me
    only = sender.id if sender else None
    earlier = mail.unhandled(spool.db, me.id, sender=only, limit=limit) if unhandled else ()
    rest = limit if limit < 0 else max(0, limit - len(earlier))
    if peek:
        if waiters.holders(spool.db, me.id):
            with spool.transaction():
                presence.reap(spool, me.id)
        pending = mail.pending(spool.db, me.id, sender=only, limit=rest)
        return Delivery(session, earlier + pending, agents.untold_drops(spool.db, me.id), None)
    if mail.is_empty(spool.db, me.id) and not agents.untold_drops(spool.db, me.id):
        hush(spool, me)
        return Delivery(session, earlier, 0, None)
    holder = Holder(spool.locks)
    try:
        with spool.transaction():
            presence.reap(spool, me.id)  # before the drops are counted: what comes back may push others out
            agents.touch(spool.db, me.id, now())
            mail.claim(spool.db, me.id, holder.token, now=now(), sender=only, limit=rest)
            messages = mail.claimed(spool.db, me.id, holder.token)
            dropped = agents.untold_drops(spool.db, me.id)
    except BaseException:
        holder.release()
        raise
    return Delivery(session, earlier + messages, dropped, holder)


def find_ring(spool: Spool, me: Agent, peer: Agent) -> tuple[str, ...]:
    """The names of a ring of agents each of which waits for the next, from `me` by `peer` to `me`; else empty."""
    path = [peer.id]
    trail: dict[int, tuple[str, ...]] = {peer.id: (peer.name,)}
    while path:
        current = path.pop()
        for following, holder in waiters.awaited_by(spool.db, current):
            if not locks.is_alive(spool.locks, holder):
                continue
            if following == me.id:
                return (me.name, *trail[current], me.name)
            if following not in trail:
                trail[following] = (*trail[current], agents.by_id(spool.db, following).name)
                path.append(following)
    return ()


def hush(spool: Spool, me: Agent) -> None:
    """Silence the bell if the mailbox is empty: in a transaction of its own, so that no sender is between."""
    if spool.bells.is_ringing(me.name):
        with spool.transaction():
            if mail.is_empty(spool.db, me.id):
                spool.bells.silence(me.name)
