"""Sub-agents: agents inside an agent's session, with a parent, an alias and a mailbox of their own."""

from __future__ import annotations

from agentmail import names
from agentmail.clock import now
from agentmail.model import Agent
from agentmail.operations import presence
from agentmail.operations.directory import LONGEST_STATUS
from agentmail.operations.session import Session
from agentmail.spool import Spool, agents, events


def enter(spool: Spool, parent: Agent, native_id: str, description: str) -> Session:
    """The sub-agent that the parent's harness calls `native_id`; it registers when it is first seen.

    Its alias is ``agentA`` … ``agentZ``, ``agentA1`` … (seed 004), never used again under this parent; its name puts
    the parent's before it, as the same alias exists in other sessions.
    """
    key = f"{parent.session}/{native_id}"
    agent = agents.by_session(spool.db, key, parent.kind)
    if agent is None:
        with spool.transaction():
            # Its tools run side by side: another hook may have been faster.
            agent = agents.by_session(spool.db, key, parent.kind) or _add(spool, parent, key, description)
    return Session(spool, agent, True, "the sub-agent id of " + parent.kind)


def _add(spool: Spool, parent: Agent, key: str, description: str) -> Agent:
    alias, name = _free_name(spool, parent)
    spool.bells.hang(name)
    agent = agents.add(
        spool.db,
        now=now(),
        name=name,
        display=alias,
        kind=parent.kind,
        status="running",
        parent=parent.id,
        directory=parent.directory,
        session=key,
        process=parent.process,
        bound=1,
        hooks=1,
    )
    events.add(spool.db, agent.id, "joined", now())
    if description:
        agents.announce(spool.db, agent.id, description[:LONGEST_STATUS], now())
    return agent


def _free_name(spool: Spool, parent: Agent) -> tuple[str, str]:
    """(alias, name) of the next sub-agent. A former holder of the parent's name may have left one of its own."""
    number = len(agents.children(spool.db, parent.id))
    while True:
        alias = alias_of(number)
        name = f"{parent.name[: names.LONGEST - len(alias) - 1]}.{alias}"
        if agents.by_name(spool.db, name) is None:
            return alias, name
        number += 1


def end(spool: Spool, agent: Agent) -> None:
    """A sub-agent has finished: it is gone for good."""
    presence.set_status(spool, agent, "aborted")


def end_all(spool: Spool, parent: Agent) -> None:
    """The parent's session has ended, and with it its sub-agents."""
    for child in agents.children(spool.db, parent.id):
        if child.live and child.session and parent.session and child.session.startswith(f"{parent.session}/"):
            end(spool, child)


def alias_of(number: int) -> str:
    """The alias of the sub-agent that comes after `number` others."""
    rounds, letter = divmod(number, 26)
    return f"agent{chr(ord('A') + letter)}{rounds or ''}"
