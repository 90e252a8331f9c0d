"""What can go wrong, one class per exit status.

Each message is one line of the form "what went wrong; what to do": a front end prints it and exits with ``status``.
"""

from __future__ import annotations


class AgentmailError(Exception):
    """Any failure that is reported in one line."""

    status = 1


class NotDelivered(AgentmailError):
    """The mail did not get where it should: nobody received it, or the output could not be written."""

    status = 1


class BadInput(AgentmailError):
    """The call cannot be carried out as it was written. Nothing was stored."""

    status = 2


class NameTaken(BadInput):
    """The name belongs to another live session."""


class SpoolUnusable(AgentmailError):
    """The spool cannot be opened, read or written."""

    status = 3


class Terminated(BaseException):
    """SIGTERM arrived. Not an `Exception`, like `KeyboardInterrupt`: nothing but cleaning up may intervene."""
