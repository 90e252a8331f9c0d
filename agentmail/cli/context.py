"""From a call to the session that carries it out."""

from __future__ import annotations

from agentmail.cli.call import Call
from agentmail.identity import Caller
from agentmail.model import Agent
from agentmail.operations import session
from agentmail.operations.session import Session
from agentmail.paths import spool_path
from agentmail.spool import Spool, open_spool


def caller_of(call: Call) -> Caller:
    """The facts about this process, with the name that the call gives."""
    return Caller(call.text("as"), call.flag("force"))


def spool_of(call: Call) -> Spool:
    """The spool that the call, the environment or the platform names."""
    return open_spool(spool_path(call.text("spool")))


def enter(call: Call) -> Session:
    """The caller's session; registers it at the first use."""
    return session.enter(spool_of(call), caller_of(call))


def look(call: Call) -> tuple[Spool, Agent | None]:
    """The spool and who the caller is in it, without registering anybody."""
    spool = spool_of(call)
    return spool, session.find(spool, caller_of(call)).agent


def as_reader(call: Call) -> Session:
    """A session for looking: as `look`, and one's own mailbox if there is one."""
    spool = spool_of(call)
    found = session.find(spool, caller_of(call))
    if found.agent:
        return Session(spool, found.agent, found.verified, found.how)
    return session.enter(spool, caller_of(call))
