"""Where the spool is."""

from __future__ import annotations

import os
import sys

from agentmail.errors import SpoolUnusable

FILE = "spool.db"


def spool_path(given: str | None = None) -> str:
    """The spool file: as given, else AGENTMAIL_SPOOL, else ``agentmail/spool.db`` in the user's state directory."""
    return native(given or "") or os.environ.get("AGENTMAIL_SPOOL") or f"{state_directory()}/{FILE}"


def native(path: str) -> str:
    """A path from the command line, where all text is UTF-8, as this locale spells it."""
    return os.fsdecode(path.encode())


def state_directory() -> str:
    """The same as platformdirs' user state directory for ``agentmail``."""
    if sys.platform == "linux":
        # Read directly: importing platformdirs costs as much as the rest of a cold start.
        base = os.environ.get("XDG_STATE_HOME", "").strip()
        if not os.path.isabs(base):
            home = os.path.expanduser("~")
            if not os.path.isabs(home):
                raise SpoolUnusable("there is no home directory; set HOME, or name a file with AGENTMAIL_SPOOL")
            base = f"{home.rstrip('/')}/.local/state"
        return f"{base.rstrip('/')}/agentmail"
    from platformdirs import user_state_dir

    return user_state_dir("agentmail", appauthor=False)
