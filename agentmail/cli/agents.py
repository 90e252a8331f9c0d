"""``list``, ``status``, ``register``, ``whoami``, ``park``, ``abort`` on the command line."""

from __future__ import annotations

from agentmail import render
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import caller_of, enter, look, spool_of
from agentmail.errors import BadInput
from agentmail.operations import directory
from agentmail.operations import session as sessions


def list_(call: Call) -> int:
    """``agentmail list``."""
    spool, me = look(call)
    found = directory.peers(spool, None if call.flag("all") else me)
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("list", peers=[as_json.peer(item) for item in found]))
    else:
        output.write(render.peers(found))
    return 0


def status_(call: Call) -> int:
    """``agentmail status``."""
    session = enter(call)
    if call.words("text"):
        directory.announce(session, " ".join(call.words("text")))
    announced = directory.announcements(session)
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("status", status=[item._asdict() for item in announced]))
    elif call.words("text"):
        output.write(f"{session.me.name}: {render.block(announced[-1].text)}")
    else:
        output.write(render.announcements(announced))
    return 0


def register_(call: Call) -> int:
    """``agentmail register``."""
    state = call.text("state")
    if state not in (None, "running", "idle"):
        raise BadInput(f"--state takes 'running' or 'idle', not {state!r}")
    caller, spool = caller_of(call), spool_of(call)
    given = call.text("name")
    name = sessions.find(spool, caller).name if given is None else given
    commands = {key: _command(call, key) for key in ("wake", "revive", "autoreply") if call.text(key) is not None}
    session = sessions.register(
        spool,
        caller,
        name,
        display=call.text("display"),
        parent=call.text("parent"),
        synchronous=call.flag("sync"),
        **commands,
    )
    if state:
        directory.set_state(session, state)
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("register", agent=session.me.name, status=state or session.me.status))
    else:
        output.write(f"You are {session.me.name}.")
    return 0


def _command(call: Call, key: str) -> str:
    """A command as a JSON list of arguments, split once as a shell would; an empty one takes the old one away."""
    import json
    import shlex

    try:
        return json.dumps(shlex.split(call.text(key) or ""))
    except ValueError as error:
        raise BadInput(f"--{key} cannot be split into words ({str(error).lower()}); check its quotes") from error


def whoami_(call: Call) -> int:
    """``agentmail whoami``."""
    spool = spool_of(call)
    found = sessions.find(spool, caller_of(call))
    agent = found.agent
    if call.flag("json"):
        from agentmail import as_json

        facts = {
            "name": found.name,
            "verified": found.verified,
            "because": found.how,
            "registered": agent is not None,
            "kind": agent.kind if agent else None,
            "status": agent.status if agent else None,
            "directory": agent.directory if agent else None,
            "spool": spool.path,
        }
        output.write(as_json.dump("whoami", agent={k: v for k, v in facts.items() if v is not None}))
        return 0
    certainty = "" if found.verified else ", claimed"
    state = f"{agent.kind}, {agent.status}" if agent else "not registered yet; the first send, wait or inbox does it"
    output.write(f"{found.name} (by {found.how}{certainty}; {state})\nspool: {render.safe(spool.path)}")
    return 0


def park_(call: Call) -> int:
    """``agentmail park``."""
    return _changed(call, directory.park(enter(call)).name, "parked")


def abort_(call: Call) -> int:
    """``agentmail abort``."""
    name = call.text("name")
    if name is None:
        raise BadInput("there is no name; write 'agentmail abort NAME'")
    return _changed(call, directory.abort(spool_of(call), name).name, "aborted")


def _changed(call: Call, name: str, status: str) -> int:
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump(call.command, agent=name, status=status))
    else:
        output.write(f"{name} is {status}.")
    return 0
