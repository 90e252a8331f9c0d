"""From a harness's edits to the changes of files: all are known before the first file is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentmail.errors import BadInput
from agentmail.install import files
from agentmail.install.files import BACKUP, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agentmail.install.edits import Edit

_BOM = "\ufeff"


class Place(NamedTuple):
    """Where to install, and for which spool."""

    home: str
    project: str | None  # the work tree; None is the user's level
    spool: str
    spool_is_default: bool

    @property
    def fixed_spool(self) -> str | None:
        """The spool to name in commands; None if they find it by themselves."""
        return None if self.spool_is_default else self.spool


class Harness(NamedTuple):
    """How to install into one harness."""

    kind: str
    title: str
    program: str
    base: Callable[[Place], str]  # its directory of configuration
    edits: Callable[[Place], list[Edit]]
    notes: Callable[[Place], list[str]]  # what is left to the user


def install(edits: Iterable[Edit]) -> list[Change]:
    """The changes that put ours in. Raises `BadInput` if a file cannot be understood."""
    return [_installed(edit) for edit in edits]


def uninstall(edits: Iterable[Edit]) -> list[Change]:
    """The changes that take ours out. Raises `BadInput`."""
    return [_uninstalled(edit) for edit in edits]


def is_installed(edits: Iterable[Edit]) -> bool:
    """Whether something of ours is in one of the files; what cannot be read counts as no."""
    for edit in edits:
        try:
            text = _text(edit, files.read(edit.path))[1]
            if edit.is_marked(text):
                return True
        except (BadInput, ValueError):
            continue
    return False


def _installed(edit: Edit) -> Change:
    old = files.read(edit.path)
    bom, text = _text(edit, old)
    try:
        new = (bom + edit.apply(text)).encode()
        keep = old is not None and not edit.is_marked(text) and files.read(edit.path + BACKUP) is None
    except ValueError as error:
        raise _refused(edit, error) from error
    return Change(edit.path, old, new, keep and old != new)


def _uninstalled(edit: Edit) -> Change:
    """What was before ours, byte for byte, if nothing else has changed since; else what is there, less ours."""
    now = files.read(edit.path)
    if now is None:
        return Change(edit.path, None, None)
    original = files.read(edit.path + BACKUP)
    bom, text = _text(edit, now)
    try:
        before = _text(edit, original)[1]
        bare = edit.remove(text, before)
        if bare == text:
            return Change(edit.path, now, now)
        if edit.apply(text) == edit.apply(before):
            return Change(edit.path, now, original)
        if original is None and edit.is_void(bare):
            return Change(edit.path, now, None)
    except ValueError as error:
        raise _refused(edit, error) from error
    return Change(edit.path, now, (bom + bare).encode())


def _text(edit: Edit, content: bytes | None) -> tuple[str, str]:
    """The byte order mark, if there is one, and the text after it."""
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{edit.path} is not UTF-8 (byte {error.start}); nothing was changed") from error
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _refused(edit: Edit, error: ValueError) -> BadInput:
    return BadInput(f"cannot edit {edit.path}: {error}; nothing was changed")
