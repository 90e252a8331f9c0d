"""Which names are allowed, and what directories and people are called by themselves."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmail import names
from agentmail.errors import BadInput
from agentmail.operations.subagents import alias_of

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
GOOD = ["bob", "Bob", "7", "a.b_c-d", "claude-5d00b2", "claude-5d00b2-2", "x" * 64]
BAD = [
    "",
    " ",
    "-bob",
    ".bob",
    "_bob",
    "bo b",
    "bob!",
    "bob/..",
    "../bob",
    "bob\n\nx",
    "bøb",
    "x" * 65,
    "+relay",
    "#x",
]
ALIASES = [(0, "agentA"), (1, "agentB"), (25, "agentZ"), (26, "agentA1"), (51, "agentZ1"), (52, "agentA2")]


@pytest.mark.parametrize("name", GOOD)
def test_good_names_are_taken_as_they_are(name: str) -> None:
    assert names.check(name) == name


@pytest.mark.parametrize("name", BAD)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is no agent name"):
        names.check(name)


@pytest.mark.parametrize("name", ["all", "ALL", " All "])
def test_nobody_can_be_called_everybody(name: str) -> None:
    with pytest.raises(BadInput, match="means everybody"):
        names.check(name)


def test_surrounding_space_is_not_part_of_a_name() -> None:
    assert names.check(" bob\n") == "bob"


@given(st.text(max_size=70))
def test_a_name_is_allowed_just_if_the_contract_says_so(text: str) -> None:
    stripped = text.strip()
    if ALLOWED.fullmatch(stripped) and stripped.lower() != "all":
        assert names.check(text) == stripped
    else:
        with pytest.raises(BadInput):
            names.check(text)


@pytest.mark.parametrize(
    ("directory", "name"), [("/home/aaron/.claude", "claude-5d00b2"), ("/home/aaron/temp", "claude-144dc4")]
)
def test_a_directory_gives_the_name_that_it_always_gave(directory: str, name: str) -> None:
    assert names.from_directory("claude", directory) == name


def test_every_place_in_a_work_tree_gives_the_name_of_the_whole(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "deep" / "down").mkdir(parents=True)
    whole = names.from_directory("claude", str(tmp_path / "project"))
    assert names.from_directory("claude", str(tmp_path / "project" / "deep" / "down")) == whole
    assert names.from_directory("claude", str(tmp_path)) != whole


def test_a_linked_work_tree_is_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").write_text("gitdir: ../.git/worktrees/linked\n")
    assert names.work_tree(str(tmp_path / "linked")) == os.path.realpath(tmp_path / "linked")


def test_a_symlink_gives_the_name_of_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert names.from_directory("x", str(tmp_path / "link")) == names.from_directory("x", str(tmp_path / "real"))


def test_a_directory_that_is_no_utf8_has_a_name(tmp_path: Path) -> None:
    assert ALLOWED.fullmatch(names.from_directory("claude", os.fsdecode(os.fsencode(tmp_path) + b"/\xff")))


@pytest.mark.parametrize(
    ("login", "name"),
    [("aaron", "aaron"), ("Jo Doe", "Jo-Doe"), (".hidden", "hidden"), ("all", "human"), ("é", "human"), ("öl", "l")],
)
def test_a_person_is_called_by_the_login_name(login: str, name: str) -> None:
    with patch.dict(os.environ, LOGNAME=login):
        assert names.of_person() == name


def test_without_a_login_name_the_user_database_is_asked() -> None:
    with patch.dict(os.environ):
        os.environ.pop("LOGNAME", None)
        os.environ.pop("USER", None)
        assert names.check(names.of_person())


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80))
def test_any_login_gives_an_allowed_name(login: str) -> None:
    with patch.dict(os.environ, LOGNAME=login):
        name = names.of_person()
    assert names.check(name) == name


@pytest.mark.parametrize(("number", "alias"), ALIASES)
def test_aliases_go_round_the_alphabet(number: int, alias: str) -> None:
    assert alias_of(number) == alias
