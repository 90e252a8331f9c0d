"""Installing into harnesses: what is written, that nothing else changes, and that it is taken out again."""

from __future__ import annotations

import itertools
import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmail.errors import BadInput
from agentmail.hooks.harnesses import HARNESSES, OUR_PLUGINS
from agentmail.install import files, harnesses, jsonc, plan, plugins, skill
from agentmail.install.document import Document
from agentmail.install.plan import Place
from agentmail.install.settings import commands
from tests.test_jsonc import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentmail.install.edits import Edit
    from tests.conftest import Mail

# Those that run our hooks; the others load a program of ours.
ADAPTERS = {kind: harness for kind, harness in HARNESSES.items() if harness not in OUR_PLUGINS}
PLUGINS = {"opencode.js": "opencode", "omp.ts": "omp"}
COUNTER = itertools.count()
KINDS = list(harnesses.HARNESSES)
OWN_HOOK = {"hooks": [{"type": "command", "command": "/home/me/log.sh 'hook claude'", "timeout": 3}]}
HAD = {
    "hooks": {event: [OWN_HOOK] for event in ("SessionStart", "PreToolUse", "Stop", "AfterTool")},
    "permissions": {"allow": ["Bash(ls:*)", "Bash(agentmail:*)"], "deny": ["Read(.env)"]},
    "tools": {"allowed": ["run_shell_command(git)"]},
    "permission": {"bash": {"*": "ask", "git *": "allow"}},
}
JSON = {
    "absent": None,
    "empty": "",
    "blank": "\n \n",
    "object": "{}",
    "object and line": "{}\n",
    "minified": json.dumps({"model": "x", "a": [1, {"b": None}]}, separators=(",", ":")),
    "one line": json.dumps({"model": "x", "hooks": {}, "permissions": {"allow": []}}),
    "two blanks": json.dumps(HAD, indent=2) + "\n",
    "four blanks": json.dumps(HAD, indent=4),
    "tabs": json.dumps(HAD, indent="\t") + "\n\n",
    "minified with hooks": json.dumps(HAD, separators=(",", ":")),
    "crlf": (json.dumps(HAD, indent=2) + "\n").replace("\n", "\r\n"),
    "comments": '// mine\n{\n  // "hooks": {},\n'
    '  "model": "x", // last\n  /* none */ "hooks": {\n    // nothing yet\n  }\n}\n',
    "trailing commas": '{\n  "permissions": {\n    "allow": [\n      "Bash(ls)", // list\n    ],\n  },\n'
    '  "z": 1,\n}\n',
    "only comments": "// todo\n",
    "unicode": '{\n  "name": "žluťoučký 🐎 \\u0041",\n  "\\u00e9": ["\\ud83d\\udc0e"]\n}\n',
    "byte order mark": '\ufeff{\r\n\t"a": 1\r\n}',
    "deep": json.dumps({"a": {"b": {"c": [[[{"d": {"e": "}]"}}]]]}}, "env": {"A": "1"}}, indent=3),
    "set by the user": '{"env": {"AGENTMAIL_TIMEOUT_MS": "5000"}, "sandbox": {"enabled": false}}',
}
TOML = {
    "absent": None,
    "empty": "",
    "byte order mark": '\ufeffmodel = "x"\n',
    "crlf": '# mine\r\nmodel = "x"\r\n\r\n[tui]\r\nnotifications = true\r\n',
    "no last line end": 'model = "x"',
    "roots": '[sandbox_workspace_write]\nwritable_roots = [\n  "/a", # mine\n]\n\n[profiles.x]\nmodel = "y"\n',
    "inline": "sandbox_workspace_write = { network_access = true }\n"
    'shell_environment_policy = { inherit = "core" }\n',
    "set by the user": '[shell_environment_policy]\nset = { AGENTMAIL_TIMEOUT_MS = "5000" }\n',
}
TEXTS = {
    "absent": None,
    "empty": "",
    "text": "# Rules\n\nBe nice.\n",
    "no last line end": "Be nice.",
    "crlf": "a\r\nb\r\n",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AGENTMAIL_", "CLAUDE", "CODEX_", "XDG_", "PI_CODING")):
            monkeypatch.delenv(name)
    given = skill.data

    def data(name: str) -> str:
        try:
            return given(name)
        except FileNotFoundError:
            if name not in PLUGINS:
                raise
            return 'const AGENTMAIL = ["agentmail"]\nexport default 1\n'

    monkeypatch.setattr(skill, "data", data)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = tmp_path / "home"
    home.mkdir()
    return Place(str(home), None, f"{home}/.local/state/agentmail/spool.db", True)


def corpus(path: str) -> dict[str, str | None]:
    if path.endswith(".json"):
        return JSON
    return TOML if path.endswith(".toml") else TEXTS


def cases() -> Iterator[tuple[str, int, str]]:
    somewhere = Place("/home/x", None, "/home/x/.local/state/agentmail/spool.db", True)
    counts = {"claude": 2, "codex": 4, "gemini": 3, "opencode": 3, "omp": 2}
    names = {
        "claude": (JSON, TEXTS),
        "codex": (JSON, TOML, TEXTS, TEXTS),
        "gemini": (JSON, TOML, TEXTS),
        "opencode": (TEXTS, JSON, TEXTS),
        "omp": (TEXTS, TEXTS),
    }
    assert somewhere.fixed_spool is None
    for kind, count in counts.items():
        for index in range(count):
            for name in names[kind][index]:
                yield kind, index, name


def put(path: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_bytes(text.encode())
    return text.encode()


def run(change: Callable[[list[Edit]], list[files.Change]], edits: list[Edit]) -> list[str]:
    changes = change(edits)
    for one in changes:
        files.carry_out(one)
        if change is plan.uninstall:
            files.forget_backup(one.path)
    return [one.outcome for one in changes]


def tree(home: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(home).rglob("*") if path.is_file()}


def value_of(path: str) -> Any:
    text = Path(path).read_bytes().decode().removeprefix("\ufeff")
    if path.endswith(".toml"):
        return tomllib.loads(text)
    node = jsonc.read(text) if path.endswith(".json") else None
    return node.value if node else text


def less(now: Any, before: Any) -> bool:
    """Whether all that was before is still there, in the same order, with the same values."""
    if isinstance(before, dict):
        keys = [key for key in now if key in before]
        return keys == list(before) and all(less(now[key], value) for key, value in before.items())
    if isinstance(before, list):
        rest = iter(now)
        return all(any(less(candidate, item) for candidate in rest) for item in before)
    return bool(now == before)


@pytest.mark.parametrize(("kind", "index", "name"), list(cases()))
def test_in_again_and_out(place: Place, kind: str, index: int, name: str) -> None:
    edits = harnesses.known(kind).edits(place)
    path = edits[index].path
    content = put(path, corpus(path)[name])
    before = {} if content is None else value_of(path)
    run(plan.install, edits)
    after = value_of(path)
    if isinstance(before, dict) and isinstance(after, dict) and "agentmail" not in Path(path).name:
        assert less(after, before)
    elif isinstance(before, str) and not edits[index].is_void(before) and "agentmail" not in Path(path).name:
        assert "SKILL" in path or after.replace("\r\n", "\n").startswith(before.replace("\r\n", "\n"))
    holds(place, kind)
    written = tree(place.home)
    assert set(run(plan.install, edits)) == {"unchanged"}
    assert tree(place.home) == written
    if content is not None and content != written[path]:
        assert Path(path + files.BACKUP).read_bytes() == content
    run(plan.uninstall, edits)
    assert tree(place.home) == ({} if content is None else {path: content})


def holds(place: Place, kind: str) -> None:
    """What must be there after an installation."""
    edits = harnesses.known(kind).edits(place)
    assert harnesses.is_there(harnesses.known(kind), place)
    texts = [Path(edit.path).read_text("utf-8") for edit in edits]
    assert any("agentmail send bob <<'EOF'" in text for text in texts)
    found = value_of(edits[0].path)
    if kind in ADAPTERS:
        for event in ADAPTERS[kind].moments:
            ours = [group for group in found["hooks"][event] if "__main__.py" in json.dumps(group)]
            assert len(ours) == (2 if (kind, event) == ("claude", "Stop") else 1), event
            assert ours[0].get("matcher") == {"PreToolUse": "Bash", "BeforeTool": "run_shell_command"}.get(event)
            assert all(hook["timeout"] > 0 for group in ours for hook in group["hooks"])
    if kind == "claude":
        allowed = found["permissions"]["allow"]
        assert allowed.count("Bash(agentmail:*)") == 1
        assert "Bash(agentmail)" in allowed
        assert int(found["env"]["AGENTMAIL_TIMEOUT_MS"]) < 120_000
        assert found["sandbox"]["filesystem"]["allowWrite"] == ["~/.local/state/agentmail"]
        assert not found["sandbox"].get("enabled")
    elif kind == "codex":
        found_toml = value_of(edits[1].path)
        assert os.path.dirname(place.spool) in found_toml["sandbox_workspace_write"]["writable_roots"]
        assert int(found_toml["shell_environment_policy"]["set"]["AGENTMAIL_TIMEOUT_MS"]) < 120_000
        assert 'prefix_rule(pattern=["agentmail"], decision="allow")' in texts[2]
        assert found["hooks"]["SessionEnd"][-1]["hooks"][0]["timeout"] <= 3
    elif kind == "gemini":
        assert [rule["decision"] for rule in value_of(edits[1].path)["rule"]] == ["allow", "allow"]
        assert found["hooks"]["AfterTool"][-1]["hooks"][0]["timeout"] >= 1000  # milliseconds
    elif kind == "opencode":
        assert list(value_of(edits[1].path)["permission"]["bash"].items())[-1] == ("agentmail *", "allow")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(), st.sampled_from(["claude", "codex", "gemini"]))
def test_any_file_comes_back_byte_for_byte(tmp_path: Path, text: str, kind: str) -> None:
    home = tmp_path / str(next(COUNTER))
    edits = harnesses.known(kind).edits(Place(str(home), None, f"{home}/state/spool.db", True))
    content = put(edits[0].path, text)
    try:
        run(plan.install, edits)
    except BadInput:
        assert tree(str(home)) == {edits[0].path: content}
        return
    assert set(run(plan.install, edits)) == {"unchanged"}
    run(plan.uninstall, edits)
    assert tree(str(home)) == {edits[0].path: content}


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_what_the_user_changed_since_stays(place: Place, kind: str) -> None:
    edits = harnesses.known(kind).edits(place)
    path = edits[0].path
    put(path, '{\n  // mine\n  "model": "x",\n  "hooks": {"Stop": []}\n}\n')
    run(plan.install, edits)
    text = Path(path).read_text()
    Path(path).write_text(text.replace('"model": "x",', '"model": "y", // new\n  "theme": "dark",'))
    run(plan.uninstall, edits)
    assert (
        Path(path).read_text()
        == '{\n  // mine\n  "model": "y", // new\n  "theme": "dark",\n  "hooks": {"Stop": []}\n}\n'
    )


@pytest.mark.parametrize("kind", KINDS)
def test_another_interpreter_replaces_what_is_there(place: Place, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(harnesses.known(kind).edits(place)[0].path, JSON["two blanks"])
    now = harnesses.known(kind).edits(place)
    monkeypatch.setattr("sys.executable", "/opt/old place/bin/python3")
    monkeypatch.setattr("agentmail.hooks.guard._MAIN", "/opt/old place/lib/agentmail/__main__.py")
    run(plan.install, harnesses.known(kind).edits(place))
    if kind in ADAPTERS:
        assert all("/opt/old place" in one for one in ours(now[0].path, kind))
    count = len(ours(now[0].path, kind))
    run(plan.install, now)
    assert not any("/opt/old place" in text.decode() for text in tree(place.home).values())
    assert len(ours(now[0].path, kind)) == count
    holds(place, kind)
    run(plan.uninstall, now)
    assert tree(place.home) == {now[0].path: (JSON["two blanks"] or "").encode()}


def ours(path: str, kind: str) -> list[str]:
    if kind not in ADAPTERS:
        return []
    return [one for one in commands(Path(path).read_text()) if "agentmail/__main__.py" in one]


def test_a_hook_of_ours_in_a_group_of_the_users_is_moved_out_of_it(place: Place) -> None:
    edits = harnesses.known("claude").edits(place)
    run(plan.install, edits)
    written = value_of(edits[0].path)
    mixed = written["hooks"]["Stop"][0]
    mixed["hooks"].insert(0, OWN_HOOK["hooks"][0])
    put(edits[0].path, json.dumps(written))
    run(plan.install, edits)
    stop = value_of(edits[0].path)["hooks"]["Stop"]
    assert stop[0]["hooks"] == OWN_HOOK["hooks"]
    assert len(stop) == 3


@pytest.mark.parametrize(
    ("kind", "index", "text"),
    [
        ("claude", 0, "{"),
        ("claude", 0, "[]"),
        ("claude", 0, '{"hooks": []}'),
        ("claude", 0, '{"hooks": {"Stop": {}}}'),
        ("claude", 0, '{"permissions": {"allow": "Bash"}}'),
        ("codex", 0, "{'hooks': {}}"),
        ("codex", 1, "model = "),
        ("codex", 1, "[a]\n[a]\n"),
        ("codex", 1, "sandbox_workspace_write = 1\n"),
        ("codex", 1, "sandbox_workspace_write.writable_roots = '/x'\n"),
        ("codex", 3, "<!-- agentmail: begin -->\nno end"),
        ("gemini", 0, '{"a": 1,,}'),
        ("gemini", 0, '{"hooks": {"AfterTool": 1}}'),
        ("opencode", 1, "nonsense"),
    ],
)
def test_a_broken_file_is_refused_and_nothing_is_touched(place: Place, kind: str, index: int, text: str) -> None:
    edits = harnesses.known(kind).edits(place)
    content = put(edits[index].path, text)
    with pytest.raises(BadInput) as caught:
        run(plan.install, edits)
    assert "\n" not in str(caught.value)
    assert edits[index].path in str(caught.value)
    assert tree(place.home) == {edits[index].path: content}


def test_what_is_not_utf_8_is_refused(place: Place) -> None:
    path = harnesses.known("claude").edits(place)[0].path
    put(path, "")
    Path(path).write_bytes(b'{"a": "\xff"}')
    with pytest.raises(BadInput, match="not UTF-8"):
        plan.install(harnesses.known("claude").edits(place))


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_mode_and_symlink_are_kept(place: Place, mode: int) -> None:
    edits = harnesses.known("claude").edits(place)
    real = Path(place.home, "dotfiles", "claude.json")
    put(str(real), '{"model": "x"}')
    real.chmod(mode)
    os.makedirs(os.path.dirname(edits[0].path))
    os.symlink("../dotfiles/claude.json", edits[0].path)
    run(plan.install, edits)
    assert os.path.islink(edits[0].path)
    assert stat.S_IMODE(real.stat().st_mode) == mode
    assert stat.S_IMODE(os.stat(edits[0].path + files.BACKUP).st_mode) == mode
    assert "agentmail" in real.read_text()
    run(plan.uninstall, edits)
    assert real.read_text() == '{"model": "x"}'
    assert stat.S_IMODE(real.stat().st_mode) == mode
    assert os.path.islink(edits[0].path)


def test_a_write_that_fails_leaves_the_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = harnesses.known("claude").edits(place)
    put(edits[0].path, "{}")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        run(plan.install, edits)
    assert tree(place.home) == {edits[0].path: b"{}"}


def test_a_spool_elsewhere_is_named_everywhere(place: Place) -> None:
    there = place._replace(spool="/srv/mail $x/spool.db", spool_is_default=False)
    for kind in ADAPTERS:
        edits = harnesses.known(kind).edits(there)
        run(plan.install, edits)
        for command in commands(Path(edits[0].path).read_text()):
            assert "--spool '/srv/mail $x/spool.db'" in command
            assert "AGENTMAIL_SPOOL" not in command
    claude = value_of(harnesses.known("claude").edits(there)[0].path)
    assert claude["env"]["AGENTMAIL_SPOOL"] == there.spool
    assert claude["sandbox"]["filesystem"]["allowWrite"] == ["//srv/mail $x"]
    codex = value_of(harnesses.known("codex").edits(there)[1].path)
    assert codex["shell_environment_policy"]["set"]["AGENTMAIL_SPOOL"] == there.spool
    for kind in ("opencode", "omp"):
        edits = harnesses.known(kind).edits(there)
        run(plan.install, edits)
        assert '"--spool", "/srv/mail $x/spool.db"' in Path(edits[0].path).read_text()


def test_no_sandbox_is_opened_for_the_home_directory(place: Place) -> None:
    there = place._replace(spool=f"{place.home}/spool.db", spool_is_default=False)
    for kind in ("claude", "codex"):
        run(plan.install, harnesses.known(kind).edits(there))
        assert any("sandboxes were not opened" in note for note in harnesses.known(kind).notes(there))
    assert "sandbox" not in value_of(harnesses.known("claude").edits(there)[0].path)
    assert "sandbox_workspace_write" not in value_of(harnesses.known("codex").edits(there)[1].path)


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("agentmail send bob <<'EOF'\nhi\nEOF", True),
        ("agentmail reply 3 --await <<'EOF'\n> quoted\n\"EOF\"\nEOF x\n\nEOF\n", True),
        ("agentmail inbox > /tmp/x", False),
        ("agentmail send bob <<'EOF' > /tmp/x\nhi\nEOF", False),
        ("agentmail send bob <<'EOF'\nhi\nEOF\nagentmail inbox > /tmp/x", False),
        ("agentmail send bob <<'EOF'\nhi\nEOF\n\"agentmail\" inbox > /tmp/x\nEOF", False),
        ("agentmail send bob <<'EOF'\nhi\nEOF\n > /tmp/x", False),
        ("agentmail send bob <<EOF\n$(x)\nEOF", False),
        ("x; agentmail send bob <<'EOF'\nhi\nEOF", False),
    ],
)
def test_gemini_lets_a_here_document_pass_and_no_other_redirection(place: Place, command: str, passes: bool) -> None:
    import re

    edits = harnesses.known("gemini").edits(place)
    run(plan.install, edits)
    pattern = value_of(edits[1].path)["rule"][1]["commandRegex"]
    for after in ({}, {"description": "ends with\nEOF"}):
        given = json.dumps({"command": command, **after}, separators=(",", ":"))
        assert bool(re.search(f'"command":"{pattern}', given)) == passes, given


def test_gemini_in_a_project_has_no_policies(place: Place) -> None:
    there = place._replace(project=place.home + "/p")
    edits = harnesses.known("gemini").edits(there)
    run(plan.install, edits)
    assert value_of(edits[0].path)["tools"]["allowed"] == ["run_shell_command(agentmail)"]
    assert any("no here-document" in note for note in harnesses.known("gemini").notes(there))
    run(plan.uninstall, edits)
    assert tree(place.home) == {}


def test_opencode_with_one_word_for_all_commands(place: Place) -> None:
    edits = harnesses.known("opencode").edits(place)
    for text, told in (
        ('{"permission": "allow"}', 0),
        ('{"permission": {"bash": "ask"}}', 1),
        ('{"permission": "deny"}', 1),
    ):
        put(edits[1].path, text)
        run(plan.install, edits)
        assert Path(edits[1].path).read_text() == text
        assert len(harnesses.known("opencode").notes(place)) == told


def test_opencode_keeps_to_the_file_that_is_there(place: Place) -> None:
    put(f"{place.home}/.config/opencode/opencode.jsonc", "{} // mine\n")
    run(plan.install, harnesses.known("opencode").edits(place))
    assert not os.path.exists(f"{place.home}/.config/opencode/opencode.json")
    assert Document(Path(place.home, ".config/opencode/opencode.jsonc").read_text()).get(("permission", "bash"))


def test_plugins_name_the_interpreter(place: Place) -> None:
    for name, kind in PLUGINS.items():
        text = plugins._plugin(place, name, kind)
        line = next(line for line in text.splitlines() if line.startswith("const AGENTMAIL"))
        assert line.count("__main__.py") == 1
        assert '["agentmail"]' not in text


def test_the_skill_is_short_and_names_only_commands_that_exist() -> None:
    import re

    from agentmail.commands import BY_NAME

    text = skill.data("skill.md")
    assert len(text.splitlines()) < 40
    assert set(re.findall(r"\bagentmail ([a-z]+)\b", text)) <= set(BY_NAME)


def cli(mail: Mail, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**mail.environment(None), **env}
    environment.pop("AGENTMAIL_SPOOL")
    from tests.conftest import AGENTMAIL

    return subprocess.run(
        [*AGENTMAIL, "install", *words],
        env=environment,
        cwd=cwd or mail.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def config(mail: Mail) -> dict[str, bytes]:
    return {
        path: content for path, content in tree(str(mail.home)).items() if "/.claude/" in path or "/.codex/" in path
    }


def test_dry_run_shows_a_diff_and_writes_nothing(mail: Mail) -> None:
    put(f"{mail.home}/.claude/settings.json", '{"model": "x"}')
    before = tree(str(mail.home))
    done = cli(mail, "claude", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "settings.json: would be changed" in done.stdout
    assert '\n-{"model": "x"}\n' in done.stdout
    assert "+++ " in done.stdout
    found = json.loads(cli(mail, "claude", "--dry-run", "--json").stdout)
    assert found["dryRun"] is True
    assert [one["outcome"] for one in found["files"]] == ["changed", "created"]
    assert all(one["diff"] for one in found["files"])
    assert tree(str(mail.home)) == before


def test_the_command_line_installs_lists_and_takes_out(mail: Mail) -> None:
    project = mail.home / "project"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    done = cli(mail, "claude", cwd=project)
    assert done.returncode == 0, done.stderr
    assert f"- {mail.home}/.claude/settings.json: created" in done.stdout
    assert (mail.home / ".local/state/agentmail/spool.db").exists()
    done = cli(mail, "codex", "--project", cwd=project / "sub")
    assert f"- {project}/.codex/hooks.json: created" in done.stdout
    assert "trust" in done.stdout
    shown = cli(mail, cwd=project).stdout.splitlines()
    assert shown[0] == "- claude (Claude Code): present, installed for the user"
    assert shown[1].endswith("installed in this project")
    rows = json.loads(cli(mail, "--json", cwd=project).stdout)["harnesses"]
    assert [(row["harness"], row["user"], row["project"]) for row in rows[:3]] == [
        ("claude", True, False),
        ("codex", False, True),
        ("gemini", False, False),
    ]
    assert cli(mail, "claude", "--uninstall", cwd=project).returncode == 0
    assert cli(mail, "codex", "--project", "--uninstall", cwd=project).returncode == 0
    assert config(mail) == {}
    assert not (mail.home / ".claude").exists()
    assert not (project / ".codex").exists()
    assert "absent" in cli(mail, "claude", "--uninstall", cwd=project).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vim"], "there is no harness 'vim'"),
        (["claude", "--project", "--user"], "name one of them"),
        (["claude", "--trust"], "--trust is for codex"),
        (["--uninstall"], "name the harness"),
        (["codex", "--trust"], "'codex' is not in the PATH"),
        (["codex", "--trust", "--uninstall"], "contradict"),
    ],
)
def test_misuse_is_one_line_and_does_nothing(mail: Mail, words: list[str], said: str) -> None:
    done = cli(mail, *words, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert config(mail) == {}


def test_a_broken_file_is_refused_in_one_line(mail: Mail) -> None:
    put(f"{mail.home}/.claude/settings.json", '{"model": ')
    before = tree(str(mail.home))
    done = cli(mail, "claude")
    assert done.returncode == 2
    assert done.stderr == (
        f"agentmail: cannot edit {mail.home}/.claude/settings.json: line 1: a value is missing; nothing was changed\n"
    )
    assert tree(str(mail.home)) == before


def test_two_harnesses_share_a_file_of_instructions(mail: Mail, place: Place) -> None:
    there = place._replace(project=place.home + "/p")
    run(plan.install, harnesses.known("opencode").edits(there))
    run(plan.install, harnesses.known("codex").edits(there))
    assert harnesses.shared_paths(harnesses.known("codex"), there) == {f"{there.project}/AGENTS.md"}
    run(plan.uninstall, harnesses.known("opencode").edits(there)[:2])
    assert harnesses.shared_paths(harnesses.known("codex"), there) == set()


CODEX = """#!{python}
import hashlib, json, os, sys
assert sys.argv[1:] == ["app-server"]
path = os.environ["HOME"] + "/.codex/hooks.json"
for line in sys.stdin:
    request = json.loads(line)
    if request.get("id") == 1:
        print(json.dumps({{"method": "configWarning", "params": {{}}}}))
        print(json.dumps({{"id": 1, "result": {{}}}}), flush=True)
    elif request.get("id") == 2:
        hooks = []
        for event, groups in json.load(open(path))["hooks"].items():
            name = "".join("_" + letter.lower() if letter.isupper() else letter for letter in event).lstrip("_")
            for group, entry in enumerate(groups):
                for index, hook in enumerate(entry["hooks"]):
                    digest = "sha256:" + hashlib.sha256(hook["command"].encode()).hexdigest()
                    hooks.append({{"key": f"{{path}}:{{name}}:{{group}}:{{index}}", "command": hook["command"],
                                  "sourcePath": path, "currentHash": digest}})
        print(json.dumps({{"id": 2, "result": {{"data": [{{"cwd": "x", "hooks": hooks}}]}}}}), flush=True)
"""


def test_trust_is_stored_for_our_hooks_only_and_taken_back(mail: Mail) -> None:
    hooks, toml = mail.home / ".codex/hooks.json", mail.home / ".codex/config.toml"
    put(str(hooks), json.dumps({"hooks": {"Stop": [OWN_HOOK]}}))
    put(str(toml), "# mine\nmodel = 'x'\n")
    program = mail.home / "bin/codex"
    put(str(program), CODEX.format(python=sys.executable))
    program.chmod(0o700)
    path = f"{program.parent}:{os.environ['PATH']}"
    before = config(mail)
    assert cli(mail, "codex", PATH=path).returncode == 0
    assert "hooks" not in tomllib.loads(toml.read_text())
    done = cli(mail, "codex", "--trust", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"- {toml}: changed" in done.stdout
    trusted = tomllib.loads(toml.read_text())["hooks"]["state"]
    assert f"{hooks}:stop:1:0" in trusted
    assert f"{hooks}:stop:0:0" not in trusted
    assert len(trusted) == 6
    assert "unchanged" in cli(mail, "codex", "--trust", PATH=path).stdout
    assert cli(mail, "codex", "--uninstall").returncode == 0
    assert config(mail) == before


@pytest.mark.parametrize("body", ["exit 1", "echo nonsense"])
def test_a_codex_that_does_not_answer_is_one_line(mail: Mail, body: str) -> None:
    program = mail.home / "bin/codex"
    put(str(program), f"#!/bin/sh\n{body}\n")
    program.chmod(0o700)
    done = cli(mail, "codex", "--trust", PATH=f"{program.parent}:{os.environ['PATH']}")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "/hooks" in done.stderr


EVENTS = {
    "claude": ("SessionStart", "PostToolUse", "PreToolUse", "Bash"),
    "codex": ("SessionStart", "PostToolUse", "PreToolUse", "Bash"),
    "gemini": ("SessionStart", "AfterTool", "BeforeTool", "run_shell_command"),
}
SESSIONS = {"claude": "CLAUDE_CODE_SESSION_ID", "gemini": "GEMINI_SESSION_ID"}


@pytest.mark.parametrize("kind", list(EVENTS))
def test_the_hooks_as_written_deliver(mail: Mail, kind: str) -> None:
    """The commands are taken out of the written file and run as harnesses run them."""
    path = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}[kind]
    assert cli(mail, kind, "--spool", str(mail.spool)).returncode == 0
    hooks = json.loads((mail.home / path).read_text())["hooks"]
    start, step, tool, shell = EVENTS[kind]

    def fire(event: str, **fields: Any) -> str:
        record = {"session_id": "5e55-1", "cwd": str(mail.home), "hook_event_name": event, **fields}
        environment = mail.environment(None, **{SESSIONS[kind]: "5e55-1"} if kind in SESSIONS else {})
        environment["AGENTMAIL_SPOOL"] = "/nowhere"  # the command names its own
        del environment["PYTHONPATH"]
        done = subprocess.run(
            ["sh", "-c", hooks[event][0]["hooks"][0]["command"]],
            env=environment,
            cwd="/",
            input=json.dumps(record),
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert "agentmail: you are" in fire(start, source="startup")
    me = mail.sql("SELECT name FROM agents WHERE kind = ?", kind)[0][0]
    response = {"tool_name": shell, "tool_input": {"command": "ls"}, "tool_response": "x"}
    assert fire(step, **response) == ""
    mail.send("bob", me, "the build is green")
    assert "the build is green" in json.loads(fire(step, **response))["hookSpecificOutput"]["additionalContext"]
    assert fire(step, **response) == ""
    assert fire(tool, tool_name=shell, tool_input={"command": "ls `pwd`"}) == ""
    refused = fire(tool, tool_name=shell, tool_input={"command": 'agentmail send bob "see `x`"'})
    assert "deny" in refused
    assert "<<'EOF'" in refused
    assert mail.run("bob", "list").ok().out.count(me) >= 1


def test_the_sentry_ends_at_once_where_nobody_attends(place: Place) -> None:
    edits = harnesses.known("claude").edits(place)
    run(plan.install, edits)
    group = value_of(edits[0].path)["hooks"]["Stop"][1]["hooks"][0]
    assert group["asyncRewake"]
    assert group["timeout"] > 3500
    environment = {**os.environ, "CLAUDE_CODE_SESSION_ATTENDED": "0"}
    done = subprocess.run(["sh", "-c", group["command"]], env=environment, input=b"{}", timeout=5, check=False)
    assert done.returncode == 0


def test_the_command_line_does_not_load_this(mail: Mail) -> None:
    from tests.conftest import AGENTMAIL

    code = "import sys; sys.argv = ['agentmail', 'inbox']; import agentmail.__main__ as m; m.run(['inbox']);"
    code += " sys.exit(any(name.startswith('agentmail.install') for name in sys.modules))"
    done = subprocess.run([AGENTMAIL[0], "-c", code], env=mail.environment("bob"), check=False, capture_output=True)
    assert done.returncode == 0
