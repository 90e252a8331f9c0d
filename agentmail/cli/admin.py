"""``config`` on the command line."""

from __future__ import annotations

from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.cli.context import spool_of
from agentmail.operations import configure


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
        from agentmail.cli import as_json

        output.write(as_json.dump("config", settings=found))
        return 0
    width = max(map(len, found))
    rows = (f"{key:<{width}}  {setting!s:<12} {configure.RULES[key].help}" for key, setting in found.items())
    output.write("\n".join(rows))
    return 0
