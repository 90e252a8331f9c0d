"""Files and directories that only their owner may use, whatever the umask of the process that makes them."""

from __future__ import annotations

import os


def make_directory(path: str) -> None:
    """Create a directory with mode 0700, if it is not there yet. Raises `OSError`."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    os.chmod(path, 0o700)


def open_file(path: str, flags: int) -> int:
    """Open a file, creating it with mode 0600 if `flags` say so. Raises `OSError`."""
    fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    if flags & os.O_CREAT:
        os.fchmod(fd, 0o600)
    return fd
