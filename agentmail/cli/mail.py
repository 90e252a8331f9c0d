"""``send``, ``reply``, ``wait``, ``inbox``, ``ack`` on the command line."""

from __future__ import annotations

import os

from agentmail import durations
from agentmail.cli import output, render
from agentmail.cli.call import Call
from agentmail.cli.context import enter
from agentmail.errors import BadInput
from agentmail.model import Message, Sent, Stopped
from agentmail.operations import directory, receive
from agentmail.operations import send as sending
from agentmail.operations.receive import Delivery, Wait
from agentmail.operations.send import Draft
from agentmail.operations.session import Session

TIMED_OUT = 124


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


def wait_(call: Call) -> int:
    """``agentmail wait``."""
    asked = call.timeout()
    session = enter(call)
    awaited = call.text("idle")
    if awaited is not None:
        return _wait_for_idle(call, session, awaited, asked)
    name = call.text("from")
    sender = directory.named(session.spool, session.me, name) if name is not None else None
    channel = call.text("channel")
    if sender and channel is not None:
        raise BadInput("--from and --channel exclude each other; use one of them")
    if channel is None:
        waiting = receive.wait(session, sender=sender, asked=asked)
    else:
        from agentmail.operations import channels

        waiting = channels.wait(session, channel, asked)
    if sender:
        _warn_of_ring(session, sender.name)
    got = _outcome(waiting)
    if isinstance(got, Stopped):
        if _is_json(call):
            output.write(_json("wait", from_=name, waited=None, reason=got.reason))
        else:
            output.write(render.stopped(got))
        return TIMED_OUT if call.flag("exit_code") else 0
    with got:
        if got.dropped:
            output.warn(render.drops(got.dropped))
        _write_message(call, "wait", got.messages[0], from_=name)
    return 0


def _wait_for_idle(call: Call, session: Session, name: str, asked: float | str | None) -> int:
    peer = directory.named(session.spool, session.me, name)
    waiting = receive.wait_for_idle(session, peer, asked)
    got = waiting if isinstance(waiting, Stopped) else _outcome(waiting)
    if not isinstance(got, Stopped):
        raise AssertionError("no message is from the far future")
    timed_out = got.reason == "timeout"
    if _is_json(call):
        output.write(_json("wait", idle=None if timed_out else peer.name, reason="timeout" if timed_out else None))
    else:
        late = f"{peer.name} is still running after {durations.show(got.timeout_ms)}." if timed_out else ""
        output.write(late or f"{peer.name} is idle.")
    return TIMED_OUT if timed_out and call.flag("exit_code") else 0


def inbox_(call: Call) -> int:
    """``agentmail inbox``."""
    limit = call.number("limit")
    session = enter(call)
    name = call.text("from")
    sender = directory.named(session.spool, session.me, name) if name is not None else None
    delivery = receive.inbox(
        session,
        peek=call.flag("peek"),
        sender=sender,
        limit=receive.ALL if limit is None else limit,
        unhandled=call.flag("unhandled"),
    )
    with delivery:
        if _is_json(call):
            from agentmail.cli import as_json

            found = as_json.messages(delivery.messages)
            output.write(_json("inbox", from_=name, inbox=found, dropped=delivery.dropped or None))
        else:
            output.write(render.inbox(delivery.messages, delivery.dropped))
    return 0


def ack_(call: Call) -> int:
    """``agentmail ack``."""
    references = call.words("ids")
    if not references:
        raise BadInput("there is nothing to acknowledge; write 'agentmail ack ID…'")
    handled = sending.ack(enter(call), references)
    if _is_json(call):
        output.write(_json("ack", acked=[str(item.id) for item in handled]))
    else:
        output.write("\n".join(f"handled [{item.id}] from {item.sender}" for item in handled))
    return 0


def _report(call: Call, session: Session, sent: Sent, wait: Wait | None, original: Message | None) -> int:
    """Print the receipts, wait for the answer if one was asked for, and give the exit status."""
    if _is_json(call):
        return _report_json(call, session, sent, wait, original)
    if original:
        output.write(f"reply to {render.quote(original)}")
    output.write(render.sent(sent))
    if wait:
        _warn_of_ring(session, sent.to)
        _let_autoreply(session, sent, wait)
        got = _outcome(wait)
        if isinstance(got, Stopped):
            output.write(render.stopped(got, f"answer from {sent.to}"))
        else:
            with got:
                _write_message(call, call.command, got.messages[0])
    return _status(sent)


def _report_json(call: Call, session: Session, sent: Sent, wait: Wait | None, original: Message | None) -> int:
    from agentmail.cli import as_json

    parts: dict[str, object] = {
        "from_": session.me.name,
        "to": sent.to,
        "id": str(sent.id) if sent.id else None,
        "receipts": [as_json.receipt(item) for item in sent.receipts],
        "source": as_json.message(original) if original else None,
    }
    if not wait:
        output.write(_json(call.command, **parts))
        return _status(sent)
    _warn_of_ring(session, sent.to)
    _let_autoreply(session, sent, wait)
    got = _outcome(wait)
    if isinstance(got, Stopped):
        output.write(_json(call.command, **parts, waited=None, reason=got.reason))
        return _status(sent)
    with got:
        _write_message(call, call.command, got.messages[0], **parts)
    return _status(sent)


def _outcome(wait: Wait) -> Delivery | Stopped:
    if not wait.is_over:
        output.end_cleanly_on_sigterm()
    return wait.result()


def _write_message(call: Call, op: str, item: Message, **parts: object) -> None:
    if _is_json(call):
        from agentmail.cli import as_json

        output.write(_json(op, **parts, waited=as_json.message(item)))
    else:
        output.write(render.message(item))


def _warn_of_ring(session: Session, peer: str) -> None:
    ring = receive.find_ring(session.spool, session.me, directory.named(session.spool, session.me, peer))
    if ring:
        output.warn(f"each of these waits for the next: {' → '.join(ring)}; somebody must answer first")


def _let_autoreply(session: Session, sent: Sent, wait: Wait) -> None:
    """Have the recipient's autoreply command answer beside the wait, if the recipient cannot."""
    peer = directory.find(session.spool, session.me, sent.receipts[0].to)
    if peer is None or not peer.autoreply or sent.id is None:
        return
    from threading import Thread

    from agentmail.operations import autoreply

    def answer(message: int, recipient: int) -> None:
        seconds = wait.timeout_ms / 1000 or None
        failure = autoreply.answer(session.spool.path, recipient, message, seconds)
        if failure:
            output.warn(failure)

    if autoreply.is_wanted(peer):
        Thread(target=answer, args=(sent.id, peer.id), daemon=True).start()


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
        return _read(0 if path is None or path == "-" else path).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"the message is not valid UTF-8 (byte {error.start}); convert it first") from error
    except OSError as error:
        source = "stdin" if path in (None, "-") else path
        raise BadInput(f"cannot read {source}: {(error.strerror or str(error)).lower()}") from error


def _read(source: int | str) -> bytes:
    with open(source, "rb", closefd=source != 0) as stream:
        return stream.read()


def _status(sent: Sent) -> int:
    return 1 if sent.receipts and sent.id is None else 0


def _is_json(call: Call) -> bool:
    return call.flag("json")


def _json(op: str, **parts: object) -> str:
    from agentmail.cli import as_json  # json costs as much as opening the spool

    return as_json.dump(op, **parts)
