"""Completions for bash, zsh and fish: static scripts made from the table. Only agents' names are asked for live."""

from __future__ import annotations

from shlex import quote

from agentmail.cli import output
from agentmail.cli.call import Call
from agentmail.commands import COMMANDS, COMMON, FLAG, HELP, VERSION, Command, Option
from agentmail.errors import BadInput

ROOT = (*COMMON, VERSION, HELP)  # what may stand before the command

# Names are plain letters and digits, so nothing in the list can be taken for more shell.
_NAMES = r"agentmail list --all 2>/dev/null </dev/null | sed -n 's/^- \([A-Za-z0-9._-]*\) .*/\1/p'"


def completions_(call: Call) -> int:
    """``agentmail completions``."""
    make = {"bash": bash, "zsh": zsh, "fish": fish}.get(call.text("shell") or "")
    if make is None:
        raise BadInput("the shells are bash, zsh and fish; write 'agentmail completions bash'")
    output.write(make().rstrip("\n"))
    return 0


def bash() -> str:
    """The script for bash. Where it offers nothing, bash completes file names."""

    def offer(kind: str) -> str:
        return '"' + " ".join("$(_agentmail_names)" if one == "NAME" else one for one in kind.split("|")) + '"'

    values = [f"{option.name}) offer={offer(option.metavar)} ;;" for option in _valued() if _is_known(option.metavar)]
    words = [f':*:-*) offer="{_names(ROOT)}" ;;', f':*) offer="{" ".join(c.name for c in COMMANDS)}" ;;']
    for command in COMMANDS:
        words.append(f'{command.name}:*:-*) offer="{_names(_options(command))}" ;;')
        words += [f"{command.name}:{place}:*) offer={offer(kind)} ;;" for place, kind in _places(command)]
    return _fill(
        _BASH,
        VALUED=" | ".join(option.name for option in _valued()),
        VALUES="\n        ".join(values),
        WORDS="\n            ".join(words),
    )


def zsh() -> str:
    """The script for zsh, to be found as ``_agentmail`` in its ``fpath``."""

    def action(kind: str) -> str:
        words = kind.split("|")
        if "NAME" in words:
            return " ".join(["_agentmail_names", *(word for word in words if word != "NAME")])
        return "_files" if kind == "PATH" else f"({' '.join(words)})" if _is_known(kind) else " "

    def option(one: Option) -> str:
        text = one.help.replace("]", r"\]")
        return quote(
            f"{one.name}[{text}]" if one.kind == FLAG else f"{one.name}=[{text}]:value:{action(one.metavar)}"
        )

    def command(one: Command) -> str:
        places = {place: action(kind) for place, kind in _places(one)}
        specs = [option(each) for each in _options(one)]
        for place, argument in enumerate(one.arguments):
            number = "*" if argument.many else str(place + 1)
            specs.append(quote(f"{number}:{argument.key}:{places.get(place, '_default')}"))
        return (
            f"{one.name})\n        _arguments -S \\\n            " + " \\\n            ".join(specs) + "\n        ;;"
        )

    return _fill(
        _ZSH,
        OPTIONS=" \\\n        ".join(option(one) for one in ROOT),
        COMMANDS="\n        ".join(quote(f"{one.name}:{one.help}") for one in COMMANDS),
        ARGUMENTS="\n    ".join(command(one) for one in COMMANDS),
    )


def fish() -> str:
    """The script for fish."""

    def text(words: str) -> str:
        return "'" + words.replace("\\", r"\\").replace("'", r"\'") + "'"

    def offer(kind: str) -> str:
        return text(" ".join("(__agentmail_names)" if one == "NAME" else one for one in kind.split("|")))

    def option(command: str, one: Option) -> str:
        value = "" if one.kind == FLAG else " -r -F" if one.metavar == "PATH" else " -x"
        if _is_known(one.metavar):
            value += f" -a {offer(one.metavar)}"
        return f"complete -c agentmail -n '__agentmail_at {command}' -l {one.name[2:]}{value} -d {text(one.help)}"

    lines = [option('""', one) for one in ROOT]
    for command in COMMANDS:
        lines.append(f"complete -c agentmail -n '__agentmail_at \"\"' -a {command.name} -d {text(command.help)}")
        lines += [option(command.name, one) for one in _options(command)]
        lines += [
            f"complete -c agentmail -n '__agentmail_at {command.name} {place}' -a {offer(kind)}"
            for place, kind in _places(command)
        ]
    return _fill(_FISH, VALUED=" ".join(option.name for option in _valued()), LINES="\n".join(lines))


def _options(command: Command) -> tuple[Option, ...]:
    return (*command.options, HELP)


def _names(options: tuple[Option, ...]) -> str:
    return " ".join(option.name for option in options)


def _valued() -> list[Option]:
    """Every option that takes a value, once."""
    options = [option for command in COMMANDS for option in command.options if option.kind != FLAG]
    return list({option.name: option for option in options}.values())


def _is_known(kind: str) -> bool:
    """Whether the values can be listed."""
    return kind == "NAME" or "|" in kind


def _places(command: Command) -> list[tuple[int, str]]:
    """The arguments whose values can be listed, by position."""
    return [(place, argument.values) for place, argument in enumerate(command.arguments) if argument.values]


def _fill(template: str, **parts: str) -> str:
    for name, text in {**parts, "NAMES": _NAMES}.items():
        template = template.replace(f"@{name}@", text)
    return template


_BASH = r"""# Completions of agentmail for bash, as 'agentmail completions bash' prints them.

_agentmail_names() {
    @NAMES@
}

_agentmail() {
    local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' place=0 offer='' i
    # To bash, --option=value is three words.
    if [[ $current == = ]]; then
        current=''
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) return ;;
        @VALUED@)
            [[ ${COMP_WORDS[i + 1]} == = ]] && i=$((i + 1))
            i=$((i + 1))
            ;;
        -*) ;;
        *) if [[ $command ]]; then place=$((place + 1)); else command=${COMP_WORDS[i]}; fi ;;
        esac
    done
    case $option in
        @VALUES@
        @VALUED@) return ;;
        *)
            case $command:$place:$current in
            @WORDS@
            esac
            ;;
    esac
    # shellcheck disable=SC2207  # what is offered has no blanks
    COMPREPLY=($(compgen -W "$offer" -- "$current"))
}

complete -o default -F _agentmail agentmail
"""

_ZSH = r"""#compdef agentmail
# Completions of agentmail for zsh, as 'agentmail completions zsh' prints them.

_agentmail_names() {
    local -a names=("$@" ${(f)"$(@NAMES@)"})
    compadd -a names
}

_agentmail() {
    local curcontext=$curcontext state line
    local -A opt_args
    local -a commands=(
        @COMMANDS@
    )
    _arguments -C -S -A '-*' \
        @OPTIONS@ \
        '1: :->command' '*:: :->arguments'
    case $state in
    command) _describe -t commands command commands; return ;;
    arguments) ;;
    *) return ;;
    esac
    case $words[1] in
    @ARGUMENTS@
    esac
}

if [[ $funcstack[1] == _agentmail ]]; then
    _agentmail "$@"
else
    compdef _agentmail agentmail
fi
"""

_FISH = r"""# Completions of agentmail for fish, as 'agentmail completions fish' prints them.

function __agentmail_names
    @NAMES@
end

function __agentmail_at --description 'Whether this command is being written, and its argument number so-and-so'
    set -l command ''
    set -l place 0
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $word @VALUED@
            set skip 1
        else if string match -q -- '-*' $word
            continue
        else if test -z "$command"
            set command $word
        else
            set place (math $place + 1)
        end
    end
    test "$command" = "$argv[1]"; and test (count $argv) = 1 -o "$place" = "$argv[2]"
end

complete -c agentmail -f
@LINES@
"""
