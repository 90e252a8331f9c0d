"""``config`` and ``cleanup`` on the command line."""

from __future__ import annotations

from agentmail import durations
from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import spool_of
from agentmail.operations import configure, retention


def config_(call: Call) -> int:
    """``agentmail config``."""
    name, value = call.text("name"), call.text("value")
    spool = spool_of(call)
    if name is not None:
        configure.known(name)
    if name is not None and value is not None:
        configure.put(spool, name, value)
    found = {key: setting for key, setting in configure.get(spool).items() if name in (None, key)}
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("config", settings=found))
        return 0
    width = max(map(len, found))
    rows = (f"{key:<{width}}  {setting!s:<12} {configure.RULES[key].help}" for key, setting in found.items())
    output.write("\n".join(rows))
    return 0


def cleanup_(call: Call) -> int:
    """``agentmail cleanup``."""
    age = call.text("older_than")
    done = retention.cleanup(
        spool_of(call),
        older_than_ms=None if age is None else durations.parse(age),
        max_messages=call.number("max_messages"),
        unread=call.flag("unread"),
        vacuum=call.flag("vacuum"),
        dry_run=call.flag("dry_run"),
    )
    if call.flag("json"):
        from agentmail import as_json

        output.write(as_json.dump("cleanup", dryRun=call.flag("dry_run") or None, removed=done._asdict()))
        return 0
    verb = "would remove" if call.flag("dry_run") else "removed"
    output.write(f"{verb} {done.messages} messages, {done.agents} aborted agents, {done.files} left-over files")
    return 0
