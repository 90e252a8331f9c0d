"""Creating and upgrading a spool. Imported only when there is something to do."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from agentmail import private
from agentmail.errors import SpoolUnusable
from agentmail.isolation import admit_third_party
from agentmail.spool import SCHEMA_VERSION
from agentmail.spool.database import Database
from agentmail.spool.faults import unwritable

SCHEMA = Path(__file__).parent / "schema"


def create_files(path: str) -> None:
    """Make the spool's directory (0700) and an empty file (0600), whatever the umask. An existing file stays."""
    directory = os.path.dirname(path)
    try:
        if not os.path.isdir(directory):
            os.makedirs(os.path.dirname(directory), exist_ok=True)
            private.make_directory(directory)
        os.close(private.open_file(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
    except OSError as error:
        raise unwritable(path, (error.strerror or str(error)).lower()) from error


def upgrade(database: Database, version: int) -> None:
    """Bring the schema from `version` to the newest, all in one transaction, one process at a time.

    Raises `SpoolUnusable` if the spool is newer than this program; it is then left untouched.
    """
    if version > SCHEMA_VERSION:
        raise SpoolUnusable(
            f"the spool {database.path} has version {version} and this agentmail knows {SCHEMA_VERSION};"
            " upgrade agentmail-spool"
        )
    with _one_at_a_time(database.path):
        version = database.value("PRAGMA user_version")
        if not _is_ours(database, version):
            raise SpoolUnusable(f"{database.path} is not an agentmail spool; name another file with --spool")
        if database.value("PRAGMA journal_mode = WAL") != "wal":
            raise SpoolUnusable(f"{database.path} cannot keep a write-ahead log; put the spool on a local disk")
        admit_third_party()
        from sqlite_utils import Database as Tables

        tables = Tables(database.connection)
        with database.transaction():
            for migration in sorted(SCHEMA.glob("*.sql"))[version:]:
                tables.executescript(migration.read_text("utf-8"))
            database.run(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _is_ours(database: Database, version: int) -> bool:
    """Whether the file is empty, or a spool: other programs number their versions, too."""
    if version == 0:
        return not database.value("SELECT count(*) FROM sqlite_schema")
    return bool(database.value("SELECT count(*) FROM sqlite_schema WHERE name = 'receipt_stored'"))


class _one_at_a_time:  # noqa: N801 - reads as a statement
    """A kernel lock beside the spool: switching to WAL cannot wait for its turn inside SQLite."""

    def __init__(self, path: str) -> None:
        self._fd = private.open_file(path + "-create", os.O_RDWR | os.O_CREAT)

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
