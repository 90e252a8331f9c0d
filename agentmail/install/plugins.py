"""OpenCode and oh-my-pi: harnesses that load a program of ours instead of running commands.

OpenCode, seen with 1.18.33: a plugin in ``~/.config/opencode/plugin/`` or a project's ``.opencode/plugin/``;
``permission.bash`` in ``opencode.json`` or ``opencode.jsonc``, of whose rules the last that matches counts (ours lets
the bare command, here-documents and also redirections pass; with no rule at all, every command may run);
``AGENTS.md``. It adds ``$schema`` to that file by itself.

oh-my-pi, documented for 18: extensions in ``~/.omp/agent/extensions/`` (``PI_CODING_AGENT_DIR`` is heeded) or a
project's ``.omp/extensions/``; skills in ``skills/NAME/SKILL.md``; commands need no approval by default.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from agentmail.errors import BadInput
from agentmail.hooks import guard
from agentmail.install import files, skill
from agentmail.install.document import Document
from agentmail.install.edits import MARK, Own, Section
from agentmail.install.plan import Harness
from agentmail.install.settings import Settings

if TYPE_CHECKING:
    from agentmail.install.edits import Edit
    from agentmail.install.plan import Place

_PROGRAM = re.compile(r"^(const AGENTMAIL\b[^=\n]*= ?).*$", re.MULTILINE)
_RULE = ("permission", "bash", "agentmail *")


def _plugin(place: Place, name: str, kind: str) -> str:
    """The program with the words to start agentmail by, whatever the PATH."""
    try:
        text = skill.data(name)
    except FileNotFoundError as error:
        raise BadInput(f"this version of agentmail has no plugin for {kind}") from error
    words = guard.program() + (["--spool", place.fixed_spool] if place.fixed_spool else [])
    line = json.dumps(words, ensure_ascii=False)
    text, count = _PROGRAM.subn(lambda match: f"{match[1]}{line};", text, count=1)
    if not count:
        raise BadInput(f"the plugin for {kind} has no line that names agentmail; this is a mistake in agentmail")
    return f"// {MARK} {kind}'; it is replaced by the next one.\n{text}"


def _opencode_base(place: Place) -> str:
    if place.project:
        return f"{place.project}/.opencode"
    return f"{os.environ.get('XDG_CONFIG_HOME') or place.home + '/.config'}/opencode"


def _opencode_settings(place: Place) -> str:
    directory = place.project or _opencode_base(place)
    commented = f"{directory}/opencode.jsonc"
    return commented if os.path.exists(commented) else f"{directory}/opencode.json"


def _opencode_edits(place: Place) -> list[Edit]:
    base = _opencode_base(place)
    return [
        Own(f"{base}/plugin/agentmail.js", _plugin(place, "opencode.js", "opencode")),
        Settings(_opencode_settings(place), "opencode", values=((_RULE, "allow"),)),
        Section(f"{place.project or base}/AGENTS.md", skill.body()),
    ]


def _opencode_notes(place: Place) -> list[str]:
    content = files.read(_opencode_settings(place)) or b""
    document = Document(content.decode("utf-8-sig"))
    node = document.get(_RULE[:1])
    if node is not None and isinstance(node.value, dict):
        node = document.get(_RULE[:2])
    if node is None or not isinstance(node.value, str) or node.value == "allow":
        return []
    wanted = json.dumps({"bash": {"*": node.value, "agentmail *": "allow"}})
    return [f"{_opencode_settings(place)} says {node.value!r} to all commands; to let mail pass: {wanted}"]


def _omp_base(place: Place) -> str:
    if place.project:
        return f"{place.project}/.omp"
    return os.environ.get("PI_CODING_AGENT_DIR") or f"{place.home}/.omp/agent"


def _omp_edits(place: Place) -> list[Edit]:
    base = _omp_base(place)
    return [
        Own(f"{base}/extensions/agentmail.ts", _plugin(place, "omp.ts", "omp")),
        Own(f"{base}/skills/agentmail/SKILL.md", skill.whole("omp")),
    ]


OPENCODE = Harness("opencode", "OpenCode", "opencode", _opencode_base, _opencode_edits, _opencode_notes)
OMP = Harness("omp", "oh-my-pi", "omp", _omp_base, _omp_edits, lambda place: [])
