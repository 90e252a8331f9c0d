"""The whole command line by typer, built from the table: help, validation, and whatever the fast lane left."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, Optional

import typer
from typer.main import get_command

from agentmail import __version__
from agentmail.cli.call import Call, make
from agentmail.commands import BY_NAME, COMMANDS, COMMON, FLAG, VERSION, Argument, Command, Option
from agentmail.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_EPILOG = "Run 'agentmail COMMAND --help' for the options and examples of a command."


def parse(words: list[str]) -> Call | None:
    """The call in `words`; None if help or the version was printed. Raises `BadInput`."""
    try:
        result = build().main(words or ["--help"], prog_name="agentmail", standalone_mode=False)
    except Exception as error:
        # typer carries its own copy of click, whose exceptions have no public home.
        if not hasattr(error, "format_message"):
            raise
        raise BadInput(_one_line(error, words)) from error
    return result if isinstance(result, Call) else None


@cache
def build() -> Any:
    """The click command that typer makes of the table; each subcommand gives its `Call`."""
    app = typer.Typer(
        help="Mail between coding agents on one machine.",
        epilog=_EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=_SETTINGS,
    )
    app.callback()(_root())
    for command in COMMANDS:
        app.command(
            command.name,
            help=command.help,
            epilog=_examples(command),
            context_settings=_SETTINGS,
        )(_function(command))
    return get_command(app)


def _root() -> Callable[..., None]:
    def root(context: typer.Context, **values: Any) -> None:
        context.obj = values

    def show_version(asked: bool) -> None:
        if asked:
            typer.echo(f"agentmail {__version__}")
            raise typer.Exit

    version = inspect.Parameter(
        "version",
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Option(False, VERSION.name, help=VERSION.help, is_eager=True, callback=show_version),
        annotation=bool,
    )
    return _signed(root, [_parameter(option) for option in COMMON] + [version])


def _function(command: Command) -> Callable[..., Call]:
    def run(context: typer.Context, **values: Any) -> Call:
        allowed = {option.key for option in command.options}
        given = {key.rstrip("_"): _plain(value) for key, value in values.items()}
        shared = {key.rstrip("_"): value for key, value in (context.obj or {}).items()}
        shared = {key: value for key, value in shared.items() if key in allowed and value not in (None, False)}
        return make(command, {**shared, **{k: v for k, v in given.items() if v not in (None, False, ())}})

    parameters = [_argument(argument) for argument in command.arguments]
    return _signed(run, parameters + [_parameter(option) for option in command.options])


def _signed(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    """`function` with a signature for typer to read; trailing ``_`` keeps names like ``from`` legal."""
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    function.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in (context, *parameters)}
    return function


def _parameter(option: Option) -> inspect.Parameter:
    if option.kind == FLAG:
        default, annotation = typer.Option(False, option.name, help=option.help), bool
    else:
        default = typer.Option(None, option.name, help=option.help, metavar=option.metavar)
        annotation = Optional[str]  # type: ignore[assignment]  # noqa: UP045 - typer reads it at run time
    return inspect.Parameter(option.key + "_", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _argument(argument: Argument) -> inspect.Parameter:
    return inspect.Parameter(
        argument.key + "_",
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Argument(None, help=argument.help, metavar=argument.key.upper(), show_default=False),
        annotation=Optional[list[str]] if argument.many else Optional[str],  # noqa: UP045
    )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _examples(command: Command) -> str | None:
    if not command.examples:
        return None
    # \b keeps the lines of a paragraph apart.
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in command.examples)


def _one_line(error: Any, words: list[str]) -> str:
    """What went wrong, and where to look it up."""
    context = getattr(error, "ctx", None)
    command = BY_NAME.get(context.info_name if context else words[0])
    message = str(error.format_message()).strip().rstrip(".").replace("\n", " ")
    message = message[:1].lower() + message[1:]
    if command and "no such option" in message and any(argument.many for argument in command.arguments):
        message += "; put '--' before a message that starts with '-'"
    see = " See" if message.endswith("?") else "; see"
    return f"{message}{see} 'agentmail {command.name + ' ' if command else ''}--help'"
