"""SQLite's failures in words: what went wrong and what to do."""

from __future__ import annotations

import os
import sqlite3

from agentmail.errors import AgentmailError, SpoolUnusable

# What each harness's sandbox calls its list of writable places (seen with Claude Code 2.1 and Codex 0.171).
_SANDBOXES = (
    ("CODEX_SANDBOX_NETWORK_DISABLED", "sandbox_workspace_write.writable_roots in ~/.codex/config.toml"),
    ("CODEX_THREAD_ID", "sandbox_workspace_write.writable_roots in ~/.codex/config.toml"),
    ("CLAUDECODE", "sandbox.filesystem.allowWrite in ~/.claude/settings.json"),
)

_BY_TEXT = (
    ("locked", "it has been locked by another process for too long", "try again, or look for a stuck one"),
    ("disk is full", "the disk is full", "make room and try again; nothing was stored"),
    ("disk I/O error", "reading or writing it failed", "check the disk; nothing was stored"),
    ("malformed", "it is corrupt", "move it away, or restore it from a backup"),
    ("not a database", "it is not an agentmail spool", "name another file with --spool or AGENTMAIL_SPOOL"),
    ("no such table", "it is not an agentmail spool", "name another file with --spool or AGENTMAIL_SPOOL"),
)


def explain(error: sqlite3.Error, path: str) -> AgentmailError:
    """The one line for `error` on the spool at `path`."""
    text = str(error)
    if "unable to open" in text or "readonly" in text or "read-only" in text:
        return unwritable(path, text)
    for part, what, remedy in _BY_TEXT:
        if part in text:
            return SpoolUnusable(f"the spool {path} cannot be used: {what}; {remedy}")
    return SpoolUnusable(f"the spool {path} cannot be used: {text}; see whether another program changed it")


def unwritable(path: str, reason: str) -> SpoolUnusable:
    """The line for a spool that may not be written, with the sandbox setting that would allow it."""
    directory = os.path.dirname(path)
    for variable, setting in _SANDBOXES:
        if variable in os.environ:
            return SpoolUnusable(
                f"cannot write the spool {path} ({reason}); if a sandbox forbids it, add {directory} to {setting}"
            )
    return SpoolUnusable(f"cannot write the spool {path} ({reason}); make {directory} writable for yourself")
