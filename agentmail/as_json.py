"""Results as JSON: one object on one line, ids as strings (JavaScript loses digits above 2^53)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentmail.render import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmail.model import Channel, Message, Peer, Receipt, Stages


def dump(op: str, **parts: Any) -> str:
    """The object of an operation; parts that are None do not apply, but `waited` may be null."""
    record = {"op": op, **{key.rstrip("_"): value for key, value in parts.items()}}
    record = {key: value for key, value in record.items() if value is not None or key == "waited"}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    # JSON leaves C1 controls and bidi overrides as they are; a terminal would obey them.
    return text if text.isprintable() else "".join(_escaped(letter) for letter in text)


def message(item: Message) -> dict[str, Any]:
    """A message; keys that do not apply are absent."""
    record: dict[str, Any] = {"id": str(item.id), "n": item.n, "from": item.sender, "to": item.to}
    record.update(body=item.body, ts=item.ts)
    record.update(replyTo=str(item.reply_to) if item.reply_to else None)
    record.update(channel=item.channel)
    record.update(automatic=bool(item.automatic) or None)
    record.update(claimed=not item.verified or None, redelivered=bool(item.redelivered) or None)
    return _present(record)


def messages(items: Iterable[Message]) -> list[dict[str, Any]]:
    """Several messages."""
    return [message(item) for item in items]


def receipt(item: Receipt) -> dict[str, Any]:
    """``{to, outcome, error?}``, and the ids of mail that was pushed out."""
    dropped = [{"id": str(dropped), "from": sender} for dropped, sender in item.dropped]
    return _present({"to": item.to, "outcome": item.outcome, "error": item.error, "dropped": dropped or None})


def peer(item: Peer) -> dict[str, Any]:
    """An agent of the directory."""
    return _present(
        {
            "id": item.name,
            "displayName": item.display,
            "kind": item.kind,
            "status": item.status,
            "unread": item.unread,
            "parent": item.parent,
            "lastActivity": item.active,
            "announced": item.announced,
            "directory": item.directory,
        }
    )


def channel(item: Channel) -> dict[str, Any]:
    """A channel; unread only of one that the caller is in."""
    unread = item.unread if item.joined else None
    return _present({"name": item.name, "members": item.members, "joined": bool(item.joined), "unread": unread})


def stages(item: Stages) -> dict[str, Any]:
    """The life of one receipt."""
    record = {key: value for key, value in item._asdict().items() if key != "redelivered"}
    record["answer"] = str(item.answer) if item.answer else None
    record["redelivered"] = bool(item.redelivered) or None
    return _present(record)


def _present(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}


def _escaped(letter: str) -> str:
    if letter == "\t" or safe(letter) == letter:
        return letter
    code = ord(letter)
    if code >= 0x10000:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
