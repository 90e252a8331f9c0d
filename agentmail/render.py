"""Results as text. Whatever comes from other agents is shown, never obeyed, and cannot pass for another message."""

from __future__ import annotations

from agentmail import durations
from agentmail.clock import now
from agentmail.model import Announcement, Channel, Message, Peer, Receipt, Sent, Stages, Stopped
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Joiners that scripts and emoji need; alone they move nothing.
_HARMLESS = frozenset("\t\u200c\u200d")


def safe(text: str) -> str:
    """`text` with its control, bidi and invisible characters written out; line ends stay."""
    if text.isprintable():
        return text
    return "".join(letter if _is_plain(letter) else _escape(letter) for letter in text)


def block(text: str, indent: str = "  ") -> str:
    """`text` made safe, its further lines indented."""
    return safe(text).replace("\n", "\n" + indent)


def message(item: Message) -> str:
    """``[id] sender (tags): body``, as `wait` prints it."""
    return f"[{item.id}] {item.sender}{_tags(item)}: {block(item.body)}"


def inbox(messages: Sequence[Message], dropped: int) -> str:
    """The bullets of `inbox`, with the number of each message in the mailbox."""
    lines = [drops(dropped)] if dropped else []
    if not messages:
        return "\n".join([*lines, "Inbox empty."])
    lines.append(f"{count(len(messages), 'message')}:")
    lines += [f"- {item.n}. {message(item)}" for item in messages]
    return "\n".join(lines)


def drops(number: int) -> str:
    """What to say of mail that the cap pushed out."""
    return f"{count(number, 'older message')} dropped unread: the mailbox was full."


def sent(result: Sent) -> str:
    """``sent <id>`` and a bullet for each recipient."""
    if result.id is None and not result.receipts:
        return "No live peers."
    head = "not sent" if result.id is None else f"sent {result.id}" + (" before" if result.repeated else "")
    return "\n".join([head, *(f"- {receipt(item)}" for item in result.receipts)])


def receipt(item: Receipt) -> str:
    """One recipient's line: the outcome, and what is known of the recipient."""
    line = f"{block(item.to)}: {item.outcome}"
    if item.error:
        line += f" — {block(item.error)}"
    elif item.members is not None:
        line += f": {count(item.members, 'other member')}"
    elif item.status:
        line += f": {_circumstances(item)}"
    for dropped, sender in item.dropped:
        line += f"\n  its mailbox was full: [{dropped}] from {sender} was dropped unread"
    return line


def stopped(result: Stopped, verb: str = "message") -> str:
    """Why a wait brought nothing."""
    if result.reason == "stopped":
        return f"No {verb}: {result.peer} has stopped without answering."
    return f"No {verb} within {durations.show(result.timeout_ms)}."


def peers(items: Sequence[Peer]) -> str:
    """The bullets of `list`."""
    if not items:
        return "No other agents."
    lines = [f"{count(len(items), 'peer')}:"]
    for item in items:
        facts = [f"{item.unread} unread"]
        if item.parent:
            facts.append(f"child of {item.parent}")
        facts.append(f"active {durations.ago(now() - item.active)}")
        line = f"- {item.name} [{block(item.display)} · {item.kind} · {item.status}] {', '.join(facts)}"
        lines.append(line + (f": {block(item.announced)}" if item.announced else ""))
    if any(item.status == "parked" for item in items):
        lines.append("Parked agents are revived when messaged.")
    return "\n".join(lines)


def quote(item: Message) -> str:
    """The message that an answer goes to, quoted."""
    return f"[{item.id}] {item.sender}:\n  > " + safe(item.body).replace("\n", "\n  > ")


def stages(item: Message, receipts: Iterable[Stages]) -> str:
    """A message with the life of each receipt."""
    lines = [message(item)]
    for one in receipts:
        number = "" if one.n is None else f" (number {one.n} there)"
        lines.append(f"- {one.to}: {one.outcome or 'queued'}, now {one.state}{number}")
        lines += [f"    {name:<9} {_time(at)}{note}" for name, at, note in _reached(one)]
    return "\n".join(lines)


def log(messages: Sequence[Message]) -> str:
    """Messages with their times, oldest first."""
    if not messages:
        return "No messages."
    return "\n".join(
        f"{_time(item.ts)} [{item.id}] {item.sender} → {item.to}{_tags(item)}: {block(item.body)}"
        for item in messages
    )


def announcements(items: Sequence[Announcement]) -> str:
    """What an agent has said that it works on."""
    if not items:
        return "Nothing announced yet."
    return "\n".join(f"{_time(item.ts)} {block(item.text)}" for item in items)


def _is_plain(letter: str) -> bool:
    if letter.isprintable() or letter in _HARMLESS or letter == "\n":
        return True
    # Unusual spaces are no trouble; the separators and controls among them are.
    return letter.isspace() and letter >= "\xa0" and letter not in "\u2028\u2029"


def _escape(letter: str) -> str:
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def channels(items: Sequence[Channel]) -> str:
    """The bullets of `channel list`."""
    lines = []
    for item in items:
        mine = f", joined, {item.unread} unread" if item.joined else ""
        lines.append(f"- {item.name}: {count(item.members, 'member')}{mine}")
    return "\n".join(lines)


def _tags(item: Message) -> str:
    tags = []
    if item.channel and not item.to.startswith("+"):
        tags.append(f"in +{item.channel}")
    if not item.verified:
        tags.append("claimed")
    if item.automatic:
        tags.append("automatic")
    if item.redelivered:
        tags.append("redelivered")
    if item.reply_to:
        tags.append(f"reply to {item.reply_to}")
    return f" ({', '.join(tags)})" if tags else ""


def _circumstances(item: Receipt) -> str:
    if item.waiting:
        return "its wait took it"
    if item.outcome == "injected":
        return "mid-turn, its hooks show it at the next step"
    if item.status == "expected":
        return f"held until {item.to} registers"
    since = durations.show_age(now() - (item.since or now()))
    was = "was " if item.outcome in ("woken", "revived") else ""
    return f"{was}{item.status} for {since}, {item.unread} unread"


def _reached(item: Stages) -> list[tuple[str, int, str]]:
    answer = f" by [{item.answer}]" if item.answer else ""
    reached = (
        ("stored", item.stored, ""),
        ("offered", item.offered, " (more than once)" if item.redelivered else ""),
        ("read", item.read, ""),
        ("answered" if item.answer else "acked", item.handled, answer),
        ("dropped", item.dropped, " unread"),
    )
    return [(name, at, note) for name, at, note in reached if at is not None]


def _time(ms: int) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))


def count(number: int, noun: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
