"""What our plugins for OpenCode and oh-my-pi are answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Mail


def tell(mail: Mail, kind: str, event: str, **more: object) -> Any:
    given = {"hook_event_name": event, "session_id": "ses-1", "cwd": "/home/aaron/temp", **more}
    done = mail.run(None, "hook", kind, stdin=json.dumps(given)).ok()
    assert done.err == ""
    return json.loads(done.out) if done.out else None


@pytest.fixture(params=["opencode", "omp"])
def kind(request: pytest.FixtureRequest, mail: Mail) -> str:
    kind = str(request.param)
    tell(mail, kind, "SessionStart", source="startup")
    return kind


def test_a_session_is_told_its_name_and_where_its_bell_is(mail: Mail, kind: str) -> None:
    answer = tell(mail, kind, "SessionStart", source="startup")
    assert answer == {"name": f"{kind}-144dc4", "bell": f"{mail.spool}-bells/{kind}-144dc4"}


def test_its_bell_rings_while_mail_is_pending(mail: Mail, kind: str) -> None:
    bell = mail.spool.parent / "spool.db-bells" / f"{kind}-144dc4"
    assert bell.stat().st_size == 0
    mail.send("alice", f"{kind}-144dc4", "hi")
    assert bell.stat().st_size > 0


def test_a_message_that_the_shell_would_eat_is_refused(mail: Mail, kind: str) -> None:
    command = {"command": 'agentmail send alice "run `make`"'}
    assert "--body-file - <<'EOF'" in tell(mail, kind, "BeforeTool", tool_name="bash", tool_input=command)["deny"]
    assert tell(mail, kind, "BeforeTool", tool_name="bash", tool_input={"command": "ls"}) is None


def test_the_end_of_the_session_parks_it(mail: Mail, kind: str) -> None:
    tell(mail, kind, "SessionEnd")
    [peer] = mail.run("alice", "list", "--json").json["peers"]
    assert peer["status"] == "parked"


def test_oh_my_pi_is_given_the_text_at_a_turn_and_at_a_step(mail: Mail) -> None:
    tell(mail, "omp", "SessionStart", source="startup")
    for event in ("FirstPrompt", "UserPrompt", "AfterTool", "SessionStop"):
        mail.send("alice", "omp-144dc4", f"for {event}")
        assert f"for {event}" in tell(mail, "omp", event)["text"]
        assert f"for {event}" not in json.dumps(tell(mail, "omp", event))


def test_oh_my_pi_goes_on_only_for_mail(mail: Mail) -> None:
    tell(mail, "omp", "SessionStart", source="startup")
    for event, status in (("UserPrompt", "running"), ("SessionStop", "idle")):
        tell(mail, "omp", event)
        assert mail.run("alice", "list", "--json").json["peers"][0]["status"] == status
    mail.run("alice", "inbox").ok()
    mail.send("alice", "omp-144dc4", "wait, one more")
    assert "one more" in tell(mail, "omp", "SessionStop")["text"]
    assert mail.run("alice", "list", "--json").json["peers"][0]["status"] == "running"


def test_a_call_of_a_sub_agent_of_oh_my_pi_carries_its_name(mail: Mail) -> None:
    tell(mail, "omp", "SessionStart", source="startup")
    tell(mail, "omp", "SessionStart", source="startup", agent_id="ses-2", agent_type="Helper")
    call = {"tool_name": "bash", "tool_input": {"command": "agentmail inbox"}}
    assert tell(mail, "omp", "BeforeTool", **call) is None
    answer = tell(mail, "omp", "BeforeTool", agent_id="ses-2", **call)
    assert answer == {"command": "AGENTMAIL_AGENT=omp-144dc4.agentA agentmail inbox"}
    tell(mail, "omp", "AgentEnd", agent_id="ses-2")
    assert "agentA" not in mail.run("alice", "list").ok().out


def broadcast(mail: Mail) -> Any:
    part = tell(mail, "opencode", "Messages")["part"]
    return part and {**part["state"], "output": json.loads(part["state"]["output"])}


def test_opencode_injects_the_object_of_iam(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    mail.run("alice", "status", "writing tests").ok()
    mail.send("alice", "opencode-144dc4", "which port?")
    state = broadcast(mail)
    assert (state["status"], state["input"]) == ("completed", {"synthetic": True})
    assert state["title"] == "1 agent(s), 1 message(s)"
    assert state["metadata"] == {"incoming_message": True, "agent_count": 1, "message_count": 1}
    output = state["output"]
    assert output["you_are"] == "opencode-144dc4"
    assert "agentmail status" in output["hint"]
    assert [(agent["name"], agent["status"]) for agent in output["agents"]] == [("alice", ["writing tests"])]
    [message] = output["messages"]
    assert message.pop("age") in ("just now", "0s ago", "1s ago", "2s ago", "3s ago")
    assert message == {"id": 1, "from": "alice", "content": "which port?", "claimed": True}


def test_a_message_stays_in_it_until_it_was_handled(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    mail.send("alice", "opencode-144dc4", "one")
    mail.send("alice", "opencode-144dc4", "two")
    for _ in range(2):
        assert [item["content"] for item in broadcast(mail)["output"]["messages"]] == ["one", "two"]
    me = {"OPENCODE": "1", "AGENTMAIL_SESSION": "ses-1"}
    mail.run(None, "reply", "1", "done", **me).ok()
    assert [item["content"] for item in broadcast(mail)["output"]["messages"]] == ["two"]
    mail.run(None, "ack", "2", **me).ok()
    assert "messages" not in broadcast(mail)["output"]


def test_the_hint_ends_with_the_first_announcement_and_empty_parts_are_left_out(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    assert set(broadcast(mail)["output"]) == {"you_are", "hint"}
    mail.run(None, "status", "thinking", OPENCODE="1", AGENTMAIL_SESSION="ses-1").ok()
    assert set(broadcast(mail)["output"]) == {"you_are"}


def test_new_mail_finds_room_before_what_was_shown_already(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    for number in range(4):
        mail.run("alice", "send", "opencode-144dc4", stdin=f"{number}" * 2500).ok()
    output = broadcast(mail)["output"]
    assert [item["id"] for item in output["messages"]] == [1, 2]
    assert output["more"] == ["2 more unread: agentmail inbox"]
    output = broadcast(mail)["output"]
    assert [item["id"] for item in output["messages"]] == [3, 4]
    assert output["more"] == ["2 more neither answered nor acknowledged: agentmail inbox --unhandled"]


def test_a_message_that_no_object_holds_is_named_and_stays_unread(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    mail.run("alice", "send", "opencode-144dc4", stdin="x" * 100_000).ok()
    mail.send("alice", "opencode-144dc4", "short")
    first, second = broadcast(mail)["output"]["messages"]
    assert first["content"] == "(100000 characters, too long to show here: agentmail inbox)"
    assert second["content"] == "short"
    assert "x" * 100_000 in mail.run(None, "inbox", OPENCODE="1", AGENTMAIL_SESSION="ses-1").ok().out
    first, second = broadcast(mail)["output"]["messages"]
    assert "agentmail show" in first["content"]


@pytest.mark.parametrize("body", ["ä" * 5000, "\n" * 5000 + "x", '"' * 5000, "\x1b" * 3000, "🐎" * 3000, "x" * 5800])
def test_the_object_stays_within_what_a_hook_may_say(mail: Mail, body: str) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    for number in range(30):
        mail.run(f"peer{number:02}", "status", "w" * 290).ok()
    for _ in range(3):
        mail.run("alice", "send", "opencode-144dc4", stdin=body).ok()
    part = tell(mail, "opencode", "Messages")["part"]
    assert len(part["state"]["output"].encode()) < 9000
    assert any("more agents" in line for line in json.loads(part["state"]["output"])["more"])


def test_what_is_not_mail_is_told_once_as_text(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    mail.run("alice", "send", "+relay", "the build is green").ok()
    mail.send("alice", "opencode-144dc4", "only in the object")
    assert "the build is green" not in json.dumps(broadcast(mail))
    text = tell(mail, "opencode", "UserPrompt")["text"]
    assert "the build is green" in text
    assert "only in the object" not in text
    assert tell(mail, "opencode", "AfterTool")["text"] == ""
    mail.run("bob", "register", "bob").ok()
    assert "bob has joined" in tell(mail, "opencode", "AfterTool")["text"]
    assert tell(mail, "opencode", "AfterTool")["text"] == ""


def test_a_resumed_session_is_told_what_it_had_received(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    mail.send("alice", "opencode-144dc4", "one")
    broadcast(mail)
    assert "1 message reached you before" in tell(mail, "opencode", "SessionStart", source="resume")["text"]


def test_a_sub_agent_has_a_name_and_mail_of_its_own(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    answer = tell(mail, "opencode", "SessionStart", source="startup", agent_id="ses-2")
    assert answer["name"] == "opencode-144dc4.agentA"
    mail.send("alice", "opencode-144dc4.agentA", "for the sub-agent")
    assert "messages" not in broadcast(mail)["output"]
    part = tell(mail, "opencode", "Messages", agent_id="ses-2")["part"]
    assert "for the sub-agent" in part["state"]["output"]
