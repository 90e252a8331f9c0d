"""A parsed command line: which command, with which values."""

from __future__ import annotations

from agentmail import durations
from agentmail.errors import BadInput
from agentmail.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentmail.commands import Command


class Call(NamedTuple):
    """What both parsers give. A value is a string, a flag, or the tuple of words of a ``many`` argument."""

    command: str
    values: dict[str, str | bool | tuple[str, ...]]

    def text(self, key: str) -> str | None:
        """The value of an option or argument, None if it was not given."""
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool:
        """Whether a flag was given."""
        return self.values.get(key) is True

    def words(self, key: str) -> tuple[str, ...]:
        """The words of a ``many`` argument."""
        value = self.values.get(key)
        return value if isinstance(value, tuple) else ()

    def number(self, key: str) -> int | None:
        """A whole number from 0 on. Raises `BadInput`."""
        text = self.text(key)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit()):
            raise BadInput(f"--{key.replace('_', '-')} takes a whole number, not {text!r}")
        return int(text)

    def timeout(self) -> float | str | None:
        """The timeout in milliseconds as the caller means it; the spool normalizes it.

        None if nothing was said. A text is not a number, as the caller, or AGENTMAIL_TIMEOUT_MS, wrote it.
        """
        if self.text("timeout") is not None and self.text("timeout_ms") is not None:
            raise BadInput("--timeout and --timeout-ms say the same; use one of them")
        duration, number = self.text("timeout"), self.text("timeout_ms")
        if duration is not None:
            return durations.parse(duration)
        if number is not None:
            try:
                return _finite(float(number)) if "_" not in number else _refuse(number)
            except ValueError:
                return _refuse(number)
        import os

        setting = os.environ.get("AGENTMAIL_TIMEOUT_MS")
        try:
            return _finite(float(setting)) if setting else None
        except ValueError:
            return setting


def make(command: Command, values: dict[str, str | bool | tuple[str, ...]]) -> Call:
    """A call with a value for every option and argument of `command`: False, None or () are left out."""
    return Call(command.name, {key: value for key, value in values.items() if value not in (None, False, ())})


def _finite(number: float) -> float | str:
    # SQLite would store NaN as NULL, which means that nothing was said.
    return number if number == number else "nan"


def _refuse(number: str) -> float:
    raise BadInput(f"--timeout-ms takes a number of milliseconds, not {number!r}; see --timeout for 2m or 90s")
