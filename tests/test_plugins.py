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


def test_a_session_is_told_its_name_and_where_its_bells_are(mail: Mail, kind: str) -> None:
    answer = tell(mail, kind, "SessionStart", source="startup")
    assert answer == {"name": f"{kind}-144dc4", "bells": f"{mail.spool}-bells/@ses-1"}


def test_its_bell_rings_while_mail_is_pending(mail: Mail, kind: str) -> None:
    bell = mail.spool.parent / "spool.db-bells" / "@ses-1" / f"{kind}-144dc4"
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
    for event in ("UserPrompt", "AfterTool"):
        mail.send("alice", "omp-144dc4", f"for {event}")
        assert f"for {event}" in tell(mail, "omp", event)["text"]
        assert tell(mail, "omp", event) is None


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
    assert output["messages"] == [{"id": 1, "from": "alice", "content": "which port?", "verified": False}]


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
    assert broadcast(mail) is None


def test_what_does_not_fit_waits_for_what_was_shown_to_be_handled(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    for number in range(4):
        mail.run("alice", "send", "opencode-144dc4", stdin=f"{number}" * 3000).ok()
    assert [item["id"] for item in broadcast(mail)["output"]["messages"]] == [1, 2]
    mail.run(None, "ack", "1", OPENCODE="1", AGENTMAIL_SESSION="ses-1").ok()
    assert [item["id"] for item in broadcast(mail)["output"]["messages"]] == [2, 3]


def test_a_sub_agent_has_a_name_and_mail_of_its_own(mail: Mail) -> None:
    tell(mail, "opencode", "SessionStart", source="startup")
    answer = tell(mail, "opencode", "SessionStart", source="startup", agent_id="ses-2")
    assert answer["name"] == "opencode-144dc4.agentA"
    mail.send("alice", "opencode-144dc4.agentA", "for the sub-agent")
    assert "messages" not in broadcast(mail)["output"]
    part = tell(mail, "opencode", "Messages", agent_id="ses-2")["part"]
    assert "for the sub-agent" in part["state"]["output"]
