"""Files of the user's: read whole, replaced in one step, kept as they were beside."""

from __future__ import annotations

import difflib
import os
import stat
from typing import NamedTuple

from agentmail.errors import BadInput

BACKUP = ".agentmail-backup"


class Change(NamedTuple):
    """What a file holds, and what it shall hold; None is no file."""

    path: str
    old: bytes | None
    new: bytes | None
    backup: bool = False  # keep the old content beside it

    @property
    def outcome(self) -> str:
        """In one word."""
        if self.old == self.new:
            return "unchanged" if self.new is not None else "absent"
        if self.old is None:
            return "created"
        return "removed" if self.new is None else "changed"

    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        old, new = (_lines(content) for content in (self.old, self.new))
        before = "/dev/null" if self.old is None else self.path
        after = "/dev/null" if self.new is None else self.path
        lines = difflib.unified_diff(old, new, before, after)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def read(path: str) -> bytes | None:
    """The content, None if there is no file. Raises `BadInput`."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}; nothing was changed"
        ) from error


def carry_out(change: Change) -> None:
    """Make the file what it shall be: at once or not at all, through symlinks, with its mode and owner kept."""
    if change.old == change.new:
        return
    real = os.path.realpath(change.path)
    before = os.stat(real) if change.old is not None else None
    if change.backup and change.old is not None:
        _write(change.path + BACKUP, change.old, before)
    if change.new is None:
        os.unlink(real)
    else:
        os.makedirs(os.path.dirname(real), exist_ok=True)
        _write(real, change.new, before)


def forget_backup(path: str) -> None:
    """Remove the backup of a file, if there is one."""
    try:
        os.unlink(path + BACKUP)
    except FileNotFoundError:
        pass


def sweep(path: str, base: str) -> None:
    """Remove the directories from that of `path` up to `base` that hold nothing any more."""
    place = os.path.dirname(path)
    while place.startswith(base):
        try:
            os.rmdir(place)
        except OSError:
            return
        place = os.path.dirname(place)


def _write(path: str, content: bytes, like: os.stat_result | None) -> None:
    temporary = f"{path}.agentmail-{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if like else 0o666)
    try:
        try:
            if like:
                mine = os.fstat(fd)
                if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            left = memoryview(content)
            while left:
                left = left[os.write(fd, left) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)
