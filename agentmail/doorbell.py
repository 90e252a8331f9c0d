"""Waiting at a bell: inotify on Linux, kqueue on macOS and BSD, and time alone elsewhere.

It is an optimization over polling: `Doorbell.wait` returns now and then although nothing happened, so that whoever
waits looks again. A lost notice costs no more than that.
"""

from __future__ import annotations

import os
import select
import sys
import time

from agentmail.bells import PIPE
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
    for means in _MEANS:
        try:
            return means(path)
        except (OSError, AttributeError):
            pass  # no watches left, or a system library without them
    return Doorbell()


if sys.platform == "linux":

    class _Polled(Doorbell):
        """Waits until one of its descriptors, the bell's first, has something to read."""

        def __init__(self, fd: int) -> None:
            super().__init__()
            self._fds = [fd]
            self._poll = select.poll()
            self._poll.register(fd, select.POLLIN)

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
                    self._hear(fd)
                else:
                    self._poll.unregister(fd)  # an ended process would be news for ever
            return bool(happened)

        def close(self) -> None:
            for fd in self._fds:
                os.close(fd)
            self._fds = []

        def _hear(self, fd: int) -> None:
            try:
                os.read(fd, 4096)
            except BlockingIOError:
                pass  # another waiter of this agent was faster

    class _Watch(_Polled):
        """Sees the bell file being closed by a writer."""

        def __init__(self, path: str) -> None:
            import ctypes

            close_write = 0x8  # what `Bells.strike` causes and `Bells.ring` does not
            libc = ctypes.CDLL(None, use_errno=True)
            fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
            if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(path), close_write) < 0:
                if fd >= 0:
                    os.close(fd)
                raise OSError(ctypes.get_errno(), "inotify is not available")
            super().__init__(fd)

    class _Pipe(_Polled):
        """Reads a named pipe beside the bell: Linux grants a user 128 watchers, editors and waiters together."""

        def __init__(self, path: str) -> None:
            try:
                os.mkfifo(path + PIPE, 0o600)
            except FileExistsError:
                pass
            super().__init__(os.open(path + PIPE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))

    _MEANS: tuple[Callable[[str], Doorbell], ...] = (_Watch, _Pipe)

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

    _MEANS = (_Watch,)

else:
    _MEANS = ()
