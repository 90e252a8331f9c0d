"""``wait`` and ``inbox`` on the command line."""

from __future__ import annotations

from agentmail import durations, render
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import enter
from agentmail.errors import BadInput
from agentmail.model import Agent, Message, Stopped
from agentmail.operations import receive
from agentmail.operations.receive import Delivery, Wait
from agentmail.operations.session import Session

TIMED_OUT = 124


def wait_(call: Call) -> int:
    """``agentmail wait``."""
    asked = call.timeout()
    session = enter(call)
    awaited = call.text("idle")
    if awaited is not None:
        return _wait_for_idle(call, session, awaited, asked)
    name = call.text("from")
    sender = _named(session, name) if name is not None else None
    channel = call.text("channel")
    if sender and channel is not None:
        raise BadInput("--from and --channel exclude each other; use one of them")
    if channel is None:
        waiting = receive.wait(session, sender=sender, asked=asked)
    else:
        from agentmail.operations import channels

        waiting = channels.wait(session, channel, asked)
    got = outcome(session, waiting)
    if isinstance(got, Stopped):
        _write(call, render.stopped(got), from_=name, waited=None, reason=got.reason)
        return TIMED_OUT if call.flag("exit_code") else 0
    with got:
        if got.dropped:
            output.warn(render.drops(got.dropped))
        write_message(call, got.messages[0], from_=name)
    return 0


def _wait_for_idle(call: Call, session: Session, name: str, asked: float | str | None) -> int:
    peer = _named(session, name)
    waiting = receive.wait_for_idle(session, peer, asked)
    got = waiting if isinstance(waiting, Stopped) else outcome(session, waiting)
    if not isinstance(got, Stopped):
        raise AssertionError("no message is from the far future")
    if got.reason == "timeout":
        text = f"{peer.name} is still running after {durations.show(got.timeout_ms)}."
        _write(call, text, idle=None, reason=got.reason)
        return TIMED_OUT if call.flag("exit_code") else 0
    status = receive.rest_of(session, peer)
    _write(call, f"{peer.name} is {status}.", idle=peer.name, status=status)
    return 0


def inbox_(call: Call) -> int:
    """``agentmail inbox``."""
    limit = call.number("limit")
    session = enter(call)
    name = call.text("from")
    sender = _named(session, name) if name is not None else None
    delivery = receive.inbox(
        session,
        peek=call.flag("peek"),
        sender=sender,
        limit=receive.ALL if limit is None else limit,
        unhandled=call.flag("unhandled"),
    )
    with delivery:
        if call.flag("json"):
            from agentmail import as_json

            found = as_json.messages(delivery.messages)
            output.write(as_json.dump("inbox", from_=name, inbox=found, dropped=delivery.dropped or None))
        else:
            output.write(render.inbox(delivery.messages, delivery.dropped))
    return 0


def outcome(session: Session, wait: Wait) -> Delivery | Stopped:
    """Block until the wait is over; Ctrl-C and SIGTERM give back what it may have claimed.

    Says so at once if the agent that is waited for waits itself, by whatever way, for this one.
    """
    with wait:
        if not wait.is_over:
            output.end_cleanly_on_sigterm()
            ring = receive.find_ring(session.spool, session.me, wait.peer) if wait.peer else ()
            if ring:
                output.warn(f"each of these waits for the next: {' → '.join(ring)}; somebody must answer first")
        return wait.result()


def write_message(call: Call, item: Message, **parts: object) -> None:
    """Print a message that was waited for."""
    if call.flag("json"):
        from agentmail import as_json  # json costs as much as opening the spool

        output.write(as_json.dump(call.command, **parts, waited=as_json.message(item)))
    else:
        output.write(render.message(item))


def _write(call: Call, text: str, **parts: object) -> None:
    if call.flag("json"):
        from agentmail import as_json

        text = as_json.dump(call.command, **parts)
    output.write(text)


def _named(session: Session, name: str) -> Agent:
    from agentmail.operations import directory

    found = directory.named(session.spool, session.me, name)
    if found.id == session.me.id:
        raise BadInput(f"{name} is yourself; see 'agentmail list' for the others")
    return found
