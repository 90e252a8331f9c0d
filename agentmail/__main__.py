"""The entry point: parse, carry out, exit. Importing this module imports nothing that costs milliseconds."""

from __future__ import annotations

import os
import sys

if not __package__:  # run by its path, as installed hooks do
    sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from agentmail.cli import fast, output
from agentmail.cli.call import Call
from agentmail.commands import BY_NAME
from agentmail.errors import AgentmailError, BadInput, SpoolUnusable, Terminated

INTERRUPTED, TERMINATED = 130, 143


def main() -> int:
    """Run the command line of this process and give its exit status."""
    output.guard_descriptors()
    try:
        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Terminated:
        status = TERMINATED
    return _leave(status)


def run(arguments: list[str]) -> int:
    """Carry out one command line; failures become one line on stderr and an exit status."""
    call: Call | None = None
    try:
        words = [_decode(argument) for argument in arguments]
        call = fast.parse(words)
        if call is None:
            from agentmail.cli import full

            call = full.parse(words)
            if call is None:
                return 0
        command = BY_NAME[call.command]
        module = __import__(f"agentmail.cli.{command.module}", fromlist=[command.function])
        status: int = getattr(module, command.function)(call)
        return status
    except output.PipeClosed as error:
        return error.status
    except AgentmailError as error:
        return _fail(error, call, arguments)
    except Exception as error:
        return _fail(_in_a_line(error), call, arguments)


def _in_a_line(error: Exception) -> AgentmailError:
    """What nobody foresaw, as one line; with AGENTMAIL_DEBUG set, as a traceback."""
    if os.environ.get("AGENTMAIL_DEBUG"):
        raise error
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        where = f" {error.filename}" if error.filename else ""
        return SpoolUnusable(f"cannot use{where}: {reason}; check permissions and space")
    what = f"{type(error).__name__}: {error}"
    return AgentmailError(
        f"a mistake in agentmail itself ({what}); please report it, with what it prints under AGENTMAIL_DEBUG=1"
    )


def _leave(status: int) -> int:
    """End the process at once. Everything is written and committed by now.

    Tearing the interpreter down takes a tenth of a cold call, and the last connection to close would move the whole
    log into the spool, with two more syncs to disk. The log stays, and is short: see `WAL_PAGES`.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # closed, and nothing of ours was in it
    os._exit(status)


def _decode(argument: str) -> str:
    """The argument as UTF-8, whatever the locale took it for."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"an argument is not valid UTF-8 (byte {error.start}); convert it first") from error


def _fail(error: AgentmailError, call: Call | None, arguments: list[str]) -> int:
    line = " ".join(str(error).split())
    if call.flag("json") if call else "--json" in arguments:
        from agentmail import as_json

        try:
            op = call.command if call else next((word for word in arguments if word in BY_NAME), "")
            output.write(as_json.dump(op, error=line))
        except AgentmailError:
            pass
    from agentmail.render import safe

    output.warn(safe(line))
    return error.status


if __name__ == "__main__":
    sys.exit(main())
