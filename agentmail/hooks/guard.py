"""The shell commands that harnesses run as hooks.

Most hooks have nothing to deliver. A few lines of POSIX shell find that out by the bells, in about a millisecond, and
start Python, by its absolute path and isolated, only when a bell rings.
"""

from __future__ import annotations

import os
import shlex
import sys

_MAIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")


def program() -> list[str]:
    """The words that start agentmail whatever the PATH."""
    return [sys.executable, "-I", "-S", _MAIN]


def hook(kind: str, fixed_spool: str | None = None) -> str:
    """Answer every event with Python; `fixed_spool` names the spool whatever the environment says."""
    return shlex.join([*program(), "hook", kind, *(["--spool", fixed_spool] if fixed_spool else [])])


def sentry(kind: str, fixed_spool: str | None = None) -> str:
    """Wait in the background for mail to an idle session."""
    return f"{hook(kind, fixed_spool)} --until-mail"


def hook_when_ringing(kind: str, spool: str, session_variable: str | None, fixed: bool = False) -> str:
    """Answer only when a bell of the session rings: for what happens at every tool call.

    The session id is in the variable that the harness sets, or else in the event on stdin. `fixed` as in `hook`.
    """
    bells = f"{_in_quotes(spool)}-bells" if fixed else f"${{AGENTMAIL_SPOOL:-{_in_quotes(spool)}}}-bells"
    answer = hook(kind, spool if fixed else None)
    if session_variable:
        return f'for bell in "{bells}/@${session_variable}"/*; do [ -s "$bell" ] && exec {answer}; done; exit 0'
    return (
        """event=$(cat); id=${event#*'"session_id"'}; id=${id#*'"'}; id=${id%%'"'*}; """
        f'for bell in "{bells}/@$id"/*; do [ -s "$bell" ] && '
        f"""{{ printf '%s' "$event" | {answer}; break; }}; done; exit 0"""
    )


def hook_when_named(kind: str, fixed_spool: str | None = None) -> str:
    """Answer only when the event speaks of agentmail: for looking at shell commands before they run."""
    answer = hook(kind, fixed_spool)
    return f"""event=$(cat); case $event in *agentmail*) printf '%s' "$event" | {answer};; esac; exit 0"""


def _in_quotes(path: str) -> str:
    """`path` for the inside of double quotes."""
    return "".join("\\" + letter if letter in '\\"$`' else letter for letter in path)
