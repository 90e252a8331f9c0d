"""``send``, ``reply`` and ``ack`` on the command line."""

from __future__ import annotations

import os

from agentmail import render
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import enter
from agentmail.errors import BadInput, NotDelivered
from agentmail.model import Message, Sent, Stopped
from agentmail.operations import send as sending
from agentmail.operations.send import Draft
from agentmail.operations.session import Session
from agentmail.paths import native
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.operations.autoreply import Autoreply
    from agentmail.operations.receive import Wait


def send_(call: Call) -> int:
    """``agentmail send``."""
    to = call.text("to")
    if to is None or not to.strip():
        raise BadInput("there is no recipient; write 'agentmail send NAME MESSAGE'")
    draft = _draft(call, to)
    session = enter(call)
    reference = call.text("reply_to")
    if reference is not None:
        draft = draft._replace(reply_to=sending.resolve(session, reference).id)
    sent, wait = sending.send(session, draft)
    return _report(call, session, sent, wait, None)


def reply_(call: Call) -> int:
    """``agentmail reply``."""
    reference = call.text("id")
    if reference is None:
        raise BadInput("there is no message to answer; write 'agentmail reply ID MESSAGE'")
    draft = _draft(call, "")
    session = enter(call)
    original, sent, wait = sending.reply(session, reference, draft)
    return _report(call, session, sent, wait, original)


def ack_(call: Call) -> int:
    """``agentmail ack``."""
    references = call.words("ids")
    if not references:
        raise BadInput("there is nothing to acknowledge; write 'agentmail ack ID…'")
    handled = sending.ack(enter(call), references)
    if call.flag("json"):
        _write_json("ack", acked=[str(item.id) for item in handled])
    else:
        output.write("\n".join(f"handled [{item.id}] from {item.sender}" for item in handled))
    return 0


def _report(call: Call, session: Session, sent: Sent, wait: Wait | None, original: Message | None) -> int:
    """Show the receipts, and the answer if one is awaited; give the exit status.

    Mail that is stored is sent, whether or not that can be shown: who is told otherwise sends it again.
    """
    try:
        if wait:
            with wait:
                _await_answer(call, session, sent, wait, _show(call, session, sent, original))
        else:
            parts = _show(call, session, sent, original)
            if parts:
                _write_json(call.command, **parts)
    except NotDelivered as error:
        if wait or sent.id is None:
            raise
        if not isinstance(error, output.PipeClosed):
            output.warn(f"{str(error).partition(';')[0]}; message {sent.id} is sent, do not send it again")
    return 1 if sent.receipts and sent.id is None else 0


def _show(call: Call, session: Session, sent: Sent, original: Message | None) -> dict[str, object]:
    """Print the receipts as text; or give the parts of the one JSON object that will say all."""
    if call.flag("json"):
        return _parts(session, sent, original)
    source = f"reply to {render.quote(original)}\n" if original else ""
    output.write(source + render.sent(sent))
    return {}


def _parts(session: Session, sent: Sent, original: Message | None) -> dict[str, object]:
    from agentmail import as_json  # json costs as much as opening the spool

    return {
        "from_": session.me.name,
        "to": sent.to,
        "id": str(sent.id) if sent.id else None,
        "receipts": [as_json.receipt(item) for item in sent.receipts],
        "source": as_json.message(original) if original else None,
    }


def _await_answer(call: Call, session: Session, sent: Sent, wait: Wait, parts: dict[str, object]) -> None:
    from agentmail.cli import receiving

    autoreply = _let_autoreply(session, sent, wait)
    try:
        got = receiving.outcome(session, wait)
    finally:
        if autoreply:
            autoreply.stop()
    if not isinstance(got, Stopped):
        with got:
            receiving.write_message(call, got.messages[0], **parts)
    elif parts:
        _write_json(call.command, **parts, waited=None, reason=got.reason)
    else:
        output.write(render.stopped(got, f"answer from {sent.to}"))


def _let_autoreply(session: Session, sent: Sent, wait: Wait) -> Autoreply | None:
    """Have the recipient's autoreply command answer beside the wait, if the recipient cannot."""
    peer = wait.peer
    if peer is None or not peer.autoreply or sent.id is None or sent.receipts[0].waiting:
        return None
    from threading import Thread

    from agentmail.operations import autoreply

    if not autoreply.is_wanted(peer):
        return None
    answering = autoreply.Autoreply(session.spool.path, peer.id, sent.id, wait.timeout_ms / 1000 or None)

    def answer() -> None:
        failure = answering.run()
        if failure:
            output.warn(render.safe(failure))

    Thread(target=answer, daemon=True).start()
    return answering


def _draft(call: Call, to: str) -> Draft:
    return Draft(
        to=to,
        body=_body(call),
        once=call.text("once"),
        hold=call.flag("hold"),
        await_reply=call.flag("await"),
        asked=call.timeout(),
    )


def _body(call: Call) -> str:
    words, path = call.words("message"), call.text("body_file")
    if words and path is not None:
        raise BadInput("the message is given twice; use either words or --body-file")
    if words:
        return " ".join(words)
    if path is None and os.isatty(0):
        raise BadInput("there is no message; write it after the recipient, or pass it on stdin")
    try:
        return _read(0 if path is None or path == "-" else native(path)).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"the message is not valid UTF-8 (byte {error.start}); convert it first") from error
    except OSError as error:
        source = "stdin" if path in (None, "-") else path
        raise BadInput(f"cannot read {source}: {(error.strerror or str(error)).lower()}") from error


def _read(source: int | str) -> bytes:
    with open(source, "rb", closefd=source != 0) as stream:
        return stream.read()


def _write_json(op: str, **parts: object) -> None:
    from agentmail import as_json

    output.write(as_json.dump(op, **parts))
