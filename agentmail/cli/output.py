"""Writing to the terminal, a pipe or a file so that "written" means written."""

from __future__ import annotations

import os
import stat

from agentmail.errors import NotDelivered, Terminated

STDOUT, STDERR = 1, 2


class PipeClosed(NotDelivered):
    """Whoever read our output has gone. Ends quietly."""


def write(text: str) -> None:
    """Write `text` and a line end to stdout, all of it, as UTF-8 whatever the locale.

    Raises `PipeClosed`, or `NotDelivered` for a full disk or a closed stdout.
    """
    left = memoryview((text + "\n").encode())
    try:
        while left:
            left = left[_write_some(left) :]
        if _reader_has_gone():
            raise PipeClosed("the reader of the output has gone")
    except BrokenPipeError as error:
        raise PipeClosed("the reader of the output has gone") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NotDelivered(f"cannot write to standard output ({reason}); nothing was consumed") from error


def warn(text: str) -> None:
    """One line on stderr. A closed stderr changes nothing."""
    try:
        os.write(STDERR, f"agentmail: {text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def guard_descriptors() -> None:
    """Occupy a closed stdin, stdout or stderr, read-only.

    Otherwise the next file opened, the spool for one, would be number 1, and our text would be written into it.
    """
    for fd in (0, STDOUT, STDERR):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)


def end_cleanly_on_sigterm() -> None:
    """Let SIGTERM unwind like Ctrl-C does, so that what was claimed is given back at once."""
    import signal  # imports enum: only a command that will block can afford it

    def terminate(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)


def _write_some(data: memoryview) -> int:
    try:
        return os.write(STDOUT, data)
    except BlockingIOError:  # some harnesses leave their children a pipe that never blocks
        import select

        poll = select.poll()
        poll.register(STDOUT, select.POLLOUT)
        poll.poll()
        return 0


def _reader_has_gone() -> bool:
    """Whether stdout is a pipe whose reader left without taking what we wrote (``| head -0``)."""
    if not stat.S_ISFIFO(os.fstat(STDOUT).st_mode):
        return False
    import select

    poll = select.poll()
    poll.register(STDOUT, 0)  # errors and hang-ups are always reported
    return any(events & select.POLLERR for _, events in poll.poll(0)) and _is_something_left()


def _is_something_left() -> bool:
    import termios
    from fcntl import ioctl

    return ioctl(STDOUT, termios.FIONREAD, b"\0" * 4) != b"\0" * 4
