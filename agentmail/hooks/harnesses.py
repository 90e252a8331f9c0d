"""What each harness's hooks say and what they may answer.

Marked *seen* is what was found in the requests of the real programs: Claude Code 2.1.332, Codex 0.171.0, Gemini CLI
0.61.0, OpenCode 1.18.33, oh-my-pi 18.2.3. Marked *documented* was read, not run.
"""

from __future__ import annotations

from agentmail.operations.ambient import AGAIN, PROMPT, START, STEP, STOP
from agentmail.spool import quick_json
from agentmail.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

END, TOOL = "end", "tool"  # moments at which nothing is delivered


class Harness(NamedTuple):
    """One harness: its events, and how a text gets into the model's context."""

    kind: str
    moments: dict[str, str]  # event name → moment
    reaches: frozenset[str]  # the events whose answer the model sees: only they deliver
    blocks_to_continue: bool = False  # text at the end of a turn must refuse the end
    shell_tools: frozenset[str] = frozenset({"Bash"})


CLAUDE = Harness(
    "claude",
    {
        "SessionStart": START,
        "UserPromptSubmit": PROMPT,
        "PreToolUse": TOOL,
        "PostToolUse": STEP,
        "Stop": STOP,
        "SubagentStart": START,
        "SubagentStop": STOP,
        "SessionEnd": END,
    },
    # All seen; at Stop and SubagentStop the text continues the turn.
    frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SubagentStart", "SubagentStop"}),
)

CODEX = Harness(
    "codex",
    {
        "SessionStart": START,
        "UserPromptSubmit": PROMPT,
        "PreToolUse": TOOL,
        "PostToolUse": STEP,
        "Stop": STOP,
        "SessionEnd": END,
    },
    # All seen. At Stop only ``decision: block`` is heeded; at PostToolUse it would replace the tool's output.
    frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"}),
    blocks_to_continue=True,
)

GEMINI = Harness(
    "gemini",
    {
        "SessionStart": START,
        "BeforeAgent": PROMPT,
        "BeforeTool": TOOL,
        "AfterTool": STEP,
        "AfterAgent": STOP,
        "SessionEnd": END,
    },
    # Seen; AfterAgent fires, but nothing was seen to reach the model from it.
    frozenset({"SessionStart", "BeforeAgent", "AfterTool"}),
    shell_tools=frozenset({"run_shell_command"}),
)

# Events of our own plugin, opencode.js; what it injects is made in opencode.py.
OPENCODE = Harness(
    "opencode",
    {
        "SessionStart": START,
        "UserPrompt": PROMPT,
        "BeforeTool": TOOL,
        "AfterTool": STEP,
        "Messages": STEP,
        "SessionIdle": STOP,
        "SessionEnd": END,
    },
    frozenset({"SessionStart", "UserPrompt", "AfterTool", "Messages"}),
    shell_tools=frozenset({"bash"}),
)

# Events of our own extension, omp.ts, which keeps what it is answered for the place where the model sees it.
OMP = Harness(
    "omp",
    {
        "SessionStart": START,
        "FirstPrompt": START,
        "UserPrompt": PROMPT,
        "BeforeTool": TOOL,
        "AfterTool": STEP,
        "SessionStop": STOP,
        "AgentEnd": STOP,
        "SessionEnd": END,
    },
    # All seen with 18.2.3; at SessionStop the text continues the turn.
    frozenset({"FirstPrompt", "UserPrompt", "AfterTool", "SessionStop"}),
    shell_tools=frozenset({"bash"}),
)

REWRITES = (CLAUDE, OMP)  # their shell calls can be given a sub-agent's name
OUR_PLUGINS = (OPENCODE, OMP)  # they are told where the bells are, and look at them themselves

HARNESSES = {harness.kind: harness for harness in (CLAUDE, CODEX, GEMINI, *OUR_PLUGINS)}


class Signal(NamedTuple):
    """One event of a harness."""

    harness: Harness
    event: str
    moment: str
    session: str
    directory: str | None
    subagent: str | None = None  # the harness's id of the sub-agent that it concerns
    subagent_type: str = ""
    command: str | None = None  # the shell command that is about to run
    tool_input: str = ""  # the JSON that it stands in
    reason: str = ""  # why the session ends
    mid_session: bool = False  # the context was compacted: at any time, also mid-turn

    @property
    def reaches(self) -> bool:
        """Whether the model sees what is answered."""
        return self.event in self.harness.reaches


def read(kind: str, text: bytes) -> Signal:
    """The signal in an event's JSON. Raises `ValueError` if it is none of ours, or says too little."""
    event = quick_json.read_object(text.decode())
    harness = HARNESSES.get(kind)
    if harness is None:
        raise ValueError(f"no harness {kind!r}")
    name, session = _text(event.get("hook_event_name")), _text(event.get("session_id"))
    if name not in harness.moments or not session:
        raise ValueError(f"event {name!r} of session {session!r} is none of ours")
    tool_input = ""
    if harness.moments[name] == TOOL and event.get("tool_name") in harness.shell_tools:
        tool_input = str(event.get("tool_input"))
    return Signal(
        harness,
        name,
        _moment(harness.moments[name], event),
        session,
        _text(event.get("cwd")),
        _text(event.get("agent_id")),
        _text(event.get("agent_type")) or "",
        _text(quick_json.read_object(tool_input).get("command")) if tool_input else None,
        tool_input,
        _text(event.get("reason")) or "",
        event.get("source") == "compact",
    )


def deliver(signal: Signal, text: str) -> str:
    """The answer that puts `text` into the model's context."""
    if signal.harness is OMP:
        return quick_json.write({"text": text})
    if signal.moment == STOP and signal.harness.blocks_to_continue:
        return quick_json.write({"decision": "block", "reason": text})
    return _answer(signal, additionalContext=text)


def refuse(signal: Signal, reason: str) -> str:
    """The answer that keeps a tool call from running (seen in all)."""
    if signal.harness in OUR_PLUGINS:
        return quick_json.write({"deny": reason})
    if signal.harness is GEMINI:
        return quick_json.write({"decision": "deny", "reason": reason})
    return _answer(signal, permissionDecision="deny", permissionDecisionReason=reason)


def replace(signal: Signal, command: str) -> str:
    """The answer that lets a tool call run with another command (Claude Code and oh-my-pi, seen).

    It replaces the whole input (documented), so the rest of it, a timeout for one, comes along.
    """
    if signal.harness is OMP:
        return quick_json.write({"command": command})  # the extension keeps the rest
    changed = quick_json.put(signal.tool_input, "$.command", quick_json.write(command))
    return quick_json.put(_answer(signal, permissionDecision="allow"), "$.hookSpecificOutput.updatedInput", changed)


def _answer(signal: Signal, **members: str) -> str:
    return quick_json.write({"hookSpecificOutput": {"hookEventName": signal.event, **members}})


def _moment(moment: str, event: dict[str, Any]) -> str:
    if moment == START and event.get("source") in ("resume", "compact", "fork"):
        return AGAIN
    prompt = str(event.get("prompt", "")).lstrip()
    if moment == PROMPT and prompt.startswith(("<task-notification>", "<system-reminder>")):
        return STEP  # the harness woke the session by itself; this is no turn of the user's
    return moment


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
