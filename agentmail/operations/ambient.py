"""Ambient delivery: what an agent should be told at a moment of its harness, and what it has then been told.

`gather` claims mail and looks at everything else; a front end turns it into text and writes it where the model sees
it; only then do marks move.
"""

from __future__ import annotations

from agentmail.clock import now
from agentmail.locks import Holder
from agentmail.model import Event, Message, Peer
from agentmail.operations import directory, presence
from agentmail.operations.receive import ALL, hush
from agentmail.operations.session import Session
from agentmail.spool import agents, channels, events, mail, settings
from agentmail.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import TracebackType

# The moments at which a harness can be told something.
START, AGAIN, PROMPT, STEP, STOP = "start", "again", "prompt", "step", "stop"
NUDGES = 3  # turns in a row, each firmer (ADR-102, "summary nudge")
WATCHED = 50  # live agents that one delivery looks after, so that its cost does not grow with their number
INLINE = 3  # posts of a channel that are shown whole (ADR-102, "notification tiers")


class Digest(NamedTuple):
    """What is new in a channel."""

    channel: int
    name: str
    new: int
    posts: tuple[Message, ...]  # all of them if they are few, else the last
    read: int  # the member's mark, before
    offered: int

    @property
    def newest(self) -> int:
        """Up to where the marks may move."""
        return self.posts[-1].id


class Ambient:
    """Everything to tell one agent at one moment. Leaving the ``with`` block settles what `told` named."""

    def __init__(self, session: Session, moment: str, holder: Holder | None) -> None:
        db, me = session.spool.db, session.me
        self.me = me.name
        self.moment = moment
        self.announced = bool(agents.announcements(db, me.id))
        self.events: tuple[Event, ...] = events.unheard(db, me.id)
        self.mail = mail.claimed(db, me.id, holder.token) if holder else ()
        self.digests = _digests(session)
        self.dropped = agents.untold_drops(db, me.id)
        self.unhandled = len(mail.unhandled(db, me.id, sender=None, limit=100)) if moment in (START, AGAIN) else 0
        self.received = events.received(db, me.id) if moment == AGAIN else 0
        self.peers: list[Peer] = directory.peers(session.spool, me) if moment == START else []
        self.nudge = _nudge(session) if moment == PROMPT else 0
        self.announced_before: frozenset[int] = frozenset()  # too long to show, and known to be there
        self._session = session
        self._holder = holder
        self._told: tuple[frozenset[int], frozenset[int]] | None = None

    def told(self, messages: frozenset[int], posted: frozenset[int]) -> None:
        """Name the messages of the mailbox and the channels that fitted into the text that was written."""
        self._told = (messages, posted)

    def __enter__(self) -> Ambient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spool, me = self._session.spool, self._session.me
        try:
            with spool.transaction():
                if error is None and self._told is not None:
                    self._settle(*self._told)
                if self._holder:
                    mail.give_back(spool.db, me.id, self._holder.token, perhaps_seen=error is not None)
        finally:
            if self._holder:
                self._holder.release()
        hush(spool, me)

    def _settle(self, messages: frozenset[int], posted: frozenset[int]) -> None:
        db, me = self._session.spool.db, self._session.me
        if self._holder:
            mail.settle(db, me.id, self._holder.token, now(), only=messages)
        shown = len(messages)
        for digest in self.digests:
            if digest.channel not in posted:
                continue
            whole = digest.new == len(digest.posts) and digest.read == digest.offered
            channels.advance(
                db, digest.channel, me.id, offered=digest.newest, read=digest.newest if whole else digest.read
            )
            shown += digest.new
        if self.events:
            events.heard(db, me.id, self.events[-1].id)
        if self.dropped:
            agents.told_of_drops(db, me.id, self.dropped)
        if shown:
            events.count_received(db, me.id, shown)


def gather(session: Session, moment: str) -> Ambient:
    """Claim the agent's mail and look at what else is new."""
    spool, me = session.spool, session.me
    if moment != STEP:
        presence.park_gone(spool, agents.some_live(spool.db, WATCHED))
    if mail.is_empty(spool.db, me.id):
        hush(spool, me)
        return Ambient(session, moment, None)
    holder = Holder(spool.locks)
    try:
        with spool.transaction():
            presence.reap(spool, me.id)
            before = mail.offered(spool.db, me.id)
            mail.claim(spool.db, me.id, holder.token, now=now(), sender=None, limit=ALL)
        found = Ambient(session, moment, holder)
    except BaseException:
        holder.release()
        raise
    found.announced_before = frozenset(before)
    return found


def _digests(session: Session) -> tuple[Digest, ...]:
    db, me = session.spool.db, session.me
    found = []
    for channel, name, offered, read in channels.memberships(db, me.id):
        count = channels.count_news(db, channel, me.id, offered)
        if count:
            shown = count if count <= INLINE else 1
            posts = channels.news(db, channel, me.id, offered, shown, newest=True)
            found.append(Digest(channel, name, count, posts, read, offered))
    return tuple(found)


def _nudge(session: Session) -> int:
    """Count the user's turn; 1, 2, 3 if it is one of those on which a silent agent is asked for a word, else 0."""
    spool, me = session.spool, session.me
    quiet = int(settings.get(spool.db, "nudge"))
    with spool.transaction():
        turn = events.tick(spool.db, me.id)
        if quiet and turn >= quiet + NUDGES - 1:
            events.restart_ticks(spool.db, me.id)
    firmness = turn - quiet + 1
    others = any(agent.id != me.id for agent in agents.live(spool.db))
    return firmness if quiet and 1 <= firmness <= NUDGES and others else 0
