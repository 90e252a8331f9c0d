"""Channels: the hub that everybody is in, and others beside it (ADR-102, "hub and spoke")."""

from __future__ import annotations

from agentmail import locks, names
from agentmail.clock import now
from agentmail.errors import BadInput
from agentmail.locks import Holder
from agentmail.model import HUB, Channel, Message, Stopped
from agentmail.operations import presence
from agentmail.operations.receive import Delivery, Wait
from agentmail.operations.session import Session
from agentmail.spool import Spool, agents, channels, waiters
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from agentmail.model import Agent


def find(spool: Spool, name: str) -> tuple[int, str]:
    """(id, name) of a channel, with or without its mark. Raises `BadInput`."""
    bare = name.strip().lstrip("+#")
    found = channels.by_name(spool.db, bare)
    if found is None:
        known = ", ".join(channel.name for channel in channels.everything(spool.db, None))
        raise BadInput(f"there is no channel {bare!r}; the channels are {known}, 'agentmail channel join' makes one")
    return found


def join(session: Session, name: str) -> str:
    """Become a member from now on; the first makes the channel. Gives its name."""
    bare = names.check(name.strip().lstrip("+#"))
    with session.spool.transaction():
        found = channels.by_name(session.spool.db, bare)
        channel = found[0] if found else channels.create(session.spool.db, bare)
        channels.join(session.spool.db, channel, session.me.id)
    return found[1] if found else bare


def leave(session: Session, name: str) -> str:
    """Leave a channel; the hub cannot be left. Gives its name."""
    channel, known = find(session.spool, name)
    if known == HUB:
        raise BadInput(f"everybody is in {HUB}, always; it cannot be left")
    with session.spool.transaction():
        if not channels.leave(session.spool.db, channel, session.me.id):
            raise BadInput(f"you are not in {known}; see 'agentmail channel list'")
    return known


def everything(spool: Spool, me: Agent | None) -> list[Channel]:
    """All channels."""
    return channels.everything(spool.db, me.id if me else None)


def membership(session: Session, name: str) -> tuple[int, str]:
    """(id, name) of a channel that one is in. Raises `BadInput`."""
    channel, known = find(session.spool, name)
    if channels.marks(session.spool.db, channel, session.me.id) is None:
        raise BadInput(f"you are not in {known}; join it with 'agentmail channel join {known}'")
    return channel, known


def mentions(body: str, members: list[tuple[int, str]]) -> list[int]:
    """The ids of the members that a post names with ``@name``."""
    words = set()
    for position, letter in enumerate(body):
        if letter == "@" and (position == 0 or not (body[position - 1].isalnum() or body[position - 1] == "_")):
            word = body[position + 1 : position + 1 + names.LONGEST + 1]
            length = len(word) - len(word.lstrip(names.LETTERS))
            # A full stop or dash after the name belongs to the sentence, or, rarely, to the name.
            words.update({word[:length].lower(), word[:length].rstrip("._-").lower()})
    return [agent for agent, name in members if name.lower() in words]


def read_log(spool: Spool, name: str, limit: int) -> tuple[Message, ...]:
    """The newest posts of a channel."""
    return channels.posts(spool.db, find(spool, name)[0], limit)


def note_read(spool: Spool, me: Agent, name: str, posts: tuple[Message, ...]) -> None:
    """A member that was shown all its unread posts has read them."""
    channel, _ = find(spool, name)
    marks = channels.marks(spool.db, channel, me.id)
    if marks is None or not posts or posts[-1].id <= marks[1]:
        return
    with spool.transaction():
        unread = channels.news(spool.db, channel, me.id, marks[1], 1)
        if not unread or unread[0].id >= posts[0].id:
            channels.advance(spool.db, channel, me.id, read=posts[-1].id)


class PostDelivery(Delivery):
    """A post; leaving the ``with`` block normally moves the member's marks to it."""

    def __init__(self, session: Session, channel: int, post: Message, holder: Holder) -> None:
        super().__init__(session, (post,), 0, None)
        self._channel = channel
        self._lock = holder

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spool, me = self._session.spool, self._session.me
        try:
            with spool.transaction():
                waiters.leave(spool.db, self._lock.token)
                if error is None:
                    channels.advance(spool.db, self._channel, me.id, read=self.messages[0].id)
        finally:
            self._lock.release()


class PostWait(Wait):
    """Waits for a post in one channel. Of one agent's waits there, only the oldest looks."""

    def __init__(self, session: Session, holder: Holder, timeout_ms: int, channel: int) -> None:
        super().__init__(session, holder, timeout_ms)
        self._channel = channel

    @property
    def is_over(self) -> bool:
        """Whether `result` will give a post without blocking."""
        return self._look() is not None

    def _look(self) -> Delivery | Stopped | None:
        spool, me = self._session.spool, self._session.me
        older = waiters.older_in(spool.db, self._channel, me.id, self._holder.token)
        if any(locks.is_alive(spool.locks, token) for token in older):
            return None
        marks = channels.marks(spool.db, self._channel, me.id)
        found = channels.news(spool.db, self._channel, me.id, marks[1], 1) if marks else ()
        return PostDelivery(self._session, self._channel, found[0], self._holder) if found else None


def wait(session: Session, name: str, asked: float | str | None) -> Wait:
    """Begin to wait for the oldest post of others that one has not read in a channel."""
    spool, me = session.spool, session.me
    channel, _ = membership(session, name)
    holder = Holder(spool.locks)
    try:
        with spool.transaction():
            presence.reap(spool, me.id)
            agents.touch(spool.db, me.id, now())
            timeout = waiters.register(spool.db, me.id, holder.token, asked=asked, channel=channel)
    except BaseException:
        holder.release()
        raise
    return PostWait(session, holder, timeout, channel)
