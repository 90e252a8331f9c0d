"""``show`` and ``log`` on the command line."""

from __future__ import annotations

from agentmail import render
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import as_reader, look
from agentmail.errors import BadInput
from agentmail.operations import channels, directory, history
from agentmail.operations.send import resolve

DEFAULT_LINES = 10


def show_(call: Call) -> int:
    """``agentmail show``."""
    reference = call.text("id")
    if reference is None:
        raise BadInput("there is no message id; write 'agentmail show ID'")
    session = as_reader(call)
    message = resolve(session, reference)
    stages = history.stages(session.spool, message)
    if call.flag("json"):
        from agentmail import as_json

        found = [as_json.stages(item) for item in stages]
        output.write(as_json.dump("show", message=as_json.message(message), receipts=found))
    else:
        output.write(render.stages(message, stages))
    return 0


def log_(call: Call) -> int:
    """``agentmail log``."""
    limit = call.number("limit")
    spool, me = look(call)
    name = call.text("with")
    other = directory.named(spool, me, name) if name is not None else None
    everybody = call.flag("all")
    lines = DEFAULT_LINES if limit is None else limit
    channel = call.text("channel")
    if channel is not None:
        messages = channels.read_log(spool, channel, lines)
    else:
        messages = history.log(spool, None if everybody else me, other, lines) if me or everybody else ()
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("log", log=as_json.messages(messages)))
    else:
        output.write(render.log(messages))
    if me and channel is not None:
        channels.note_read(spool, me, channel, messages)
    if me and not everybody:
        history.note_read_again(spool, me, messages)
    return 0
