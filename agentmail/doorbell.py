"""Waiting at a bell: inotify on Linux, kqueue on macOS and BSD, and time alone elsewhere.

It is an optimization over polling: whoever waits here looks again at least once a second, so a lost notice costs no
more than that.
"""

from __future__ import annotations

import os
import select
import sys
import time


class Doorbell:
    """Where there is no notification: sleep."""

    def __enter__(self) -> Doorbell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self, seconds: float) -> None:
        """Return when the bell is struck, a watched process ends, or `seconds` have passed."""
        time.sleep(seconds)

    def watch_process(self, pid: int) -> None:
        """Return from `wait` also when the process `pid` ends, where the system can tell."""

    def close(self) -> None:
        """Stop watching."""


def open_doorbell(path: str) -> Doorbell:
    """Watch the bell at `path` by the best means at hand."""
    try:
        return _Watch(path)
    except (OSError, AttributeError):
        return Doorbell()  # no watches left, or a system library without them


if sys.platform == "linux":

    class _Watch(Doorbell):
        def __init__(self, path: str) -> None:
            import ctypes

            close_write = 0x8  # what `Bells.strike` causes and `Bells.ring` does not
            libc = ctypes.CDLL(None, use_errno=True)
            self._fds = [libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)]
            if self._fds[0] < 0 or libc.inotify_add_watch(self._fds[0], os.fsencode(path), close_write) < 0:
                self.close()
                raise OSError(ctypes.get_errno(), "inotify is not available")
            self._poll = select.poll()
            self._poll.register(self._fds[0], select.POLLIN)

        def watch_process(self, pid: int) -> None:
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                return
            self._fds.append(fd)
            self._poll.register(fd, select.POLLIN)

        def wait(self, seconds: float) -> None:
            for fd, _ in self._poll.poll(max(1, round(seconds * 1000))):
                if fd == self._fds[0]:
                    os.read(fd, 4096)
                else:
                    self._poll.unregister(fd)  # an ended process would be news for ever

        def close(self) -> None:
            for fd in self._fds:
                if fd >= 0:
                    os.close(fd)
            self._fds = []

elif sys.platform != "win32":

    class _Watch(Doorbell):
        def __init__(self, path: str) -> None:
            self._fd = os.open(path, os.O_RDONLY)
            self._queue = select.kqueue()
            self._add(self._fd, select.KQ_FILTER_VNODE, select.KQ_NOTE_WRITE)

        def _add(self, ident: int, kind: int, notes: int) -> None:
            self._queue.control([select.kevent(ident, kind, select.KQ_EV_ADD | select.KQ_EV_CLEAR, notes)], 0)

        def watch_process(self, pid: int) -> None:
            try:
                self._add(pid, select.KQ_FILTER_PROC, select.KQ_NOTE_EXIT)
            except OSError:
                pass

        def wait(self, seconds: float) -> None:
            self._queue.control(None, 8, max(0.001, seconds))

        def close(self) -> None:
            self._queue.close()
            os.close(self._fd)
