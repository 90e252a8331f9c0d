"""``cleanup``: history that is old enough goes, and what dead processes left lying about."""

from __future__ import annotations

import os
import shutil
import time

from agentmail import locks
from agentmail.clock import now
from agentmail.spool import Spool, retention, settings
from agentmail.values import NamedTuple

DAY_MS = 86_400_000
BITE = 500  # messages per transaction
_GRACE_SECONDS = 60  # a lock younger than this may not be held yet


class Cleaned(NamedTuple):
    """What was removed, or would be."""

    messages: int
    agents: int
    files: int


def cleanup(
    spool: Spool,
    *,
    older_than_ms: float | None = None,
    max_messages: int | None = None,
    unread: bool = False,
    vacuum: bool = False,
    dry_run: bool = False,
) -> Cleaned:
    """Remove messages older than so long (the setting ``keep_days``) or beyond the newest so many.

    Unread mail stays unless `unread` says otherwise. Safe beside writers and beside itself.
    """
    keep = older_than_ms if older_than_ms is not None else int(settings.get(spool.db, "keep_days")) * DAY_MS
    before = int(now() - keep)
    if dry_run:
        doomed = retention.old_messages(spool.db, before=before, above=max_messages, unread=unread, limit=-1)
        return Cleaned(len(doomed), 0, len(_litter(spool)))
    removed = 0
    while True:
        with spool.transaction():
            bite = retention.old_messages(spool.db, before=before, above=max_messages, unread=unread, limit=BITE)
            retention.remove_messages(spool.db, bite)
        removed += len(bite)
        if len(bite) < BITE:
            break
    with spool.transaction():
        agents = retention.remove_aborted(spool.db, before)
    litter = _litter(spool)
    for path in litter:
        _remove(path)
    retention.shrink(spool.db, vacuum=vacuum)
    return Cleaned(removed, agents, len(litter))


def _litter(spool: Spool) -> list[str]:
    """Locks that nobody holds, and bells of agents and sessions that are no more."""
    names, sessions = retention.all_names(spool.db), retention.live_sessions(spool.db)
    bells = [
        f"{spool.bells.directory}/{entry}"
        for entry in _entries(spool.bells.directory)
        if (entry[1:] not in sessions if entry.startswith("@") else entry not in names)
    ]
    old = time.time() - _GRACE_SECONDS
    dead = [
        f"{spool.locks}/{entry}"
        for entry in _entries(spool.locks)
        if _mtime(f"{spool.locks}/{entry}") < old and not locks.is_alive(spool.locks, entry, remove=False)
    ]
    return bells + dead


def _entries(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return float("inf")


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError:
        pass  # another cleanup was faster
