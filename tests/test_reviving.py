"""A parked agent is revived by a direct send: one session at a time, and the receipt says what happened."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from agentmail import processes
from tests.conftest import Mail, eventually, finish
from tests.rousing import Command, Turn, interval, outcome, pending, send
from tests.sessions import register
from tests.stub_harness import Claude, path_with, when

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _alice(mail: Mail) -> None:
    register(mail, "alice")
    interval(mail, 100)


def parked(mail: Mail, command: object, name: str = "bob") -> None:
    mail.run(name, "register", name, "--revive", str(command)).ok()
    mail.run(name, "park").ok()


def gone(mail: Mail, name: str = "bob", **script: str) -> tuple[Claude, dict[str, str]]:
    """A stub session that has ended, and the environment in which `claude` is found."""
    session = Claude(mail, name, **script).start().end()  # type: ignore[arg-type]
    assert session.status() == "parked"
    return session, path_with(session.programs)


def sessions(session: Claude) -> int:
    return len(session.log("ready"))


# By a registered command


def test_a_registered_command_revives(mail: Mail) -> None:
    command = Command(mail)
    parked(mail, f"{command} --resume 'my session'")
    assert send(mail) == ("revived", None)
    assert [start["arguments"] for start in command.starts] == [["--resume", "my session"]]
    assert pending(mail) == ["wake up"]


def test_the_command_for_waking_is_not_for_reviving(mail: Mail) -> None:
    command = Command(mail)
    mail.run("bob", "register", "bob", "--wake", str(command)).ok()
    mail.run("bob", "park").ok()
    assert send(mail) == ("queued", None)
    assert command.starts == []


def test_without_a_means_it_is_queued(mail: Mail) -> None:
    mail.run("bob", "register", "bob").ok()
    mail.run("bob", "park").ok()
    assert send(mail) == ("queued", None)


def test_a_broadcast_revives_nobody(mail: Mail) -> None:
    command = Command(mail)
    parked(mail, command)
    assert mail.run("alice", "send", "all", "hello").ok().out == "No live peers.\n"
    assert command.starts == []


def test_a_mention_revives(mail: Mail) -> None:
    command = Command(mail)
    parked(mail, command)
    sent = mail.run("alice", "send", "+relay", "@bob please look", "--json").ok()
    assert outcome(sent) == ("revived", None)
    assert len(command.starts) == 1


def test_a_failure_is_queued_with_its_reason_and_the_mail_stays(mail: Mail) -> None:
    command = Command(mail, rest="print('No conversation found with session ID', file=sys.stderr); sys.exit(1)")
    parked(mail, command)
    reason = f"{command} failed with status 1: No conversation found with session ID"
    assert send(mail) == ("queued", reason)
    assert pending(mail) == ["wake up"]
    parked(mail, "no-such-program-anywhere")
    interval(mail, 0)
    assert send(mail) == ("queued", "cannot run no-such-program-anywhere: no such file or directory")


def test_a_command_that_leaves_a_session_behind_is_trusted_for_a_while(mail: Mail) -> None:
    command = Command(mail)  # it ends at once with status 0, as `tmux new-window -d` does
    parked(mail, command)
    interval(mail, 0)
    assert [send(mail), send(mail)] == [("revived", None)] * 2
    assert len(command.starts) == 1
    mail.sql("UPDATE agents SET woken = woken - 40000")
    mail.sql("UPDATE agents SET since = since - 50000, active = active - 50000 WHERE name = 'bob'")
    assert send(mail) == ("revived", None)
    assert len(command.starts) == 2


def test_as_long_as_its_process_runs_no_other_is_started(mail: Mail) -> None:
    command = Command(mail, rest="time.sleep(30)")
    parked(mail, command)
    interval(mail, 0)
    assert [send(mail), send(mail)] == [("revived", None)] * 2
    (start,) = command.starts
    os.kill(start["pid"], signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{start['pid']}"))
    assert send(mail) == ("revived", None)
    assert len(command.starts) == 2
    os.kill(command.starts[1]["pid"], signal.SIGKILL)


@pytest.mark.parametrize("part", ["boot", "namespace", "start"])
def test_another_process_of_the_same_pid_is_not_taken_for_the_reviver(mail: Mail, part: str) -> None:
    command = Command(mail)
    parked(mail, command)
    boot, namespace, pid, start = (processes.identify(os.getpid()) or "").split("/")
    other = {
        "boot": ("0", namespace, pid, start),
        "namespace": (boot, "1", pid, start),
        "start": (boot, namespace, pid, "1"),
    }
    mail.sql("UPDATE agents SET reviver = ?, woken = since + 1 WHERE name = 'bob'", "/".join(other[part]))
    interval(mail, 0)
    assert send(mail) == ("revived", None)
    assert len(command.starts) == 1


def test_the_true_reviver_is(mail: Mail) -> None:
    command = Command(mail)
    parked(mail, command)
    mail.sql("UPDATE agents SET reviver = ?, woken = since + 1 WHERE name = 'bob'", processes.identify(os.getpid()))
    interval(mail, 0)
    assert send(mail) == ("revived", None)
    assert command.starts == []


# By the harness's own means


def test_the_harness_resumes_its_session(mail: Mail) -> None:
    bob, path = gone(mail, on_mail="agentmail reply {id} 8080")
    assert send(mail, body="which port?", **path) == ("revived", None)
    bob.until(lambda: len(bob.log("end")) == 2)
    assert bob.saw("which port?") == 1
    assert bob.status() == "parked"
    assert mail.run("alice", "inbox", "--json").ok().json["inbox"][0]["body"] == "8080"


def test_its_failure_is_told(mail: Mail) -> None:
    gone(mail)
    assert send(mail, PATH="/usr/bin:/bin") == ("queued", "cannot run claude: no such file or directory")


def test_a_session_that_was_killed_is_found_parked_and_resumed(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn().kill()
    assert bob.status() == "idle"  # nobody has looked yet
    assert send(mail, **path_with(bob.programs)) == ("revived", None)
    bob.until(lambda: bob.saw("wake up") == 1)


def test_many_sends_at_once_start_one_session_and_all_their_receipts_are_true(mail: Mail, tmp_path: Path) -> None:
    bob, path = gone(mail, on_mail=when(tmp_path / "go"))
    sending = [mail.start("alice", "send", "bob", f"number {i};", "--json", **path) for i in range(20)]
    outcomes = {outcome(finish(one).ok()) for one in sending}
    assert outcomes <= {("revived", None), ("injected", None)}
    (tmp_path / "go").touch()
    bob.until(lambda: all(bob.saw(f"number {i};") == 1 for i in range(20)))
    assert sessions(bob) == 2


def test_mail_to_a_session_that_came_and_went_again_starts_it_again(mail: Mail) -> None:
    bob, path = gone(mail)
    interval(mail, 0)
    for count in (1, 2):
        assert send(mail, body=f"number {count};", **path) == ("revived", None)
        bob.until(lambda count=count: len(bob.log("end")) == count + 1)
    assert [bob.saw(f"number {count};") for count in (1, 2)] == [1, 1]


def test_a_wake_that_is_due_for_a_session_that_died_since_revives_it(mail: Mail) -> None:
    command = Command(mail)
    bob = Claude(mail, "bob", on_turn=(f"agentmail register bob --wake {command}",)).start().turn()
    os.kill(int(mail.sql("SELECT holder FROM sentries")[0][0].partition("-")[0]), signal.SIGKILL)
    bob.until(lambda: bob.log("sentry"))
    with Turn(mail, "bob"):
        sending = mail.start("alice", "send", "bob", "wake up")
        eventually(lambda: pending(mail))
        sending.kill()
        finish(sending)
    bob.kill()
    register(mail, "dave")
    mail.run("alice", "send", "dave", "unrelated", **path_with(bob.programs)).ok()
    bob.until(lambda: bob.saw("wake up") == 1)
    assert command.starts == []


def test_an_await_of_the_revived_gets_its_answer(mail: Mail) -> None:
    _, path = gone(mail, on_mail="agentmail reply {id} 8080")
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "30s", **path).ok()
    assert re.search(
        r"^- bob: revived: was parked for \d+s, 0 unread\n\[\d+\] bob \(reply to \d+\): 8080$", done.out, re.M
    )


def test_an_await_of_the_revived_is_stopped_when_its_turn_ends_without_an_answer(mail: Mail, tmp_path: Path) -> None:
    bob, path = gone(mail, on_mail=when(tmp_path / "go"))
    asking = mail.start("alice", "send", "bob", "which port?", "--await", "--timeout", "30s", "--json", **path)
    bob.until(lambda: bob.saw("which port?"))
    time.sleep(0.3)
    assert asking.poll() is None
    (tmp_path / "go").touch()
    done = finish(asking).ok()
    assert (outcome(done), done.json["reason"]) == (("revived", None), "stopped")


def test_an_await_of_the_revived_is_stopped_when_that_dies(mail: Mail, tmp_path: Path) -> None:
    bob, path = gone(mail, on_mail=when(tmp_path / "go"))
    asking = mail.start("alice", "send", "bob", "which port?", "--await", "--timeout", "30s", "--json", **path)
    bob.until(lambda: bob.saw("which port?"))
    os.kill(int(bob.log("ready")[-1]), signal.SIGKILL)
    assert finish(asking).ok().json["reason"] == "stopped"
    (tmp_path / "go").touch()


def test_one_wakes_another_who_revives_a_third_and_the_answer_comes_back(mail: Mail) -> None:
    carol, _ = gone(mail, "carol", on_mail="agentmail reply {id} 42")
    ask = "agentmail send carol 'what is it?' --await --timeout 30s --json"
    answer = f'agentmail reply {{id}} "carol says: $({ask})"'
    bob = Claude(mail, "bob", on_mail=answer).start().turn()
    alice = Claude(mail, "ann", on_turn=("agentmail send bob 'ask carol' --await --timeout 30s",)).start()
    alice.prompt("find it out")
    alice.until(lambda: alice.log("ran"))
    (ran,) = alice.log("ran")
    assert re.search(r"^- bob: woken: ", ran, re.M)
    assert '"outcome":"revived"' in ran
    assert '"body":"42"' in ran
    assert (bob.saw("ask carol"), carol.saw("what is it?")) == (1, 1)
    assert sessions(carol) == 2
    carol.until(lambda: len(carol.log("end")) == 2)
