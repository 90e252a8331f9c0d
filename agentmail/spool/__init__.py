"""The spool: the database file and what stands beside it. The only layer with SQL in it."""

from __future__ import annotations

import os
import stat

from agentmail.bells import Bells
from agentmail.errors import SpoolUnusable
from agentmail.spool.database import Database, Transaction
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WAL_PAGES = 100  # whoever opens the spool after a crash, or after a cold call, reads so many at most
SCHEMA_VERSION = 3  # the number of the newest file in schema/


class Spool:
    """An open spool: its database, its bells and the locks of its readers."""

    def __init__(self, path: str, database: Database) -> None:
        self.path = path
        self.db = database
        self.bells = Bells(path + "-bells")
        self.locks = path + "-locks"

    def transaction(self) -> Transaction:
        """All of the ``with`` block is written, or nothing."""
        return self.db.transaction()

    def close(self) -> None:
        """Give the connection up."""
        self.db.close()


def open_spool(path: str) -> Spool:
    """Open the spool at `path`, creating or upgrading it where needed.

    Raises `SpoolUnusable` if it cannot be used safely: it or its directory belongs to somebody else or can be written
    by others, it is no regular file, no spool, or of a newer version.
    """
    path = os.path.abspath(path)
    try:
        _check_owner(os.path.dirname(path), stat.S_ISDIR)
        _check_owner(path, stat.S_ISREG)
    except FileNotFoundError:
        from agentmail.spool.create import create_files

        create_files(path)
        _check_owner(os.path.dirname(path), stat.S_ISDIR)
    database = Database(path)
    version = database.value("PRAGMA user_version")
    if version != SCHEMA_VERSION:
        from agentmail.spool.create import upgrade

        upgrade(database, version)
    database.run("PRAGMA synchronous = FULL")
    database.run("PRAGMA foreign_keys = ON")
    database.run(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    return Spool(path, database)


def _check_owner(path: str, is_right_type: Callable[[int], bool]) -> None:
    found = os.stat(path)
    if not is_right_type(found.st_mode):
        raise SpoolUnusable(f"{path} is not what a spool needs there; name another file with --spool")
    if found.st_uid != os.geteuid():
        raise SpoolUnusable(f"{path} belongs to another user; name a spool of your own with --spool")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SpoolUnusable(f"others can write {path}; take that away with 'chmod go-w {path}'")
