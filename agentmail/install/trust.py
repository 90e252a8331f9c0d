"""Codex's trust in hooks, stored by the user's explicit ``--trust`` and by nothing else.

Seen with 0.171.0: ``codex app-server`` tells each hook's key and hash; ``[hooks.state."KEY"] trusted_hash`` in the
user's ``config.toml`` is what its own dialog would store.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from agentmail import __version__
from agentmail.errors import BadInput
from agentmail.install import codex, files
from agentmail.install.edits import Toml
from agentmail.install.settings import commands, is_ours

if TYPE_CHECKING:
    from agentmail.install.edits import Edit
    from agentmail.install.plan import Place

_SECONDS = 30.0
_EVENTS = {"SessionStart": "session_start", "UserPromptSubmit": "user_prompt_submit", "PreToolUse": "pre_tool_use"}
_EVENTS |= {"PostToolUse": "post_tool_use", "Stop": "stop", "SessionEnd": "session_end"}


def require_program() -> str:
    """The path of Codex. Raises `BadInput`."""
    found = shutil.which("codex")
    if found is None:
        raise BadInput(
            "--trust asks Codex for the hashes of the hooks, and 'codex' is not in the PATH; nothing was done"
        )
    return found


def granted(place: Place) -> Toml:
    """The edit that stores the trust in the hooks that are installed now. Raises `BadInput`."""
    path = codex.hooks_file(place)
    content = files.read(path)
    ours = set(_ours(place, (content or b"").decode("utf-8-sig")))
    found = [
        (hook["key"], hook["currentHash"])
        for hook in _ask(require_program(), place.project or place.home)
        if os.path.realpath(str(hook.get("sourcePath"))) == os.path.realpath(path) and hook.get("command") in ours
    ]
    if not found:
        raise BadInput(
            f"the files are written, but Codex does not know the hooks in {path}; trust them in its /hooks"
        )
    values = tuple((("hooks", "state", str(key), "trusted_hash"), str(digest)) for key, digest in found)
    return Toml(f"{codex.home(place)}/config.toml", forced=values)


def withdrawn(edits: list[Edit], place: Place) -> list[Edit]:
    """The edits, and that the trust in our hooks is taken out with them."""
    path, tables = f"{codex.home(place)}/config.toml", _tables(place)
    with_trust: list[Edit] = [
        edit._replace(tables=tables) if isinstance(edit, Toml) and edit.path == path else edit for edit in edits
    ]
    if place.project and tables:
        with_trust.append(Toml(path, tables=tables))
    return with_trust


def _tables(place: Place) -> tuple[tuple[str, ...], ...]:
    """The tables of the trust in our hooks, wherever they are in the file of hooks now."""
    path = codex.hooks_file(place)
    try:
        text = (files.read(path) or b"").decode("utf-8-sig")
        hooks = json.loads(text)["hooks"]
    except (ValueError, KeyError, TypeError):
        return ()
    ours = set(_ours(place, text))
    return tuple(
        ("hooks", "state", f"{source}:{_EVENTS[event]}:{group}:{index}")
        for source in dict.fromkeys((path, os.path.realpath(path)))
        for event in _EVENTS
        for group, entry in enumerate(hooks.get(event, ()))
        for index, hook in enumerate(entry.get("hooks", ()))
        if hook.get("command") in ours
    )


def _ours(place: Place, text: str) -> list[str]:
    return [command for command in commands(text) if is_ours(command, codex.KIND)]


def _ask(program: str, directory: str) -> list[dict[str, Any]]:
    """All hooks that Codex knows in `directory`."""
    client = {"name": "agentmail", "title": "agentmail", "version": __version__}
    requests = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"clientInfo": client}},
        {"jsonrpc": "2.0", "method": "initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "hooks/list", "params": {"cwds": [directory]}},
    )
    server = subprocess.Popen(
        [program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        if server.stdin is None or server.stdout is None:
            raise BadInput("cannot talk to Codex")
        server.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        server.stdin.flush()
        answer = _answer(server.stdout.fileno(), 2)
        return [hook for place in answer["result"]["data"] for hook in place["hooks"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput("the files are written, but Codex did not tell its hooks; trust them in its /hooks") from error
    finally:
        server.kill()
        server.wait()


def _answer(fd: int, number: int) -> dict[str, Any]:
    """The answer to a request, from newline-delimited JSON. Raises `ValueError`."""
    text, deadline = b"", time.monotonic() + _SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while selector.select(deadline - time.monotonic()):
            piece = os.read(fd, 1 << 16)
            if not piece:
                break
            text += piece
            *lines, text = text.split(b"\n")
            for line in lines:
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == number:
                    return message
    raise ValueError("no answer")
