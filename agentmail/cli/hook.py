"""``hook`` on the command line: what harnesses call."""

from __future__ import annotations

from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.paths import spool_path

WAKE = 2


def hook_(call: Call) -> int:
    """``agentmail hook``. Always 0, as a failing hook would block its harness; but 2 is what wakes a session."""
    kind, path = call.text("harness") or "", ""
    try:
        path = spool_path(call.text("spool"))
        from agentmail.hooks import run

        with open(0, "rb", closefd=False) as stdin:
            event = stdin.read()
        if call.flag("until_mail"):
            notice = run.until_mail(kind, event, path)
            if notice:
                output.warn(notice)
                return WAKE
        else:
            run.run(kind, event, path, output.write)
    except Exception as error:
        from agentmail.hooks.run import log

        log(path, kind, error)
    return 0
