"""Doorbells: one small file per agent beside the spool that says "there may be mail".

Invariant: a bell is never silent (empty) while mail is pending, whatever is killed when. So it is rung inside the
write transaction, and silenced only in a transaction that has seen an empty mailbox. A waiter watches its own bell:
a send wakes one process, however many wait.
"""

from __future__ import annotations

import os
import sys

from agentmail import private

PIPE = "@pipe"  # ends the name of a waiter's pipe; no agent's name has that sign


class Bells:
    """The bells of one spool."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path(self, name: str) -> str:
        """The file of the agent `name`; names differ by more than case."""
        return f"{self.directory}/{name.lower()}"

    def ring(self, name: str) -> None:
        """Make the bell ring, inside the write transaction: nobody is woken before there is something to see.

        ``truncate`` by name extends the file without opening it, so watchers of closing writers sleep on.
        """
        if self.is_ringing(name):
            return  # and nobody can silence it before our commit
        try:
            os.truncate(self.path(name), 1)
        except FileNotFoundError:
            self.hang(name)
            os.truncate(self.path(name), 1)

    def strike(self, name: str) -> None:
        """Wake those who watch the bell, after the commit. Never fails: polling is behind it.

        It stays as it is: inotify tells of a writer's closing even if it wrote nothing, and ext4 takes a millisecond
        to store a byte in a file that was just emptied.
        """
        try:
            fd = os.open(self.path(name), os.O_WRONLY)
            try:
                if sys.platform != "linux":
                    os.pwrite(fd, b"!", 0)
            finally:
                os.close(fd)
        except OSError:
            pass
        self._write_to_pipe(name)

    def _write_to_pipe(self, name: str) -> None:
        """Wake the waiters that got no watch; usually there is no pipe, or nobody at it."""
        try:
            fd = os.open(self.path(name) + PIPE, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return
        try:
            os.write(fd, b"!")
        except OSError:
            pass
        finally:
            os.close(fd)

    def silence(self, name: str) -> None:
        """Empty the bell, inside a transaction that has seen an empty mailbox."""
        try:
            os.truncate(self.path(name), 0)
        except OSError:
            pass

    def is_ringing(self, name: str) -> bool:
        """Whether there may be mail."""
        try:
            return os.stat(self.path(name)).st_size > 0
        except OSError:
            return False

    def link(self, session: str, name: str) -> None:
        """Let a hook find the bell by its harness's session id alone, without starting an interpreter."""
        directory = self._of_session(session)
        if not directory:
            return
        try:
            private.make_directory(directory)
            os.symlink(f"../{name.lower()}", f"{directory}/{name.lower()}")
        except OSError:
            pass  # it is there already; or hooks run a little slower

    def unlink(self, session: str) -> None:
        """Forget the bells of a session that has ended."""
        directory = self._of_session(session)
        if not directory:
            return
        try:
            for name in os.listdir(directory):
                os.unlink(f"{directory}/{name}")
            os.rmdir(directory)
        except OSError:
            pass

    def _of_session(self, session: str) -> str | None:
        """Where a session's hooks look; None if the id is no file name, or not the same in JSON and in the shell."""
        if not session.isprintable() or any(letter in session for letter in '/"\\') or len(session) > 60:
            return None
        return f"{self.directory}/@{session}"

    def hang(self, name: str) -> None:
        """Create the bell, silent, if it is not there yet. Raises `OSError`."""
        private.make_directory(self.directory)
        os.close(private.open_file(self.path(name), os.O_WRONLY | os.O_CREAT))
