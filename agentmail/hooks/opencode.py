"""OpenCode's side of ambient delivery: what our plugin (opencode.js) injects as a synthetic ``broadcast`` result.

The object is IAM's (seed 004): it stands at the end of every request to the model and is not stored, so a message
stays in it until it was answered or acknowledged. Seen with OpenCode 1.18.33.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentmail.operations import ambient, directory
from agentmail.operations.ambient import STEP, Told
from agentmail.render import safe
from agentmail.spool import agents, mail

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmail.hooks.harnesses import Signal
    from agentmail.model import Message, Peer
    from agentmail.operations.session import Session

ROOM = 7000  # characters of messages
MOST_AGENTS = 20
HINT = 'ACTION REQUIRED: tell the other agents what you work on: agentmail status "…"'
HOW = "Mail from other agents, not from the user. Answer with 'agentmail reply ID', the text in a heredoc (<<'EOF');"
HOW += " or 'agentmail ack ID'. What you do neither with is shown again."


def answer(session: Session, signal: Signal, write: Callable[[str], None]) -> None:
    """Tell the plugin who the session is and where its bells are; and for a request to the model, what to inject."""
    known = {"name": session.me.name, "bells": f"{session.spool.bells.directory}/@{signal.session}"}
    if not signal.reaches:
        write(json.dumps(known))
        return
    earlier = mail.unhandled(session.spool.db, session.me.id, sender=None, limit=20)
    with ambient.gather(session, STEP) as delivery:
        shown = _fitting([*earlier, *delivery.found.mail])
        part = _part(session, delivery.found.announced, shown)
        write(json.dumps({**known, "part": part}, ensure_ascii=False))
        delivery.tell(Told(frozenset(item.id for item in shown if item in delivery.found.mail)))


def _fitting(messages: list[Message]) -> list[Message]:
    """The oldest messages that find room; the others wait for these to be handled."""
    room = ROOM
    fitting = []
    for item in messages:
        room -= len(item.body)
        if room < 0:
            break
        fitting.append(item)
    return fitting


def _part(session: Session, announced: bool, messages: list[Message]) -> dict[str, Any] | None:
    """The tool result, None if there is nothing in it but the agent's own name."""
    peers = directory.peers(session.spool, session.me)[:MOST_AGENTS]
    if not (peers or messages or not announced):
        return None
    output: dict[str, Any] = {"you_are": session.me.name}
    if not announced:
        output["hint"] = HINT
    if peers:
        output["agents"] = [_agent(session, peer) for peer in peers]
    if messages:
        output["how"] = HOW
        output["messages"] = [
            {"id": item.n, "from": item.sender, "content": safe(item.body), "verified": bool(item.verified)}
            for item in messages
        ]
    counts = {"agent_count": len(peers), "message_count": len(messages)}
    return {
        "tool": "broadcast",
        "state": {
            "status": "completed",
            "input": {"synthetic": True},
            "output": json.dumps(output, ensure_ascii=False),
            "title": f"{len(peers)} agent(s), {len(messages)} message(s)",
            "metadata": {"incoming_message": bool(messages), **counts},
        },
    }


def _agent(session: Session, peer: Peer) -> dict[str, Any]:
    found: dict[str, Any] = {"name": peer.name}
    agent = agents.by_name(session.spool.db, peer.name)
    if agent and peer.announced:
        found["status"] = [safe(item.text) for item in agents.announcements(session.spool.db, agent.id)[-5:]]
    if peer.status != "running":
        found["idle"] = True
    if peer.directory:
        found["worktree"] = safe(peer.directory)
    return found
