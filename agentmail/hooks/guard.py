"""The shell commands that harnesses run as hooks.

Most hooks have nothing to deliver. A few lines of POSIX shell find that out by the bells, in about a millisecond, and
start Python, by its absolute path and isolated, only when a bell rings.
"""

from __future__ import annotations

import os
import shlex
import sys

_MAIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")


def hook(kind: str) -> str:
    """Answer every event with Python."""
    return f"{shlex.quote(sys.executable)} -I -S {shlex.quote(_MAIN)} hook {kind}"


def sentry(kind: str) -> str:
    """Wait in the background for mail to an idle session."""
    return f"{hook(kind)} --until-mail"


def hook_when_ringing(kind: str, spool: str, session_variable: str | None) -> str:
    """Answer only when a bell of the session rings: for what happens at every tool call.

    The session id is in the variable that the harness sets, or else in the event on stdin.
    """
    bells = f"${{AGENTMAIL_SPOOL:-{_in_quotes(spool)}}}-bells"
    if session_variable:
        return f'for bell in "{bells}/@${session_variable}"/*; do [ -s "$bell" ] && exec {hook(kind)}; done; exit 0'
    return (
        """event=$(cat); id=${event#*'"session_id"'}; id=${id#*'"'}; id=${id%%'"'*}; """
        f'for bell in "{bells}/@$id"/*; do [ -s "$bell" ] && '
        f"""{{ printf '%s' "$event" | {hook(kind)}; break; }}; done; exit 0"""
    )


def hook_when_named(kind: str) -> str:
    """Answer only when the event speaks of agentmail: for looking at shell commands before they run."""
    return f"""event=$(cat); case $event in *agentmail*) printf '%s' "$event" | {hook(kind)};; esac; exit 0"""


def _in_quotes(path: str) -> str:
    """`path` for the inside of double quotes."""
    return "".join("\\" + letter if letter in '\\"$`' else letter for letter in path)
