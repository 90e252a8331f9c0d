"""The directory that a harness's sandbox must let agents write."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.install.plan import Place


def directory(place: Place) -> str | None:
    """The spool's directory; None if it holds the home directory, which no sandbox should be opened for."""
    found = os.path.dirname(place.spool)
    holds_home = f"{place.home}/".startswith(found.rstrip("/") + "/")
    return None if holds_home else found


def notes(place: Place) -> list[str]:
    """What to tell the user about it."""
    if directory(place):
        return []
    return [
        f"sandboxes were not opened for {os.path.dirname(place.spool)}; put the spool into a directory of its own"
    ]
