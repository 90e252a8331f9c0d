"""The fast lane's parser: a plain call of any command, without importing typer.

It answers only what it wholly understands. Help, an abbreviation, anything odd: None, and typer decides.
"""

from __future__ import annotations

from agentmail.cli.call import Call, make
from agentmail.commands import BY_NAME, COMMON, FLAG, Command, Option


def parse(words: list[str]) -> Call | None:
    """The call that typer would make of `words`, or None."""
    shared: dict[str, str | bool | tuple[str, ...]] = {}
    rest = _options(words, {option.name: option for option in COMMON}, shared, stop_at_word=True)
    if not rest or rest[0] not in BY_NAME:
        return None
    command = BY_NAME[rest[0]]
    values: dict[str, str | bool | tuple[str, ...]] = {}
    positional = _options(rest[1:], {option.name: option for option in command.options}, values)
    if positional is None or not _arguments(command, positional, values):
        return None
    allowed = {option.key for option in command.options}
    return make(command, {**{key: value for key, value in shared.items() if key in allowed}, **values})


def _options(
    words: list[str],
    options: dict[str, Option],
    values: dict[str, str | bool | tuple[str, ...]],
    stop_at_word: bool = False,
) -> list[str] | None:
    """Take the options out of `words` into `values`; what is left, or None if something is not understood."""
    left: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            return left + words[position:]
        if len(word) < 2 or word[0] != "-":
            if stop_at_word:
                return words[position - 1 :]
            left.append(word)
            continue
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None or (equals and option.kind == FLAG):
            return None
        if option.kind == FLAG:
            values[option.key] = True
        elif equals:
            values[option.key] = value
        elif position < len(words):
            values[option.key] = words[position]
            position += 1
        else:
            return None
    return left


def _arguments(command: Command, positional: list[str], values: dict[str, str | bool | tuple[str, ...]]) -> bool:
    """Give the positional words to the command's arguments; whether they all found a place."""
    for argument in command.arguments:
        if argument.many:
            values[argument.key] = tuple(positional)
            positional = []
        elif positional:
            values[argument.key] = positional.pop(0)
    return not positional
