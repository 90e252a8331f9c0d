"""An idle agent is woken, by something that really runs; and a receipt says what happened."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import AGENTMAIL, Mail, eventually, finish
from tests.rousing import Command, Turn, interval, outcome, pending, send, status
from tests.sessions import register
from tests.stub_harness import Claude, when

if TYPE_CHECKING:
    from pathlib import Path

MOMENT = 1.5  # longer than the sentry's polling, and than a command's trial


@pytest.fixture(autouse=True)
def _alice(mail: Mail) -> None:
    register(mail, "alice")
    interval(mail, 100)


def idle(mail: Mail, command: object, name: str = "bob") -> None:
    mail.run(name, "register", name, "--wake", str(command)).ok()


# By a wait, a hook, a sentry


def test_a_blocked_wait_takes_it_and_no_command_runs(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    waiting = mail.start("bob", "wait")
    mail.wait_until_waiting("bob")
    assert send(mail) == ("injected", None)
    assert finish(waiting).ok().out.endswith("wake up\n")
    assert command.starts == []


def test_mid_turn_the_hook_of_the_next_step_shows_it_and_no_turn_is_started(mail: Mail, tmp_path: Path) -> None:
    bob = Claude(mail, "bob", on_turn=(when(tmp_path / "go"),)).start()
    bob.prompt("work")
    eventually(lambda: bob.status() == "running")
    assert send(mail) == ("injected", None)
    (tmp_path / "go").touch()
    bob.until(lambda: bob.log("idle"))
    assert bob.saw("wake up") == 1
    assert bob.log("turn") == ["work"]
    assert bob.log("sentry") == []


def test_an_idle_session_is_woken_by_its_sentry_for_one_turn(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn()
    assert send(mail) == ("woken", None)
    bob.until(lambda: len(bob.log("idle")) == 2)
    assert bob.saw("wake up") == 1
    assert [turn.partition(">")[0] for turn in bob.log("turn")] == ["go on", "<task-notification"]
    assert pending(mail) == []


def test_many_sends_at_once_to_an_idle_session_are_all_told_the_truth(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn()
    sending = [mail.start("alice", "send", "bob", f"number {i};", "--json") for i in range(20)]
    outcomes = {outcome(finish(one).ok()) for one in sending}
    assert outcomes <= {("woken", None), ("injected", None)}
    bob.until(lambda: all(bob.saw(f"number {i};") == 1 for i in range(20)))


def test_a_wake_for_mail_during_the_turn_that_a_sentry_called_for_is_not_called_again(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn()
    for i in range(3):
        send(mail, body=f"number {i};")
    bob.until(lambda: all(bob.saw(f"number {i};") == 1 for i in range(3)))
    bob.until(lambda: mail.sql("SELECT 1 FROM sentries WHERE fired IS NULL"))
    turns = len(bob.log("turn"))
    time.sleep(MOMENT)
    assert len(bob.log("turn")) == turns


def test_mail_too_long_to_show_wakes_once(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn()
    mail.run("alice", "send", "bob", stdin="x" * 20_000).ok()
    bob.until(lambda: bob.saw("too long to show here"))
    bob.until(lambda: len(bob.log("idle")) == 2)
    time.sleep(MOMENT)
    assert len(bob.log("turn")) == 2
    assert [len(body) for body in pending(mail)] == [20_000]


def test_a_user_turn_relieves_the_sentry_silently(mail: Mail, tmp_path: Path) -> None:
    bob = Claude(mail, "bob").start().turn()
    bob.do(on_turn=(when(tmp_path / "go"),))
    bob.prompt("work")
    eventually(lambda: bob.status() == "running")
    (holder,) = mail.sql("SELECT count(*) FROM sentries")[0]
    assert holder == 0
    time.sleep(MOMENT)
    (tmp_path / "go").touch()
    bob.until(lambda: bob.log("sentry") == ["0"])


def test_a_second_sentry_relieves_the_first(mail: Mail) -> None:
    bob = Claude(mail, "bob", on_mail="true").start().turn()
    first = mail.sql("SELECT holder FROM sentries")
    bob.prompt("once more")
    eventually(lambda: mail.sql("SELECT holder FROM sentries") not in (first, []))
    eventually(lambda: bob.log("sentry") == ["0"])
    assert send(mail) == ("woken", None)
    eventually(lambda: bob.log("sentry") == ["0", "2"])
    bob.until(lambda: bob.saw("wake up") == 1)


def test_a_sentry_ends_with_its_session(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn()
    (holder,) = mail.sql("SELECT holder FROM sentries")[0]
    pid = int(holder.partition("-")[0])
    bob.kill()
    eventually(lambda: not os.path.exists(f"/proc/{pid}") and not mail.sql("SELECT 1 FROM sentries"))


def test_a_sentry_that_starts_after_its_session_has_ended_does_not_bring_it_back(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().kill()
    assert mail.run("alice", "list").ok().out.count("parked]") == 1
    event = {"session_id": bob.session, "cwd": str(bob.directory), "hook_event_name": "Stop"}
    mail.run(None, "hook", "claude", "--until-mail", stdin=json.dumps(event)).ok()
    assert bob.status() == "parked"


def test_a_dead_sentry_wakes_nobody(mail: Mail) -> None:
    bob = Claude(mail, "bob").start().turn()
    (holder,) = mail.sql("SELECT holder FROM sentries")[0]
    os.kill(int(holder.partition("-")[0]), signal.SIGKILL)
    eventually(lambda: bob.log("sentry") == ["-9"])
    assert send(mail) == ("queued", None)


def test_who_sends_while_a_sentry_is_on_its_way_is_told_that_it_will_call(mail: Mail) -> None:
    Claude(mail, "bob").start().turn()
    mail.sql("UPDATE agents SET status = 'running' WHERE name = 'bob'")
    mail.sql("UPDATE agents SET status = 'idle', since = ? WHERE name = 'bob'", int(time.time() * 1000))
    assert send(mail) == ("woken", None)
    mail.sql("UPDATE agents SET since = since - 11000 WHERE name = 'bob'")
    assert send(mail) == ("queued", None)


def test_a_broadcast_wakes_by_sentries_and_runs_no_command(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command, "carol")
    bob = Claude(mail, "bob").start().turn()
    sent = mail.run("alice", "send", "all", "hello all", "--json").ok()
    assert (outcome(sent, "bob"), outcome(sent, "carol")) == (("woken", None), ("queued", None))
    bob.until(lambda: bob.saw("hello all") == 1)
    assert command.starts == []


def test_a_turn_is_prolonged_only_as_often_as_its_harness_listens(mail: Mail) -> None:
    """Claude Code drops what it is told at the end of a turn that was prolonged eight times."""
    event = {"session_id": "s-1", "cwd": str(mail.home)}

    def hook(name: str, **more: str) -> str:
        text = json.dumps({**event, "hook_event_name": name, **more})
        return mail.run("bob", "hook", "claude", stdin=text).ok().out

    hook("UserPromptSubmit", prompt="work")
    for number in range(6):
        assert send(mail, body=f"number {number};") == ("injected", None)
        assert f"number {number};" in hook("Stop")
        assert status(mail) == "running"
    send(mail, body="one too many")
    assert hook("Stop") == ""
    assert (status(mail), pending(mail)) == ("idle", ["one too many"])
    assert "one too many" in hook("UserPromptSubmit", prompt="<task-notification>")
    send(mail, body="in the next turn")
    assert "in the next turn" in hook("Stop")


def test_compaction_in_a_turn_does_not_end_it(mail: Mail) -> None:
    bob = Claude(mail, "bob").start()
    event = {
        "session_id": bob.session,
        "cwd": str(bob.directory),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "x",
    }
    mail.run("bob", "hook", "claude", stdin=json.dumps(event)).ok()
    event = {**event, "hook_event_name": "SessionStart", "source": "compact"}
    mail.run("bob", "hook", "claude", stdin=json.dumps(event)).ok()
    assert bob.status() == "running"


# By a registered command


def test_a_registered_command_wakes(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    assert send(mail) == ("woken", None)
    assert len(command.starts) == 1
    assert pending(mail) == ["wake up"]
    assert "woken" in mail.run("alice", "show", str(mail.sql("SELECT id FROM messages")[0][0])).ok().out


def test_the_command_is_its_words_and_nothing_of_a_message(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, f"""{command} 'two words' '$HOME' "it's;" '' \\; `x` {{session}}""")
    send(mail, body="; touch pwned")
    (start,) = command.starts
    assert start["arguments"] == ["two words", "$HOME", "it's;", "", ";", "`x`", "{session}"]
    assert "touch pwned" not in json.dumps(start)


def test_the_command_is_on_its_own(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    ids = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1", "TMUX_PANE": "%1", "PI_CODING_AGENT": "1"}
    send(mail, **ids, KEPT="yes")
    (start,) = command.starts
    environment = start["environment"]
    assert not {"AGENTMAIL_AGENT", *ids} & environment.keys()
    assert (environment["KEPT"], environment["AGENTMAIL_SPOOL"]) == ("yes", str(mail.spool))
    assert (start["leads"], start["stdin"], start["terminal"]) == (True, "", False)


def test_it_runs_in_the_agents_directory(mail: Mail, tmp_path: Path) -> None:
    command = Command(mail)
    idle(mail, command)
    (tmp_path / "place").mkdir()
    mail.sql("UPDATE agents SET directory = ? WHERE name = 'bob'", str(tmp_path / "place"))
    send(mail)
    (tmp_path / "place").rmdir()
    interval(mail, 0)
    send(mail)
    assert [start["directory"] for start in command.starts] == [str(tmp_path / "place"), str(mail.home)]


def test_its_output_is_in_a_log_that_is_nobody_elses(mail: Mail) -> None:
    idle(mail, Command(mail, rest="print('good morning', flush=True)"))
    send(mail)
    log = mail.spool.with_name("spool.db-wake.log")
    assert log.read_text() == "good morning\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_command_that_runs_on_survives_its_sender(mail: Mail) -> None:
    command = Command(mail, rest="time.sleep(30)")
    idle(mail, command)
    sending = mail.start("alice", "send", "bob", "wake up")
    eventually(lambda: command.starts)
    sending.kill()
    finish(sending)
    pid = command.starts[0]["pid"]
    assert os.path.exists(f"/proc/{pid}")
    assert send(mail, sender="carol")[0] == "woken"
    os.kill(pid, signal.SIGKILL)


def test_a_missing_command_is_told_and_the_mail_stays(mail: Mail) -> None:
    idle(mail, "/no/such/program")
    assert send(mail) == ("queued", "cannot run /no/such/program: no such file or directory")
    assert pending(mail) == ["wake up"]
    assert mail.sql("SELECT outcome FROM receipts") == [("queued",)]


def test_a_failing_command_is_told_with_its_last_words(mail: Mail) -> None:
    command = Command(mail, rest="print('first\\n\\x1b[31mno such session'); sys.exit(3)")
    idle(mail, command)
    assert send(mail) == ("queued", f"{command} failed with status 3: \x1b[31mno such session")
    shown = mail.run("alice", "send", "bob", "once more").ok().out
    assert "\\x1b[31mno such session" in shown
    assert "\x1b" not in shown


def test_an_error_is_told_to_all_who_come_within_the_interval_and_tried_again_after_it(mail: Mail) -> None:
    command = Command(mail, rest="sys.exit(1)")
    idle(mail, command)
    interval(mail, 60_000)
    assert [send(mail)[1] for _ in range(3)] == [f"{command} failed with status 1"] * 3
    assert len(command.starts) == 1
    interval(mail, 0)
    send(mail)
    assert len(command.starts) == 2


def test_a_mention_wakes_and_a_post_does_not(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    mail.run("alice", "send", "+relay", "to nobody in particular").ok()
    assert command.starts == []
    sent = mail.run("alice", "send", "+relay", "ask @bob", "--json").ok()
    assert outcome(sent) == ("woken", None)
    assert len(command.starts) == 1


def test_exec_off_runs_nothing(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    mail.run("alice", "config", "exec", "off").ok()
    assert send(mail) == ("queued", None)
    assert command.starts == []
    mail.run("alice", "config", "exec", "on").ok()
    mail.run("alice", "list").ok()
    assert send(mail) == ("woken", None)
    assert len(command.starts) == 1


def test_a_spool_that_others_can_write_runs_nothing(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    mail.spool.chmod(0o620)
    assert mail.run("alice", "send", "bob", "wake up").status == 3
    assert command.starts == []


def test_a_command_is_taken_away_by_an_empty_one(mail: Mail) -> None:
    idle(mail, Command(mail))
    idle(mail, "")
    assert send(mail) == ("queued", None)


def test_words_that_no_shell_could_split_are_refused(mail: Mail) -> None:
    done = mail.run("bob", "register", "bob", "--wake", "echo 'half")
    assert done.status == 2
    assert done.err == "agentmail: --wake cannot be split into words (no closing quotation); check its quotes\n"


# Storms, and wakes that somebody else has to carry out


def test_many_sends_at_once_run_one_command(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    interval(mail, 60_000)
    sending = [mail.start("alice", "send", "bob", f"number {i}", "--json") for i in range(20)]
    assert {outcome(finish(one).ok()) for one in sending} == {("woken", None)}
    assert len(command.starts) == 1


def test_mail_after_a_turn_waits_for_the_interval_and_then_wakes(mail: Mail) -> None:
    read = [*AGENTMAIL, "inbox", "--as", "bob", "--force"]
    command = Command(mail, rest=f"os.execv({read[0]!r}, {read!r})")
    idle(mail, command)
    interval(mail, 1500)
    assert send(mail, body="one") == ("woken", None)
    eventually(lambda: pending(mail) == [])
    told = {send(mail, body=body) for body in ("two", "three", "four")}
    assert told <= {("woken", None), ("injected", None)}
    eventually(lambda: pending(mail) == [])
    times = [start["time"] for start in command.starts]
    assert 2 <= len(times) <= 4
    assert all(after - before > 1.4 for before, after in itertools.pairwise(times))


def test_a_wake_that_is_left_by_a_killed_sender_is_carried_out_by_the_next_send(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    with Turn(mail, "bob"):
        sending = mail.start("alice", "send", "bob", "wake up")
        eventually(lambda: pending(mail) == ["wake up"])
        sending.kill()
        finish(sending)
    assert command.starts == []
    register(mail, "dave")
    mail.run("carol", "send", "dave", "unrelated").ok()
    assert len(command.starts) == 1
    assert mail.sql("SELECT outcome FROM receipts ORDER BY message LIMIT 1") == [("woken",)]
    mail.run("carol", "send", "dave", "unrelated").ok()
    assert len(command.starts) == 1


def test_the_next_hook_does_it_too(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    send(mail, CODEX_SANDBOX_NETWORK_DISABLED="1")
    assert command.starts == []
    Claude(mail, "carol").start()
    assert len(command.starts) == 1


def test_a_sender_in_a_sandbox_says_so_and_its_own_hook_does_it_at_the_next_step(mail: Mail, tmp_path: Path) -> None:
    command = Command(mail)
    idle(mail, command)
    carol = Claude(mail, "carol").start()
    carol.do(
        on_turn=(
            "CODEX_SANDBOX_NETWORK_DISABLED=1 agentmail send bob wake up",
            when(tmp_path / "go"),
        )
    )
    carol.prompt("write to bob")
    carol.until(lambda: carol.log("ran"))
    assert "bob: queued — this sandbox cannot wake it; the next agentmail outside will" in carol.log("ran")[0]
    eventually(lambda: len(command.starts) == 1)
    assert carol.status() == "running"
    (tmp_path / "go").touch()


def test_a_repeated_send_carries_out_what_its_first_left(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    with Turn(mail, "bob"):
        sending = mail.start("alice", "send", "bob", "wake up", "--once", "k")
        eventually(lambda: pending(mail))
        sending.kill()
        finish(sending)
    again = mail.run("alice", "send", "bob", "wake up", "--once", "k", "--json").ok()
    assert outcome(again) == ("woken", None)
    assert len(command.starts) == 1


def test_mail_that_was_read_meanwhile_wakes_nobody(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    with Turn(mail, "bob"):
        sending = mail.start("alice", "send", "bob", "wake up", "--json")
        eventually(lambda: pending(mail))
        mail.run("bob", "inbox").ok()
    assert outcome(finish(sending).ok()) == ("injected", None)
    assert command.starts == []


def test_a_newer_message_does_not_take_the_wake_of_an_older(mail: Mail) -> None:
    command = Command(mail)
    idle(mail, command)
    interval(mail, 60_000)
    with Turn(mail, "bob"):
        sending = [mail.start("alice", "send", "bob", "older", "--json")]
        eventually(lambda: pending(mail) == ["older"])
        sending.append(mail.start("alice", "send", "bob", "newer", "--json"))
        eventually(lambda: pending(mail) == ["older", "newer"])
    assert [outcome(finish(one).ok()) for one in sending] == [("woken", None)] * 2
    assert len(command.starts) == 1
    assert mail.sql("SELECT due FROM agents WHERE name = 'bob'") == [(None,)]


def test_mail_that_came_too_late_for_a_turn_wakes_at_its_end(mail: Mail) -> None:
    """As with Gemini CLI, where nothing that is said at the end of a turn reaches the model."""
    command = Command(mail)
    event = {"session_id": "g-1", "cwd": str(mail.home), "hook_event_name": "BeforeAgent", "prompt": "work"}
    env = {"GEMINI_CLI": "1", "GEMINI_SESSION_ID": "g-1"}
    mail.run("bob", "hook", "gemini", stdin=json.dumps(event), **env).ok()
    mail.run("bob", "register", "bob", "--wake", str(command), **env).ok()
    assert send(mail) == ("injected", None)
    mail.run("bob", "hook", "gemini", stdin=json.dumps({**event, "hook_event_name": "AfterAgent"}), **env).ok()
    assert status(mail) == "idle"
    assert len(command.starts) == 1


# Waiting for the answer of one who is woken by the question


def test_an_await_is_not_stopped_by_the_idleness_that_it_ends(mail: Mail, tmp_path: Path) -> None:
    bob = Claude(mail, "bob").start().turn()
    bob.do(on_mail=when(tmp_path / "go"))
    asking = mail.start("alice", "send", "bob", "which port?", "--await", "--timeout", "30s", "--json")
    bob.until(lambda: bob.saw("which port?"))
    time.sleep(0.3)
    assert asking.poll() is None
    (tmp_path / "go").touch()
    done = finish(asking).ok()
    assert outcome(done) == ("woken", None)
    assert (done.json["waited"], done.json["reason"]) == (None, "stopped")


def test_an_await_gets_the_answer_of_the_woken(mail: Mail) -> None:
    Claude(mail, "bob", on_mail="agentmail reply {id} 8080").start().turn()
    done = mail.run("alice", "send", "bob", "which port?", "--await", "--timeout", "30s", "--json").ok()
    assert (outcome(done), done.json["waited"]["body"]) == (("woken", None), "8080")


# Waiting until another is idle


def test_wait_idle_returns_when_the_turn_ends(mail: Mail, tmp_path: Path) -> None:
    bob = Claude(mail, "bob", on_turn=(when(tmp_path / "go"),)).start()
    bob.prompt("work")
    eventually(lambda: bob.status() == "running")
    waiting = mail.start("alice", "wait", "--idle", "bob", "--timeout", "30s", "--json")
    mail.wait_until_waiting("alice")
    mail.run("carol", "send", "alice", "not what is waited for").ok()
    assert waiting.poll() is None
    (tmp_path / "go").touch()
    assert finish(waiting).ok().json == {"op": "wait", "idle": "bob", "status": "idle"}


@pytest.mark.parametrize(
    ("end", "told"), [("park", "bob is parked."), ("kill", "bob is parked."), ("abort", "bob is aborted.")]
)
def test_wait_idle_returns_when_the_session_ends(mail: Mail, tmp_path: Path, end: str, told: str) -> None:
    bob = Claude(mail, "bob", on_turn=(when(tmp_path / "go"),)).start()
    bob.prompt("work")
    eventually(lambda: bob.status() == "running")
    waiting = mail.start("alice", "wait", "--idle", "bob", "--timeout", "30s")
    mail.wait_until_waiting("alice")
    if end == "kill":
        bob.kill()
    elif end == "park":
        mail.run("bob", "park", "--force").ok()
    else:
        mail.run("alice", "abort", "bob").ok()
    assert finish(waiting).ok().out == f"{told}\n"
    (tmp_path / "go").touch()


def test_wait_idle_has_nothing_to_wait_for_between_turns(mail: Mail) -> None:
    register(mail, "bob")
    assert mail.run("alice", "wait", "--idle", "bob").ok().out == "bob is idle.\n"


def test_wait_idle_times_out(mail: Mail) -> None:
    mail.run("bob", "register", "bob", "--state", "running").ok()
    words = ("wait", "--idle", "bob", "--timeout", "30ms")
    assert mail.run("alice", *words).ok().out == "bob is still running after 30ms.\n"
    assert mail.run("alice", *words, "--json").ok().json == {"op": "wait", "reason": "timeout"}
    assert mail.run("alice", *words, "--exit-code").status == 124


def test_wait_idle_of_nobody_is_refused(mail: Mail) -> None:
    done = mail.run("alice", "wait", "--idle", "nobody")
    assert done.status == 2
    assert "no agent 'nobody'" in done.err
