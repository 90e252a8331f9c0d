"""The values that operations take and give. All are immutable; all times are Unix milliseconds."""

from __future__ import annotations

from agentmail.values import NamedTuple

EVERYBODY = "all"
HUB = "relay"  # the channel that everybody is always in


class Agent(NamedTuple):
    """A row of the directory: somebody who can be written to."""

    id: int
    name: str
    display: str
    kind: str
    status: str  # running, idle, parked, aborted; expected: mail is held for a name not yet seen
    parent: int | None
    directory: str | None
    session: str | None  # the harness's session id
    process: str | None  # the session's process, as `processes.identify` writes it
    bound: int  # 1: the name belongs to that session; 0: it was only claimed
    hooks: int  # 1: the session's hooks show mail at its next step
    since: int
    active: int
    stops: int
    wake: str | None  # commands, each a JSON list of arguments
    revive: str | None
    autoreply: str | None
    terminal: str | None  # its tmux pane
    synchronous: int  # 1: mid-turn it reaches no step boundary
    woken: int  # when waking or reviving it was last tried
    wake_error: str | None  # why that failed
    reviver: str | None  # the process that is bringing it back
    continued: int  # how often mail has prolonged its turn

    @property
    def live(self) -> bool:
        """Whether its session goes on, as far as the spool knows."""
        return self.status in ("running", "idle")


class Message(NamedTuple):
    """One sent body, as one recipient sees it."""

    id: int
    n: int | None  # its number in the recipient's mailbox; None where there is no single recipient
    sender: str
    to: str
    body: str
    ts: int
    reply_to: int | None
    verified: int  # 1: the sending process was matched to the sender
    redelivered: int  # 1: it may have been seen before
    channel: str | None = None  # where it was posted
    automatic: int = 0  # 1: its sender's autoreply command wrote it


class Receipt(NamedTuple):
    """What became of a message for one recipient, and what is known of the recipient."""

    to: str
    outcome: str  # injected, woken, revived, queued, failed
    error: str | None = None
    status: str | None = None
    since: int | None = None  # when the recipient took that status
    unread: int = 0  # pending besides this message
    waiting: bool = False  # a blocked wait took it
    dropped: tuple[tuple[int, str], ...] = ()  # (id, sender) of each message that made room for this one
    members: int | None = None  # of a channel, besides the sender


class Sent(NamedTuple):
    """What a send did. `id` is None where nothing was stored."""

    id: int | None
    to: str
    receipts: tuple[Receipt, ...]
    repeated: bool = False  # the same --once key was used before


class Stopped(NamedTuple):
    """Why a wait ended without a message."""

    reason: str  # timeout, stopped, idle
    timeout_ms: int
    peer: str | None = None


class Peer(NamedTuple):
    """An agent as `list` shows it."""

    name: str
    display: str
    kind: str
    status: str
    unread: int
    parent: str | None
    active: int
    announced: str | None
    directory: str | None


class Stages(NamedTuple):
    """The life of one receipt; a time is None until the stage is reached."""

    to: str
    n: int | None
    state: str  # pending, claimed, read, handled, dropped
    outcome: str | None
    redelivered: int
    stored: int
    offered: int | None
    read: int | None
    handled: int | None
    dropped: int | None
    answer: int | None  # the id of the recipient's answer


class Announcement(NamedTuple):
    """What an agent said that it works on."""

    text: str
    ts: int


class Channel(NamedTuple):
    """A channel as `channel list` shows it."""

    name: str
    members: int
    joined: int  # 1: the one who asks is a member
    unread: int


class Event(NamedTuple):
    """Somebody came or went."""

    id: int
    name: str
    what: str  # joined, left, died, aborted
    kind: str
    directory: str | None
