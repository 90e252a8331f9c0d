"""``channel`` on the command line."""

from __future__ import annotations

from agentmail import render
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import enter, look
from agentmail.errors import BadInput
from agentmail.operations import channels


def channel_(call: Call) -> int:
    """``agentmail channel join|leave|list``."""
    action, name = call.text("action") or "list", call.text("name")
    if action == "list":
        return _list(call)
    if action not in ("join", "leave"):
        raise BadInput(f"'channel' takes join, leave or list, not {action!r}")
    if name is None:
        raise BadInput(f"there is no channel; write 'agentmail channel {action} NAME'")
    session = enter(call)
    known = channels.join(session, name) if action == "join" else channels.leave(session, name)
    done = {"join": "joined", "leave": "left"}[action]
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("channel", channel=known, **{done: True}))
    else:
        output.write(f"{session.me.name} has {done} {known}.")
    return 0


def _list(call: Call) -> int:
    spool, me = look(call)
    found = channels.everything(spool, me)
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("channel", channels=[as_json.channel(item) for item in found]))
    else:
        output.write(render.channels(found))
    return 0
