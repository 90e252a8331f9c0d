"""What each harness's hooks say and what they may answer.

Marked *seen* is what was found in the requests of the real programs: Claude Code 2.1.332, Codex 0.171.0, Gemini CLI
0.61.0. Marked *documented* was read, not run.
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

HARNESSES = {harness.kind: harness for harness in (CLAUDE, CODEX, GEMINI)}


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

    @property
    def reaches(self) -> bool:
        """Whether the model sees what is answered."""
        return self.event in self.harness.reaches


def read(kind: str, text: bytes) -> Signal | None:
    """The signal in an event's JSON; None if it is none of ours, or says too little. Raises `ValueError`."""
    event = quick_json.read_object(text.decode())
    harness = HARNESSES.get(kind)
    name, session = event.get("hook_event_name"), event.get("session_id")
    if harness is None or not isinstance(session, str) or not session or name not in harness.moments:
        return None
    moment = harness.moments[name]
    if moment == START and event.get("source") in ("resume", "compact", "fork"):
        moment = AGAIN
    if moment == PROMPT and str(event.get("prompt", "")).lstrip().startswith(
        ("<task-notification>", "<system-reminder>")
    ):
        moment = STEP  # the harness woke the session by itself; this is no turn of the user's
    command = None
    if moment == TOOL and event.get("tool_name") in harness.shell_tools:
        command = quick_json.read_object(str(event.get("tool_input"))).get("command")
    return Signal(
        harness,
        name,
        moment,
        session,
        _text(event.get("cwd")),
        _text(event.get("agent_id")),
        _text(event.get("agent_type")) or "",
        _text(command),
    )


def deliver(signal: Signal, text: str) -> dict[str, Any]:
    """The answer that puts `text` into the model's context."""
    if signal.moment == STOP and signal.harness.blocks_to_continue:
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": signal.event, "additionalContext": text}}


def refuse(signal: Signal, reason: str) -> dict[str, Any]:
    """The answer that keeps a tool call from running. Gemini CLI's form is documented, not seen."""
    if signal.harness is GEMINI:
        return {"decision": "deny", "reason": reason}
    return {
        "hookSpecificOutput": {
            "hookEventName": signal.event,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def replace(signal: Signal, command: str) -> dict[str, Any]:
    """The answer that lets a tool call run with another command (Claude Code, seen)."""
    return {
        "hookSpecificOutput": {
            "hookEventName": signal.event,
            "permissionDecision": "allow",
            "updatedInput": {"command": command},
        }
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
