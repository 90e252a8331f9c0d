"""From the facts about a process to the agent that it speaks for."""

from __future__ import annotations

import os

from agentmail import names
from agentmail.clock import now
from agentmail.errors import BadInput, NameTaken
from agentmail.identity import HUMAN, Caller
from agentmail.model import Agent
from agentmail.operations import presence
from agentmail.spool import Spool, agents, events
from agentmail.values import NamedTuple


class Session(NamedTuple):
    """A spool, and the agent on whose behalf it is used."""

    spool: Spool
    me: Agent
    verified: bool  # the process was matched to the agent; otherwise it only claimed the name
    how: str  # what decided, in words


class Found(NamedTuple):
    """What is known of the caller before anything is written."""

    name: str
    agent: Agent | None  # None: the first use will register it
    verified: bool
    how: str


def find(spool: Spool, caller: Caller) -> Found:
    """Who the caller is, in the order: named, session id, ancestor process, directory. Writes nothing.

    Raises `NameTaken` if the caller names an agent that belongs to another live session and does not force it.
    """
    if caller.named is not None:
        return _find_named(spool, caller, names.check(caller.named))
    if caller.session:
        agent = agents.by_session(spool.db, caller.session, caller.kind)
        if agent:
            return Found(agent.name, agent, True, f"the session id of {caller.kind}")
    for ancestor in caller.lineage:
        agent = agents.by_process(spool.db, ancestor)
        # A harness started from a person's terminal is not that person.
        if agent and agent.kind == caller.kind and is_mine(agent, caller):
            return Found(agent.name, agent, True, "an ancestor process")
    return _find_derived(spool, caller)


def enter(spool: Spool, caller: Caller) -> Session:
    """The caller's session; the first use of a name registers it."""
    found = find(spool, caller)
    agent = found.agent
    if agent is None or _is_new_session(spool, agent, caller, found):
        agent = _settle_in(spool, caller, found)
    return Session(spool, agent, found.verified, found.how)


def register(
    spool: Spool,
    caller: Caller,
    name: str,
    *,
    display: str | None = None,
    parent: str | None = None,
    synchronous: bool = False,
    **commands: str,
) -> Session:
    """Bind `name` to the caller's session. What the session was called before is parked.

    `commands` are ``wake``, ``revive`` and ``autoreply``, each a JSON list of arguments; an empty list is none.
    """
    name = names.check(name)
    taken = agents.by_name(spool.db, name)
    if taken and _is_held(spool, taken) and not is_mine(taken, caller) and not caller.force:
        raise _taken(taken)
    if taken:
        _check_case(name, taken)
    above = agents.by_name(spool.db, parent) if parent else None
    if taken and above and taken.id == above.id:
        raise BadInput(f"{name} cannot be its own parent; name the agent that it works for")
    if parent and not above:
        raise BadInput(f"no agent {parent!r} to be the parent; register it first")
    with spool.transaction():
        for former in _bound_to(spool, caller):
            if former.id != (taken.id if taken else None):
                former = presence.change_status(spool, former, "parked")
                agents.change(spool.db, former.id, bound=0, process=None, session=None)
        columns = {
            **_place(caller),
            "display": display or _display(taken, name),
            "kind": caller.kind,
            "parent": above.id if above else taken.parent if taken else None,
            "bound": 1,
            **({"synchronous": 1} if synchronous else {}),
            **commands,
        }
        agent = _write(spool, taken, name, columns)
    return Session(spool, agent, True, "registration")


def is_mine(agent: Agent, caller: Caller) -> bool:
    """Whether the calling process belongs to the agent's session."""
    if agent.kind == HUMAN and caller.kind == HUMAN and agent.name == names.of_person():
        return True  # one person at several terminals; only its own user can open the spool
    if agent.session and caller.session:
        if agent.session == caller.session or _is_inside(agent, caller):
            return True
        if caller.shares_its_process:
            return False
    return agent.process is not None and agent.process in caller.lineage


def _is_inside(agent: Agent, caller: Caller) -> bool:
    """Whether the agent is a sub-agent of the caller's session."""
    return (agent.session or "").startswith(f"{caller.session}/")


def _find_named(spool: Spool, caller: Caller, name: str) -> Found:
    agent = agents.by_name(spool.db, name)
    if agent is None:
        return Found(name, None, False, caller.how)
    _check_case(name, agent)
    verified = bool(agent.bound) and is_mine(agent, caller)
    if not verified and not caller.force and _is_held(spool, agent):
        raise _taken(agent)
    return Found(agent.name, agent, verified, caller.how)


def _find_derived(spool: Spool, caller: Caller) -> Found:
    if caller.kind == HUMAN:
        base, how = names.of_person(), "your login name"
    else:
        base, how = names.from_directory(caller.kind, caller.directory), "the directory"
    name, count = base, 1
    while True:
        agent = agents.by_name(spool.db, name)
        if agent is None or not _is_held(spool, agent) or is_mine(agent, caller):
            return Found(agent.name if agent else name, agent, True, how)
        count += 1
        name = f"{base}-{count}"


def _is_held(spool: Spool, agent: Agent) -> bool:
    known = agent.process is not None or agent.session is not None  # or nobody could show that it is theirs
    return bool(agent.bound) and known and agent.live and not presence.is_gone(spool, agent)


def _is_new_session(spool: Spool, agent: Agent, caller: Caller, found: Found) -> bool:
    """Whether the agent's row tells of an earlier session, or of none."""
    if agent.bound and not found.verified:
        return False  # a claim changes nothing about the session that the name belongs to
    if found.verified and (not agent.bound or (caller.kind == HUMAN and agent.process != caller.process)):
        return True
    if found.verified and caller.session and agent.session != caller.session and not _is_inside(agent, caller):
        return True  # after a /clear the same process goes on under another id
    return not agent.live or presence.is_gone(spool, agent)


def _settle_in(spool: Spool, caller: Caller, found: Found) -> Agent:
    columns = {**_place(caller), "kind": caller.kind, "bound": int(found.verified)}
    with spool.transaction():
        agent = agents.by_name(spool.db, found.name)
        return _write(spool, agent, found.name, {**columns, "display": _display(agent, found.name)})


def _write(spool: Spool, agent: Agent | None, name: str, columns: dict[str, object]) -> Agent:
    spool.bells.hang(name)
    if agent is None:
        agent = agents.add(spool.db, now=now(), name=name, **columns)
        comes = True
    else:
        agent = presence.refreshed(spool, [agent])[0]  # the former session may have ended without a word
        comes = not agent.live or not agent.bound
        if not agent.live:
            columns.update(status="idle", since=now())
        agent = agents.change(spool.db, agent.id, active=now(), **columns)
    if comes and agent.bound:
        events.add(spool.db, agent.id, "joined", now())
    return agent


def _display(agent: Agent | None, name: str) -> str:
    """The name for people to read: it stays until another is given."""
    return agent.display if agent and agent.status != "expected" else name


def _place(caller: Caller) -> dict[str, object]:
    place: dict[str, object] = {
        "directory": os.fsencode(caller.directory).decode("utf-8", "backslashreplace"),
        "session": caller.session,
        "process": caller.process,
        "terminal": None,
    }
    if caller.kind != HUMAN and "TMUX" in os.environ:  # a line typed into a person's shell would be a command
        from agentmail.operations import terminal

        place["terminal"] = terminal.here()
    return place


def _bound_to(spool: Spool, caller: Caller) -> list[Agent]:
    """The agents that this very session has been so far."""
    found = [agents.by_session(spool.db, caller.session, caller.kind)] if caller.session else []
    if caller.process:
        found.append(agents.by_process(spool.db, caller.process))
    return [agent for agent in found if agent]


def _check_case(name: str, agent: Agent) -> None:
    if agent.name != name:
        raise BadInput(f"{name!r} differs from {agent.name!r} only by case; use that, or another name")


def _taken(agent: Agent) -> NameTaken:
    return NameTaken(
        f"{agent.name!r} belongs to another live session ({agent.kind} in {agent.directory});"
        " choose another name, or insist with --force"
    )
