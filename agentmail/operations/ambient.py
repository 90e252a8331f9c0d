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
from agentmail.spool import Spool, agents, channels, events, mail, settings
from agentmail.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import TracebackType

    from agentmail.model import Agent

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
    unread_before: bool  # older ones were counted, but not shown
    lines: int  # so many of the newest lines of its log hold all that is unread

    @property
    def newest(self) -> int:
        """Up to where the marks may move."""
        return self.posts[-1].id


class Ambient(NamedTuple):
    """Everything to tell one agent at one moment."""

    me: str
    moment: str
    announced: bool  # it has said what it works on
    events: tuple[Event, ...]
    mail: tuple[Message, ...]
    presented: frozenset[int]  # of these, what it knows of already: it was too long to show
    digests: tuple[Digest, ...]
    dropped: int
    unhandled: int
    received: int  # messages that a compaction may have taken away
    lines: int  # so many of the newest lines of its log hold them
    peers: tuple[Peer, ...]
    nudge: int  # 1, 2, 3: ever firmer


class Told(NamedTuple):
    """What a text told."""

    messages: frozenset[int] = frozenset()  # shown whole
    presented: frozenset[int] = frozenset()  # too long: only named
    posts: frozenset[int] = frozenset()  # the channels whose new posts were shown whole
    badges: frozenset[int] = frozenset()  # the channels whose new posts were counted


class Delivery:
    """What was `found`. Leaving the ``with`` block settles what `tell` named, unless it is left by an exception."""

    def __init__(self, session: Session, found: Ambient, holder: Holder | None) -> None:
        self.found = found
        self._session = session
        self._holder = holder
        self._told: Told | None = None

    def tell(self, told: Told) -> None:
        """The text was written where the model sees it, and told that."""
        self._told = told

    def __enter__(self) -> Delivery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spool, me = self._session.spool, self._session.me
        try:
            with spool.transaction():
                if error is None and self._told is not None:
                    self._settle(self._told)
                if self._holder:
                    mail.give_back(spool.db, me.id, self._holder.token, perhaps_seen=error is not None)
        finally:
            if self._holder:
                self._holder.release()
        hush(spool, me)

    def _settle(self, told: Told) -> None:
        db, me, found = self._session.spool.db, self._session.me, self.found
        if self._holder:
            mail.present(db, me.id, told.messages | told.presented, now())
            mail.settle(db, me.id, self._holder.token, now(), only=told.messages)
        shown = len(told.messages)
        for digest in found.digests:
            if digest.channel not in told.posts | told.badges:
                continue
            whole = digest.channel in told.posts and not digest.unread_before
            channels.advance(db, digest.channel, me.id, offered=digest.newest, read=digest.newest if whole else 0)
            shown += digest.new
        if found.events:
            events.heard(db, me.id, found.events[-1].id)
        if found.dropped:
            agents.told_of_drops(db, me.id, found.dropped)
        if shown:
            events.count_received(db, me.id, shown)


def gather(session: Session, moment: str) -> Delivery:
    """Claim the agent's mail and look at what else is new."""
    spool, me = session.spool, session.me
    if moment != STEP:
        presence.park_gone(spool, agents.some_live(spool.db, WATCHED))
    if mail.is_empty(spool.db, me.id):
        hush(spool, me)
        return Delivery(session, _look(session, moment, (), frozenset()), None)
    holder = Holder(spool.locks)
    try:
        with spool.transaction():
            presence.reap(spool, me.id)
            presented = frozenset(mail.offered(spool.db, me.id))
            mail.claim(spool.db, me.id, holder.token, now=None, sender=None, limit=ALL)
        found = _look(session, moment, mail.claimed(spool.db, me.id, holder.token), presented)
    except BaseException:
        holder.release()
        raise
    return Delivery(session, found, holder)


def _look(session: Session, moment: str, claimed: tuple[Message, ...], presented: frozenset[int]) -> Ambient:
    spool, me = session.spool, session.me
    begins = moment in (START, AGAIN)
    digests = _digests(session)
    received = events.received(spool.db, me.id) if moment == AGAIN else 0
    unseen = len(claimed) + sum(digest.new for digest in digests)  # in its log, too, and perhaps before those
    return Ambient(
        me=me.name,
        moment=moment,
        announced=agents.has_announced(spool.db, me.id),
        events=events.unheard(spool.db, me.id) if moment != STOP else (),  # nothing to go on with a turn for
        mail=claimed,
        presented=presented,
        digests=digests,
        dropped=agents.untold_drops(spool.db, me.id),
        unhandled=len(mail.unhandled(spool.db, me.id, sender=None, limit=100)) if begins else 0,
        received=received,
        lines=_lines(spool, me, received + unseen) if received else 0,
        peers=tuple(directory.peers(spool, me)) if moment == START else (),
        nudge=_nudge(session) if moment == PROMPT else 0,
    )


def _lines(spool: Spool, me: Agent, received: int) -> int:
    from agentmail.operations import history  # only after a compaction

    return history.depth(spool, me, received)


def _digests(session: Session) -> tuple[Digest, ...]:
    db, me = session.spool.db, session.me
    found = []
    for channel, name, offered, read in channels.memberships(db, me.id):
        count = channels.count_news(db, channel, me.id, offered)
        if count:
            shown = count if count <= INLINE else 1
            posts = channels.news(db, channel, me.id, offered, shown, newest=True)
            unread_before = channels.count_news(db, channel, me.id, read) > count
            lines = channels.count_since_unread(db, channel, me.id, read)
            found.append(Digest(channel, name, count, posts, unread_before, lines))
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
    if not quiet or not 1 <= firmness <= NUDGES:
        return 0
    others = any(me.id not in (agent.id, agent.parent) for agent in agents.live(spool.db))
    return firmness if others else 0
