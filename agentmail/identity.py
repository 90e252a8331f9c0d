"""Who is calling: the facts about this process that decide which agent it is. Reads no spool."""

from __future__ import annotations

import os

from agentmail import processes
from agentmail.values import NamedTuple

HUMAN = "human"


class Harness(NamedTuple):
    """How a program that runs agents shows itself in the environment of what it starts."""

    kind: str
    markers: tuple[str, ...]  # variables that are set in its hooks or tool calls
    sessions: tuple[str, ...]  # variables that hold its session id
    programs: tuple[str, ...]  # what its process may be called
    many_sessions: bool = False  # one process may run several sessions


# Seen in the real programs: Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, OpenCode 1.18, oh-my-pi 18.2.
# In this order, because an inner harness inherits the variables of the outer one, and Codex sets its own per call.
HARNESSES = (
    Harness(
        "codex", ("CODEX_THREAD_ID", "CODEX_SESSION_ID"), ("CODEX_SESSION_ID", "CODEX_THREAD_ID"), ("codex",), True
    ),
    Harness("gemini", ("GEMINI_CLI", "GEMINI_SESSION_ID"), ("GEMINI_SESSION_ID",), ("gemini", "node")),
    Harness("opencode", ("OPENCODE",), ("AGENTMAIL_SESSION",), ("opencode",), True),
    Harness("omp", ("OMPCODE", "PI_CODING_AGENT"), ("AGENTMAIL_SESSION",), ("omp", "pi", "bun"), True),
    Harness("claude", ("CLAUDECODE",), ("CLAUDE_CODE_SESSION_ID",), ("claude", "claude.exe", "node")),
)


class Caller:
    """The facts about the calling process; those that cost something are looked up when they are asked for."""

    def __init__(self, named: str | None, force: bool = False) -> None:
        self.named = (os.environ.get("AGENTMAIL_AGENT") or None) if named is None else named
        self.how = "AGENTMAIL_AGENT" if named is None else "--as"
        self.force = force
        self._lineage: list[str] | None = None
        self._harness = self._find_harness()
        self._session: str | None = None
        self._directory: str | None = None

    @classmethod
    def of_hook(cls, kind: str, session: str, directory: str | None) -> Caller:
        """The session that a harness names to its hook."""
        caller = cls(None)
        caller._harness = next(harness for harness in HARNESSES if harness.kind == kind)
        caller._session = session
        caller._directory = directory
        return caller

    @property
    def kind(self) -> str:
        """The harness's kind, or ``human``."""
        return self._harness.kind if self._harness else HUMAN

    @property
    def shares_its_process(self) -> bool:
        """Whether another session may run in the same process."""
        return self._harness is not None and self._harness.many_sessions

    @property
    def session(self) -> str | None:
        """The harness's session id, where it sets one."""
        if self._session:
            return self._session
        for variable in self._harness.sessions if self._harness else ():
            if os.environ.get(variable):
                return os.environ[variable]
        return None

    @property
    def lineage(self) -> list[str]:
        """The identities of this process and its ancestors, the nearest first."""
        if self._lineage is None:
            self._lineage = processes.lineage()
        return self._lineage

    @property
    def process(self) -> str | None:
        """The process whose end is the end of this session: the harness's own, else the session leader.

        None where neither can be seen, as in a sandbox with a pid namespace of its own.
        """
        if self._harness is None:
            return processes.session_leader()
        for ancestor in self.lineage:
            if processes.name_of(ancestor) in self._harness.programs:
                return ancestor
        return None

    @property
    def directory(self) -> str:
        """The working directory; the root if it has been removed."""
        if self._directory:
            return self._directory
        try:
            return os.getcwd()
        except OSError:
            return "/"

    def _find_harness(self) -> Harness | None:
        found = [harness for harness in HARNESSES if any(os.environ.get(name) for name in harness.markers)]
        if len(found) > 1:
            # One harness runs inside another: the nearest ancestor tells which, where it can be seen.
            for ancestor in self.lineage:
                name = processes.name_of(ancestor)
                for harness in found:
                    if harness.programs[0] == name:
                        return harness
        return found[0] if found else None
