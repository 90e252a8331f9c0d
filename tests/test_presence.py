"""Who is there is true at the moment of asking, and every coming and going is told once."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from agentmail import processes
from tests.conftest import Mail, eventually, finish
from tests.sessions import register
from tests.stub_harness import Claude, when

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _alice(mail: Mail) -> None:
    register(mail, "alice")


def listed(mail: Mail) -> dict[str, str]:
    return {peer["id"]: peer["status"] for peer in mail.run("alice", "list", "--json").ok().json["peers"]}


def events(mail: Mail, name: str) -> list[str]:
    query = "SELECT what FROM events AS e JOIN agents AS a ON a.id = e.agent WHERE a.name = ? ORDER BY e.id"
    return [str(what) for (what,) in mail.sql(query, name)]


def test_hooks_move_the_status(mail: Mail, tmp_path: Path) -> None:
    bob = Claude(mail, "bob", on_turn=(when(tmp_path / "go"),)).start()
    assert listed(mail) == {"bob": "idle"}
    bob.prompt("work")
    eventually(lambda: listed(mail) == {"bob": "running"})
    (tmp_path / "go").touch()
    eventually(lambda: listed(mail) == {"bob": "idle"})
    bob.end()
    assert listed(mail) == {"bob": "parked"}
    assert events(mail, "bob") == ["joined", "left"]


@pytest.mark.parametrize("mid_turn", [True, False])
def test_a_killed_session_is_parked_for_whoever_asks_next(mail: Mail, tmp_path: Path, mid_turn: bool) -> None:
    bob = Claude(mail, "bob", on_turn=(when(tmp_path / "go"),)).start()
    if mid_turn:
        bob.prompt("work")
        eventually(lambda: listed(mail) == {"bob": "running"})
    bob.kill()
    assert listed(mail) == {"bob": "parked"}
    (tmp_path / "go").touch()


def test_a_hook_that_outlives_its_session_does_not_bring_it_back(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().kill()
    event = {"session_id": bob.session, "cwd": str(bob.directory), "hook_event_name": "Stop"}
    mail.run("bob", "hook", "claude", stdin=json.dumps(event)).ok()
    assert listed(mail) == {"bob": "parked"}


def test_a_death_is_one_event_however_many_notice(mail: Mail) -> None:
    bobs = [Claude(mail, f"bob{i}").start() for i in range(3)]
    for bob in bobs:
        bob.kill()
    for asking in [mail.start("alice", "list") for _ in range(8)]:
        finish(asking).ok()
    assert [events(mail, bob.name) for bob in bobs] == [["joined", "died"]] * 3


def test_others_are_told_once_of_each_coming_and_going(mail: Mail) -> None:
    carol = Claude(mail, "carol").start()
    Claude(mail, "bob").start().kill()
    Claude(mail, "dave").start().end()
    carol.turn().turn()
    for told in ("bob has joined", "bob has ended without a word", "dave has joined", "dave has left"):
        assert carol.saw(told) == 1, told


@pytest.mark.parametrize("part", ["boot", "start"])
def test_another_process_of_the_same_pid_is_not_the_session(mail: Mail, part: str) -> None:
    register(mail, "bob")
    boot, namespace, pid, start = (processes.identify(os.getpid()) or "").split("/")
    other = {"boot": ("0", namespace, pid, start), "start": (boot, namespace, pid, "1")}
    mail.sql("UPDATE agents SET process = ? WHERE name = 'bob'", "/".join(other[part]))
    assert listed(mail) == {"bob": "parked"}


def test_a_process_in_another_pid_namespace_counts_by_what_the_agent_does(mail: Mail) -> None:
    register(mail, "bob")
    boot, _, _, start = (processes.identify(os.getpid()) or "").split("/")
    mail.sql("UPDATE agents SET process = ? WHERE name = 'bob'", f"{boot}/1/{os.getpid()}/{start}")
    assert listed(mail) == {"bob": "idle"}
    mail.sql("UPDATE agents SET active = active - 3700000 WHERE name = 'bob'")
    assert listed(mail) == {"bob": "parked"}


def test_who_was_aborted_in_a_turn_stays_so(mail: Mail, tmp_path: Path) -> None:
    bob = Claude(mail, "bob", on_turn=(when(tmp_path / "go"),)).start()
    bob.prompt("work")
    eventually(lambda: listed(mail) == {"bob": "running"})
    mail.run("alice", "abort", "bob").ok()
    assert listed(mail) == {}
    assert events(mail, "bob") == ["joined", "aborted"]
    (tmp_path / "go").touch()
