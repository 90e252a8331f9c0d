"""Waiting at a bell: inotify on Linux, kqueue on macOS and BSD, and time alone elsewhere.

It is an optimization over polling: `Doorbell.wait` returns now and then although nothing happened, so that whoever
waits looks again. A lost notice costs no more than that.
"""

from __future__ import annotations

import os
import select
import sys
import time

POLL_SECONDS = 1.0
LONGEST_POLL_SECONDS = 5.0


class Doorbell:
    """Where there is no notification: sleep."""

    def __init__(self) -> None:
        self._opened = time.monotonic()

    def __enter__(self) -> Doorbell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self, seconds: float) -> bool:
        """Return when the bell is struck, a watched process ends, it is time to look, or `seconds` have passed.

        True if something happened for sure.
        """
        time.sleep(min(seconds, POLL_SECONDS))
        return False

    def watch_process(self, pid: int) -> None:
        """Return from `wait` also when the process `pid` ends, where the system can tell."""

    def close(self) -> None:
        """Stop watching."""

    def _patience(self) -> float:
        """Seconds until to look without a notice, which is rarely lost: longer, the longer the wait has been already.

        Two hundred waiters that look every second take 2 to 5 percent of a core, most of it for waking up at all.
        """
        return min(LONGEST_POLL_SECONDS, max(POLL_SECONDS, (time.monotonic() - self._opened) / 4))


def open_doorbell(path: str) -> Doorbell:
    """Watch the bell at `path` by the best means at hand."""
    try:
        return _Watch(path)
    except (OSError, AttributeError):
        return Doorbell()  # no watches left, or a system library without them


if sys.platform == "linux":

    class _Watch(Doorbell):
        def __init__(self, path: str) -> None:
            super().__init__()
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

        def wait(self, seconds: float) -> bool:
            happened = self._poll.poll(max(1, round(min(seconds, self._patience()) * 1000)))
            for fd, _ in happened:
                if fd == self._fds[0]:
                    os.read(fd, 4096)
                else:
                    self._poll.unregister(fd)  # an ended process would be news for ever
            return bool(happened)

        def close(self) -> None:
            for fd in self._fds:
                if fd >= 0:
                    os.close(fd)
            self._fds = []

elif sys.platform != "win32":

    class _Watch(Doorbell):
        def __init__(self, path: str) -> None:
            super().__init__()
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

        def wait(self, seconds: float) -> bool:
            return bool(self._queue.control(None, 8, max(0.001, min(seconds, self._patience()))))

        def close(self) -> None:
            self._queue.close()
            os.close(self._fd)
