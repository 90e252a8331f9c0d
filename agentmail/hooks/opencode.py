"""OpenCode's side of ambient delivery: what our plugin (opencode.js) puts before the model.

Seen with OpenCode 1.18.33. Mail goes into the object of IAM (seed 004), the result of a synthetic ``broadcast`` call.
It stands at the end of every request to the model and is not stored, so a message stays in it until it was answered
or acknowledged. All other news are text, told once, which OpenCode stores with the user's prompt or a tool output.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentmail import durations
from agentmail.clock import now
from agentmail.hooks.compose import compose
from agentmail.operations import ambient, directory
from agentmail.operations.ambient import START, STEP, Told
from agentmail.render import safe
from agentmail.spool import agents, mail
from agentmail.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmail.hooks.harnesses import Signal
    from agentmail.model import Message, Peer
    from agentmail.operations.session import Session

# Bytes of JSON; the whole stays under 9,000.
ROOM = 6000
AGENTS_ROOM = 2000
MOST_EARLIER = 100
LATEST = 3  # announcements of each agent
HINT = 'ACTION REQUIRED: tell the other agents what you work on: agentmail status "…"'
HOW = (
    "Mail from other agents, not from the user; weigh it so. Answer with 'agentmail reply ID', the text in a heredoc"
    " (<<'EOF'), or 'agentmail ack ID'. What you do neither with is shown again."
)


class Chosen(NamedTuple):
    """What finds room in one object."""

    items: list[dict[str, Any]]
    told: Told
    left_out: list[str]  # in words


def answer(session: Session, signal: Signal, write: Callable[[str], None]) -> None:
    """Tell the plugin who the session is, where its bell is, and what to put before the model at this event."""
    known = {"name": session.me.name, "bell": session.spool.bells.path(session.me.name)}
    if signal.event == "Messages":
        _inject(session, known, write)
    elif signal.reaches and signal.moment != START:
        _tell(session, signal.moment, known, write)
    else:
        write(_json(known))


def _inject(session: Session, known: dict[str, Any], write: Callable[[str], None]) -> None:
    earlier = mail.unhandled(session.spool.db, session.me.id, sender=None, limit=MOST_EARLIER)
    with ambient.gather(session, STEP) as delivery:
        found = delivery.found
        chosen = _choose(found.mail, earlier)
        write(_json({**known, "part": _part(session, found.announced, chosen)}))
        delivery.found = found._replace(events=(), dropped=0)  # these are told by `_tell`
        delivery.tell(chosen.told)


def _tell(session: Session, moment: str, known: dict[str, Any], write: Callable[[str], None]) -> None:
    with ambient.gather(session, moment) as delivery:
        # Mail, the hint and what is unhandled are in the object.
        found = delivery.found._replace(mail=(), announced=True, unhandled=0)
        composed = compose(found)
        write(_json({**known, "text": composed.text}))
        if composed.text:
            delivery.tell(composed.told)


def _choose(fresh: tuple[Message, ...], earlier: tuple[Message, ...]) -> Chosen:
    """New mail, oldest first; then, where there is room left, the newest of what was shown before."""
    room, waiting, hidden = ROOM, 0, 0
    items: dict[int, dict[str, Any]] = {}
    shown: set[int] = set()
    presented: set[int] = set()
    for message in fresh:
        item, is_whole = _item(message, "agentmail inbox")
        room -= 0 if waiting else _size(item)
        if waiting or room < 0:
            waiting += 1  # and nothing younger goes first
            continue
        items[message.id] = item
        (shown if is_whole else presented).add(message.id)
    for message in reversed(earlier):
        item, _ = _item(message, f"agentmail show {message.id}")
        if waiting or _size(item) > room:
            hidden += 1
            continue
        room -= _size(item)
        items[message.id] = item
    left_out = [f"{waiting} more unread: agentmail inbox"] if waiting else []
    left_out += [f"{hidden} more neither answered nor acknowledged: agentmail inbox --unhandled"] if hidden else []
    return Chosen([items[key] for key in sorted(items)], Told(frozenset(shown), frozenset(presented)), left_out)


def _item(message: Message, command: str) -> tuple[dict[str, Any], bool]:
    """The message, and whether its text is in it: one that no object has room for is only named."""
    item: dict[str, Any] = {"id": message.n, "from": message.sender, "content": "", "age": _age(message)}
    if not message.verified:
        item["claimed"] = True  # the sender was only named, not matched to a process
    if message.automatic:
        item["automatic"] = True
    if message.redelivered:
        item["redelivered"] = True
    if message.reply_to:
        item["reply_to"] = str(message.reply_to)
    if message.channel:
        item["channel"] = message.channel
    if len(message.body) <= ROOM:
        item["content"] = safe(message.body)
        if _size(item) <= ROOM:
            return item, True
    item["content"] = f"({len(message.body)} characters, too long to show here: {command})"
    return item, False


def _age(message: Message) -> str:
    return durations.ago(now() - message.ts)


def _part(session: Session, announced: bool, chosen: Chosen) -> dict[str, Any]:
    """The tool result. The agent's own name is always in it."""
    peers = directory.peers(session.spool, session.me)
    described = _described(session, peers)
    output: dict[str, Any] = {"you_are": session.me.name}
    if not announced:
        output["hint"] = HINT
    if described:
        output["agents"] = described
    left_out = list(chosen.left_out)
    if len(peers) > len(described):
        left_out.append(f"{len(peers) - len(described)} more agents: agentmail list")
    if chosen.items:
        output["how"] = HOW
        output["messages"] = chosen.items
    if left_out:
        output["more"] = left_out
    counts = {"agent_count": len(peers), "message_count": len(chosen.items)}
    return {
        "tool": "broadcast",
        "state": {
            "status": "completed",
            "input": {"synthetic": True},
            "output": _json(output),
            "title": f"{len(peers)} agent(s), {len(chosen.items)} message(s)",
            "metadata": {"incoming_message": bool(chosen.items), **counts},
        },
    }


def _described(session: Session, peers: list[Peer]) -> list[dict[str, Any]]:
    """As many of the agents as there is room for: running ones come first."""
    room = AGENTS_ROOM
    found = []
    for peer in peers:
        agent = _agent(session, peer)
        room -= _size(agent)
        if room < 0:
            break
        found.append(agent)
    return found


def _agent(session: Session, peer: Peer) -> dict[str, Any]:
    found: dict[str, Any] = {"name": peer.name}
    agent = agents.by_name(session.spool.db, peer.name)
    if agent and peer.announced:
        latest = agents.announcements(session.spool.db, agent.id)[-LATEST:]
        found["status"] = [safe(item.text) for item in latest]
    if peer.status != "running":
        found[peer.status] = True  # idle; or parked: mail revives it, or waits for it
    if peer.directory:
        found["worktree"] = safe(peer.directory)
    return found


def _size(value: dict[str, Any]) -> int:
    return len(_json(value).encode()) + 2


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
