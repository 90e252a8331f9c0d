"""Every harness that can be installed into, and what is the same for all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from agentmail.errors import BadInput
from agentmail.install.claude import CLAUDE
from agentmail.install.codex import CODEX
from agentmail.install.gemini import GEMINI
from agentmail.install.plan import Place, is_installed
from agentmail.install.plugins import OMP, OPENCODE
from agentmail.names import work_tree
from agentmail.paths import FILE, spool_path, state_directory

if TYPE_CHECKING:
    from agentmail.install.plan import Harness

HARNESSES = {harness.kind: harness for harness in (CLAUDE, CODEX, GEMINI, OPENCODE, OMP)}


def known(kind: str) -> Harness:
    """The harness of that name. Raises `BadInput`."""
    if kind not in HARNESSES:
        raise BadInput(f"there is no harness {kind!r}; the harnesses are {', '.join(HARNESSES)}")
    return HARNESSES[kind]


def place_of(project: bool, spool: str | None) -> Place:
    """Where to install. Raises `BadInput`."""
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise BadInput("there is no home directory; set HOME")
    path = os.path.abspath(spool_path(spool))
    tree = work_tree(os.getcwd()) if project else None
    if tree is not None and tree == os.path.realpath(home):
        raise BadInput("--project in the home directory would be the user's level; leave it out, or go to a project")
    return Place(home.rstrip("/"), tree, path, path == f"{state_directory()}/{FILE}")


def is_present(harness: Harness, place: Place) -> bool:
    """Whether the harness itself seems to be on this machine."""
    return shutil.which(harness.program) is not None or os.path.isdir(harness.base(place))


def is_there(harness: Harness, place: Place) -> bool:
    """Whether we are installed in it."""
    try:
        return is_installed(harness.edits(place))
    except BadInput:
        return False


def shared_paths(harness: Harness, place: Place) -> set[str]:
    """Files that another harness, into which we are installed too, needs as well."""
    others = (other for other in HARNESSES.values() if other is not harness)
    paths = {edit.path for edit in harness.edits(place)}
    found: set[str] = set()
    for other in others:
        try:
            edits = other.edits(place)
        except BadInput:
            continue
        if is_installed(edit for edit in edits if edit.path not in paths):
            found |= {edit.path for edit in edits} & paths
    return found


def path_warning() -> list[str]:
    """A line if an agent's login shell would not find the command."""
    bash = shutil.which("bash")
    if bash is None:
        return []
    try:
        found = subprocess.run(
            [bash, "-lc", "command -v agentmail"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if found.returncode == 0 and found.stdout.strip():
        return []
    command = os.path.join(os.path.dirname(sys.executable), "agentmail")
    hint = f"ln -s {command} ~/.local/bin/" if os.path.exists(command) else "put it into a directory of the PATH"
    return [f"a login shell does not find 'agentmail', and agents run in one: {hint}, or set PATH in ~/.profile"]
