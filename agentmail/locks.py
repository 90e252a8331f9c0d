"""Proof of life: a file that a process keeps locked for as long as it lives.

The kernel releases the lock whatever ends the process, and the answer is right from inside any pid namespace, where
a pid means nothing.
"""

from __future__ import annotations

import os

from agentmail import private
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Holder:
    """A token that is alive until it is released or the process ends."""

    def __init__(self, directory: str) -> None:
        self.token = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._path = f"{directory}/{self.token}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            self._fd = private.open_file(self._path, flags)
        except FileNotFoundError:
            private.make_directory(directory)
            self._fd = private.open_file(self._path, flags)
        from fcntl import LOCK_EX, flock  # most calls hold no lock and ask for none

        flock(self._fd, LOCK_EX)
        self._last: Callable[[], None] | None = None

    def release(self) -> None:
        """Be dead for everybody else; safe to call twice."""
        if self._fd >= 0:
            _remove(self._path)
            os.close(self._fd)
            self._fd = -1
            if self._last:
                self._last()

    def when_released(self, last: Callable[[], None]) -> None:
        """Do something slow once there is no hurry any more."""
        self._last = last


def is_alive(directory: str, token: str, *, remove: bool = True) -> bool:
    """Whether the process that made `token` still holds it. A dead one's file is removed, unless told otherwise."""
    path = f"{directory}/{token}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    from fcntl import LOCK_NB, LOCK_SH, flock

    try:
        flock(fd, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    if remove:
        _remove(path)
    return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
