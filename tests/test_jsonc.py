"""Editing JSON and TOML at the least number of bytes: any text, any edit, and back."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentmail.install import jsonc, toml
from agentmail.install.document import Document

GAPS = st.sampled_from(["", " ", "\n", "\r\n", "\t", "\n    ", " /* , } */ ", '// ] "\n', "\n\n  // {\n  "])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8), FLOATS)
SAFE_KEYS = st.sampled_from(["hooks", "Stop", "permissions", "allow", "env", "tools"]) | st.text(max_size=5)


@st.composite
def written(draw: st.DrawFn, depth: int = 3) -> str:
    """A value as a person might have written it."""
    kind = draw(st.sampled_from(["scalar", "list", "object"] if depth else ["scalar"]))
    if kind == "scalar":
        return json.dumps(draw(SCALARS), ensure_ascii=draw(st.booleans()))
    return draw(container(kind, depth))


@st.composite
def container(draw: st.DrawFn, kind: str, depth: int = 3) -> str:
    open_, close = "[]" if kind == "list" else "{}"

    def gap() -> str:
        return draw(GAPS)

    keys = draw(st.lists(SAFE_KEYS, max_size=3, unique=True))
    parts = []
    for key in keys:
        name = f"{json.dumps(key)}{gap()}:{gap()}" if kind == "object" else ""
        parts.append(f"{gap()}{name}{draw(written(depth - 1))}{gap()}")
    has_trailing: bool = draw(st.booleans())
    trailing = f",{gap()}" if parts and has_trailing else ""
    return f"{open_}{gap() if not parts else ''}{','.join(parts)}{trailing}{close}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    def gap() -> str:
        return draw(GAPS)

    return f"{gap()}{draw(container('object'))}{gap()}"


def value_of(text: str) -> Any:
    root = jsonc.read(text)
    return None if root is None else root.value


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10))
def test_plain_json_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    text = json.dumps(value, indent=1)
    assert json.dumps(value_of(text)) == json.dumps(json.loads(text))


NO_JSON = [
    *("{", "}", '{"a"}', '{"a":}', "{'a': 1}", "[1 2]", '{"a": 1} x', "{a: 1}", '{"a": 01}', '"\n"', "[,]", "/* "),
    *("nul", "[" * 5000, '{"a": NaN}', '{"a": 1,, "b": 2}'),
]


@pytest.mark.parametrize("text", NO_JSON)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(jsonc.Broken):
        jsonc.read(text)


@given(documents(), SAFE_KEYS, SCALARS)
def test_a_member_goes_in_and_out(text: str, key: str, value: Any) -> None:
    document = Document(text)
    before = document.root.value
    assume(key not in before)
    document.put((key,), value)
    assert value_of(document.text) == {**before, key: value}
    changed = document.text
    document.put((key,), value)
    assert document.text == changed
    document.take((key,))
    assert value_of(document.text) == before
    if before:
        assert document.text == text


@given(documents(), st.sampled_from([("hooks", "Stop"), ("a",), ("permissions", "x", "allow")]), st.integers(1, 3))
def test_items_go_in_and_out(text: str, path: tuple[str, ...], count: int) -> None:
    document = Document(text)
    try:
        before = len(document.items(path))
    except jsonc.Broken:
        assume(False)
    here = document.get(path)
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}
    for _ in range(count):
        document.append(path, group)
    assert [child.node.value for child in document.items(path)][before:] == [group] * count
    for index in reversed(range(before, before + count)):
        document.take_item(path, index)
    if before:
        assert document.text == text
    elif here is not None:
        assert value_of(document.text) == value_of(text)


@given(documents(), st.data())
def test_taking_an_item_out_leaves_the_others_and_the_comments(text: str, data: st.DataObject) -> None:
    document = Document(text)
    lists = [key for key, value in document.root.value.items() if isinstance(value, list) and value]
    assume(lists)
    key = data.draw(st.sampled_from(lists))
    index = data.draw(st.integers(0, len(document.root.value[key]) - 1))
    expected = dict(document.root.value)
    expected[key] = [value for place, value in enumerate(expected[key]) if place != index]
    document.take_item((key,), index)
    assert value_of(document.text) == expected


ROOTS = ("sandbox_workspace_write", "writable_roots")
ENVIRONMENT = ("shell_environment_policy", "set", "AGENTMAIL_TIMEOUT_MS")
TRUST = ("hooks", "state", "/a/b.json:stop:0:0", "trusted_hash")
TOML = [
    "",
    "# only a comment",
    'model = "x"',
    '\n\nmodel = "x"\n\n[tui]\nnotifications = true # yes\n\n\n',
    "[sandbox_workspace_write]\nnetwork_access = true # y\n\n[tui]\n",
    "sandbox_workspace_write.network_access = true\r\nshell_environment_policy.inherit = 'all'\r\n",
    "sandbox_workspace_write = { network_access = true }\nshell_environment_policy = {}\n",
    '[sandbox_workspace_write]\nwritable_roots = [\n  "/a", # c\n  "/b"\n]\n'
    '[shell_environment_policy]\nset = { A = "1" }\n',
    '[sandbox_workspace_write]\nwritable_roots = []\n[shell_environment_policy]\nset.B = """x\n[foo]"""',
    '[sandbox_workspace_write] # n\nwritable_roots = [ "/x", ]\n[shell_environment_policy.set]\nA="3"\n'
    "[[x.y]]\na=1\n[[x.y]]\n",
    'a = [ {b="]"}, [1,[2]], 2020-01-01 12:00:00 , nan]\n'
    "sandbox_workspace_write = { writable_roots = ['/q',] , x = '}'}\n",
    "\t[ shell_environment_policy . set ]\n'A' = '''\n[x]'''\n",
    "[hooks.state.\"/a/b.json:stop:0:0\"]\ntrusted_hash = 'old'\nenabled = true\n",
    '[hooks.state]\n[projects."/home/x"]\ntrust_level = "trusted"',
]


@pytest.mark.parametrize("text", TOML)
def test_toml_gets_what_it_should_and_keeps_the_rest(text: str) -> None:
    before = tomllib.loads(text)
    changed = toml.add_item(text, ROOTS, "/s p/é")
    changed = toml.put(changed, ENVIRONMENT, "100000")
    changed = toml.put(changed, TRUST, "sha256:1")
    after = tomllib.loads(changed)
    assert toml.look(after, ROOTS) == ["/s p/é", *(toml.look(before, ROOTS) or [])]
    assert toml.look(after, ENVIRONMENT) == "100000"
    assert toml.look(after, TRUST) == "sha256:1"
    lines = changed.splitlines()
    assert all(line.strip() in "\n".join(lines) for line in text.splitlines() if "=" not in line)
    assert toml.put(toml.add_item(changed, ROOTS, "/s p/é"), ENVIRONMENT, "100000") == changed


@pytest.mark.parametrize("text", TOML)
def test_toml_gives_back_what_was_put_in(text: str) -> None:
    if toml.look(tomllib.loads(text), ROOTS):
        assert toml.take_item(toml.add_item(text, ROOTS, "/s"), ROOTS, "/s") == text
    if toml.look(tomllib.loads(text), ENVIRONMENT[:-1]):
        assert toml.take(toml.put(text, ENVIRONMENT, "1"), ENVIRONMENT) == text
    if text.endswith("\n") and not toml.look(tomllib.loads(text), TRUST):
        assert toml.take(toml.put(text, TRUST, "1"), TRUST[:-1]) == text


@pytest.mark.parametrize("text", ["a = ", "[x", "sandbox_workspace_write = 3", "[a]\n[a]\n", "x = 'a\n"])
def test_broken_toml_is_refused(text: str) -> None:
    with pytest.raises(toml.Broken):
        toml.add_item(text, ROOTS, "/s")
