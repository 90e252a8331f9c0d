"""One connection to a SQLite spool: queries, write transactions, and failures in words."""

from __future__ import annotations

import _sqlite3 as sqlite3  # what `sqlite3` is made of, without its converters of dates: a fifth of a cold start
from time import monotonic

from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

BUSY_SECONDS = 10.0
LOOK_SECONDS = 0.02  # SQLite looks for a lock ever less often, and starves beside busy writers unless asked anew


class Database:
    """A connection whose writers all go through `transaction`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._transaction = Transaction(self)
        try:
            # One thread at a time uses it; which one is the caller's affair.
            self.connection = sqlite3.connect(
                path, timeout=LOOK_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        """All rows that `sql` gives; `:name` in it stands for the value of that name."""
        try:
            return self._execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def row(self, sql: str, **values: object) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        found = self.rows(sql, **values)
        return found[0] if found else None

    def value(self, sql: str, **values: object) -> Any:
        """The first column of the first row, or None."""
        found = self.rows(sql, **values)
        return found[0][0] if found else None

    def run(self, sql: str, **values: object) -> int:
        """Carry out `sql` and give the number of rows that it changed itself (not by triggers)."""
        try:
            return self._execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def run_many(self, sql: str, values: list[dict[str, object]]) -> None:
        """Carry out `sql` once for each set of values."""
        try:
            self.connection.executemany(sql, values)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def transaction(self) -> Transaction:
        """Everything in the ``with`` block is written, or nothing; no other writer comes between."""
        return self._transaction

    def changed(self) -> int:
        """A number that differs from its last value if another connection has written since."""
        return int(self.value("PRAGMA data_version"))

    def close(self) -> None:
        """Give the connection up; safe to call twice."""
        self.connection.close()

    def _execute(self, sql: str, values: dict[str, object]) -> sqlite3.Cursor:
        deadline = None
        while True:
            try:
                return self.connection.execute(sql, values)
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or (deadline and monotonic() > deadline):
                    raise
                deadline = deadline or monotonic() + BUSY_SECONDS

    def _unusable(self, error: sqlite3.Error) -> Exception:
        from agentmail.spool.faults import explain  # only when something is wrong

        return explain(error, self.path)


class Transaction:
    """``BEGIN IMMEDIATE`` … ``COMMIT``, or ``ROLLBACK`` after any exception."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.run("BEGIN IMMEDIATE")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._database.run("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        # SQLite may have rolled back by itself, after a full disk for one.
        if self._database.connection.in_transaction:
            self._database.connection.execute("ROLLBACK")
