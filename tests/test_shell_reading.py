"""Reading shell commands: what a shell would eat of a message, and the form that no shell touches."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmail.hooks import shell

if TYPE_CHECKING:
    from pathlib import Path

# What passes a shell whole.
SAFE = [
    "agentmail send bob hello there",
    "agentmail send bob 'see `x`, $(y), $HOME and ${Z}'",
    'agentmail send bob "100 % of $ and $ 5, a$"',
    'agentmail send bob "escaped \\`x\\`, \\$(y) and \\$HOME"',
    "agentmail send bob escaped \\`x\\` \\$HOME",
    "agentmail send bob <<'EOF'\ncosts $5, `x` $(y)\nEOF",
    'agentmail send bob --body-file - <<"EOF"\ncosts $5\nEOF\n',
    "agentmail send bob <<\\EOF\ncosts $5\nEOF\n",
    "agentmail send bob <<-'EOF'\n\tcosts $5\n\tEOF\nls",
    "agentmail send bob <<EOF\nescaped \\$5 and \\`x\\`\nEOF\n",
    "agentmail send bob <<< 'costs $5'",
    'agentmail send bob "$(cat <<\'EOF\'\nsay "hi" `x` $(\nEOF\n)" --await',
    "agentmail send bob \"a $(cat <<'E O F'\n`x`\nE O F\n  ) b\"",
    "agentmail send bob $'it\\'s `x`'",
    "agentmail send \"$PEER\" 'hello'",
    'agentmail send bob hello --as "$ME"',
    "agentmail send bob hello # and `x` $5",
    "agentmail send bob hello 2>&1 | grep $x",
    "agentmail send bob hello > $LOG",
    "agentmail send bob hello; echo `date`",
    "agentmail inbox --from $x",
    'echo agentmail send bob "$5"',
    'echo "agentmail send bob `x`"',
    "grep -r 'agentmail send' . | wc -l # $(x)",
    'git commit -m "agentmail: `x`"',
    'myagentmail send bob "$5"',
    "agentmail",
    "agentmail --as",
    "",
    "\n\n",
    "#",
    "'",
    '"',
    "$(",
    "agentmail send",
    "agentmail send bob <<EOF",
    "agentmail send bob 'unclosed `x`",
    "agentmail reply 3 'costs $5'",
    "agentmail status 'on $5'",
    'agentmail status fine <<< "$5"',
]


@pytest.mark.parametrize("command", SAFE)
def test_what_no_shell_touches_passes(command: str) -> None:
    assert shell.eaten(command) is None


HEREDOC = "agentmail send bob --body-file - <<'EOF'\n{}\nEOF"
# (what would be eaten, the form that is offered)
EATEN = [
    ('agentmail send bob "see `x`"', HEREDOC.format("see `x`")),
    ('agentmail send bob "see $(x)"', HEREDOC.format("see $(x)")),
    ('agentmail send bob "see $HOME"', HEREDOC.format("see $HOME")),
    ('agentmail send bob "see ${HOME}"', HEREDOC.format("see ${HOME}")),
    ('agentmail send bob "costs $5"', HEREDOC.format("costs $5")),
    *((f'agentmail send bob "a ${mark} b"', HEREDOC.format(f"a ${mark} b")) for mark in "_@*#?!$-["),
    ("agentmail send bob see `x y` and $(z;w) now", HEREDOC.format("see `x y` and $(z;w) now")),
    ("agentmail send bob costs $5", HEREDOC.format("costs $5")),
    ("agentmail send bob 'single' \"`double`\" plain", HEREDOC.format("single `double` plain")),
    ('agentmail send bob "say \\"hi\\" to `x` \\\\ \\$5 \\n"', HEREDOC.format('say "hi" to `x` \\ $5 \\n')),
    ('agentmail send bob "see `foo("a;b")` he\\"re"', HEREDOC.format('see `foo("a;b")` he"re')),
    ('agentmail send bob "see $(foo "(a)" b) here"', HEREDOC.format('see $(foo "(a)" b) here')),
    ('agentmail send bob "see ${x:-"a b"} here"', HEREDOC.format('see ${x:-"a b"} here')),
    ('agentmail send bob "one ` alone"', HEREDOC.format("one ` alone")),
    ("agentmail send bob a \\\nb `x`", HEREDOC.format("a b `x`")),
    ('agentmail send bob "a\\\nb `x`"', HEREDOC.format("ab `x`")),
    ('agentmail send bob "two\nlines `x`\n"', HEREDOC.format("two\nlines `x`\n")),
    ('agentmail send bob "`x`\nEOF\nb"', "agentmail send bob --body-file - <<'EOF_'\n`x`\nEOF\nb\nEOF_"),
    ('agentmail send bob <<EOF\na `x` \\$5 \\\\ "q"\nEOF\n', HEREDOC.format('a `x` $5 \\ "q"')),
    ("agentmail send bob --body-file - <<EOF && ls\na $x\nEOF\n", HEREDOC.format("a $x")),
    ("agentmail send bob <<-EOF\n\ta $x\n\tEOF\n", HEREDOC.format("a $x")),
    ('agentmail send bob <<< "a $x"', HEREDOC.format("a $x")),
    ('cd /tmp && agentmail send bob "`x`"', HEREDOC.format("`x`")),
    ('(agentmail send bob "`x`")', HEREDOC.format("`x`")),
    ('ls; agentmail send bob "`x`" | head', HEREDOC.format("`x`")),
    ('ls > "a file" \nagentmail send bob "`x`"', HEREDOC.format("`x`")),
    ('git log | agentmail send bob "`x`" 2>&1 >/dev/null', HEREDOC.format("`x`")),
    ('A=1 B="c d" agentmail send bob "`x`"', HEREDOC.format("`x`")),
    ('env A=1 /usr/local/bin/agentmail send bob "`x`"', HEREDOC.format("`x`")),
    ('nohup agentmail send bob "`x`" &', HEREDOC.format("`x`")),
    ('cat <<\'X\'\nagentmail send bob "`a`"\nX\nagentmail send bob "`b`"', HEREDOC.format("`b`")),
    (
        'agentmail --spool "a b" --json send --await bob "`x`" --timeout 2m --once=k',
        "agentmail send bob --spool 'a b' --json --await --timeout 2m --once=k --body-file - <<'EOF'\n`x`\nEOF",
    ),
    ('agentmail send bob "`x`\nEén"', "agentmail send bob --body-file - <<'XOF'\n`x`\nEén\nXOF"),
    ("agentmail send '#ops' \"`x`\"", "agentmail send '#ops' --body-file - <<'EOF'\n`x`\nEOF"),
    ('agentmail send "$PEER" "`x`"', "agentmail send \"$PEER\" --body-file - <<'EOF'\n`x`\nEOF"),
    ('agentmail send bob -- "--x `y`"', HEREDOC.format("--x `y`")),
    ('agentmail send -- bob "--x `y`"', HEREDOC.format("--x `y`")),
    ('agentmail reply 3 "`x`"', "agentmail reply 3 --body-file - <<'EOF'\n`x`\nEOF"),
    ('agentmail status "it\'s `x`"', "agentmail status 'it'\\''s `x`'"),
]


@pytest.mark.parametrize(("command", "offered"), EATEN)
def test_what_a_shell_would_eat_is_offered_in_a_form_that_it_does_not(command: str, offered: str) -> None:
    call = shell.eaten(command)
    assert call is not None
    assert shell.safe_form(call) == offered
    assert shell.eaten(shell.safe_form(call)) is None


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in shell.read(text).commands]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a 'b c' \"d e\"f\\ g", [["a", "b c", "d ef g"]]),
        ("a;b&&c|d&e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a 2>&1 >x <y 3<&- >>z b", [["a", "b"]]),
        ("a > 'x y' b", [["a", "b"]]),
        ("a 2 > x", [["a", "2"]]),
        ("a '' \"\"", [["a", "", ""]]),
        ("a#b #c\nd", [["a#b"], ["d"]]),
        ("a <<X <<Y b\n1\nX\n2\nY\nc", [["a", "b"], ["c"]]),
        ("a `b c` d", [["a", "`b c`", "d"]]),
        ('a $(b (c) "d") e', [["a", '$(b (c) "d")', "e"]]),
        ("a \\", [["a", "\\"]]),
    ],
)
def test_words_are_split_as_a_shell_does(text: str, commands: list[list[str]]) -> None:
    assert words(text) == commands


@pytest.mark.parametrize(
    "text", ["$(" * 40_000, "`" * 80_001, "${" * 40_000, "\\`" * 40_000 + "`", "<<E\n" * 2000, "'\"" * 40_000]
)
def test_deep_and_long_nonsense_is_read_to_its_end(text: str) -> None:
    for command in (f'agentmail send bob "{text}', f"agentmail send bob {text}"):
        assert shell.read(command).commands


@given(st.text(alphabet="agentmil sdbo'\"`$(){}\\<>|&;#-=\n\tE0", max_size=60))
@settings(max_examples=500, deadline=None)
def test_any_text_is_read_without_failing(text: str) -> None:
    for command in (text, f"agentmail send bob {text}", f'agentmail send bob "{text}'):
        call = shell.eaten(command)
        if call:
            shell.safe_form(call)
        shell.is_plain_call(command)
        shell.calls_unnamed(command)


# Against real shells. A stub in agentmail's place notes its arguments and stdin; one shell runs many commands.

STUB = """\
agentmail() {
  printf '%s\\0' "$#" "$@"
  case " $* " in *" --body-file - "*) printf 'stdin\\0'; cat ;; *) printf 'none\\0' ;; esac
  printf '\\0\\036\\0'
}
"""
LETTERS = st.text(
    alphabet=st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=40
)
TOKENS = st.lists(
    st.one_of(
        LETTERS,
        st.sampled_from(
            [
                "`",
                "``",
                "$(",
                ")",
                "$HOME",
                "${x}",
                "$5",
                "$",
                "$ ",
                "\\",
                "'",
                '"',
                "\n",
                "EOF",
                "\nEOF\n",
                "#",
                " # ",
                ";",
            ]
        ),
        st.sampled_from(
            ["&&", "|", "<<", "<<'EOF'", "--as", "!", "*", "~", "$'", '$"', "$$", "$-", "$#", "$[1]", "%", "\t"]
        ),
    ),
    min_size=1,
    max_size=12,
).map("".join)
BODIES = TOKENS.filter(lambda body: bool(body.strip()) and not body.startswith("--"))


@pytest.fixture
def run_all(tmp_path: Path) -> Any:
    """Runs commands in a shell, with the stub for agentmail; for each, (its arguments, its stdin or None)."""

    def run(program: str, commands: list[str]) -> list[tuple[list[str], str | None]]:
        # Each from a file of its own, in a subshell: a syntax error in one must not end the others.
        parts = [STUB]
        for number, command in enumerate(commands):
            (tmp_path / f"c{number}").write_text(command + "\n", newline="")
            parts.append(f"( . ./c{number} )")
        script = tmp_path / "script"
        script.write_text("\n".join(parts))
        env = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [program, str(script)],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
        )
        found: list[tuple[list[str], str | None]] = []
        for record in done.stdout.decode().split("\0\036\0")[:-1]:
            count, rest = record.split("\0", 1)
            *arguments, how, stdin = (rest + "\0").split("\0", int(count) + 1)
            found.append((arguments, stdin.removesuffix("\0") if how == "stdin" else None))
        return found

    return run


def in_double_quotes(body: str) -> str:
    """As an agent writes it that thinks of quotes and backslashes, but not of what else is special."""
    return '"' + body.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("program", ["dash", "bash"])
@given(bodies=st.lists(BODIES, min_size=20, max_size=20), to=st.sampled_from(["bob", "+relay", "#relay", "a.b-c"]))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_the_offered_form_brings_exactly_the_body_and_what_passes_arrives_as_it_is(
    run_all: Any, program: str, bodies: list[str], to: str
) -> None:
    commands: list[str] = []
    expected: list[tuple[list[str], str | None]] = []
    for body in bodies:
        command = f"agentmail send {shlex.quote(to)} {in_double_quotes(body)}"
        call = shell.eaten(command)
        if call:
            commands.append(shell.safe_form(call))
            expected.append((["send", to, "--body-file", "-"], body + "\n"))
        else:
            commands.append(command)
            expected.append((["send", to, body], None))
    assert run_all(program, commands) == expected


@pytest.mark.parametrize("program", ["dash", "bash"])
@given(bodies=st.lists(BODIES, min_size=20, max_size=20))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_documents_arrive_as_they_were_read(run_all: Any, program: str, bodies: list[str]) -> None:
    commands, expected = [], []
    for body in bodies:
        if any(line == "END" for line in body.split("\n")):
            continue
        commands.append(f"agentmail send bob --body-file - <<'END'\n{body}\nEND")
        expected.append((["send", "bob", "--body-file", "-"], body + "\n"))
        assert shell.eaten(commands[-1]) is None
        live = f"agentmail send bob --body-file - <<END\n{body}\nEND"
        call = shell.eaten(live)
        if call is None and "\\" not in body:
            commands.append(live)
            expected.append((["send", "bob", "--body-file", "-"], body + "\n"))
    assert run_all(program, commands) == expected


@pytest.mark.parametrize("program", ["dash", "bash"])
@given(texts=st.lists(BODIES, min_size=10, max_size=10))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_an_offered_status_arrives_as_it_was_meant(run_all: Any, program: str, texts: list[str]) -> None:
    commands, expected = [], []
    for text in texts:
        call = shell.eaten(f"agentmail status {in_double_quotes(text)}")
        if call:
            commands.append(shell.safe_form(call))
            expected.append((["status", text], None))
    assert run_all(program, commands) == expected


@pytest.mark.parametrize("program", ["bash"])
def test_the_cat_form_is_what_bash_makes_of_it(run_all: Any, program: str) -> None:
    body = "a `x` \"q\" $(y)\n  $5 \\ 's'"
    command = f"agentmail send bob \"$(cat <<'EOF'\n{body}\nEOF\n)\""
    assert run_all(program, [command]) == [(["send", "bob", body], None)]
    assert words(command) == [["agentmail", "send", "bob", body]]
