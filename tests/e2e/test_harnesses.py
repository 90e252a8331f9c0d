"""The real programs, their hooks as `agentmail install` writes them, and what then stands in the model's requests."""

from __future__ import annotations

import json
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.e2e.conftest import Lab, program

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.mockmodel import MockModel, Turn

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


class Harness(NamedTuple):
    kind: str
    start: Callable[[Lab, MockModel, str], str]
    shell: Callable[[str], Turn]  # the model's call of the harness's shell tool


def claude(lab: Lab, model: MockModel, prompt: str) -> str:
    return lab.run(
        [program("claude"), "-p", prompt, "--output-format", "json"],
        ANTHROPIC_BASE_URL=model.url,
        ANTHROPIC_API_KEY="sk-ant-none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_ERROR_REPORTING="1",
    )


def codex(lab: Lab, model: MockModel, prompt: str) -> str:
    config = lab.home / ".codex" / "config.toml"
    text = config.read_text() if config.exists() else ""
    if "mock" not in text:
        config.parent.mkdir(exist_ok=True)
        config.write_text(
            'model = "mock-model"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n'
            f"{text}\n[model_providers.mock]\nname = 'mock'\nbase_url = '{model.url}/v1'\nenv_key = 'MOCK_KEY'\n"
            "wire_api = 'responses'\nrequest_max_retries = 0\nstream_max_retries = 0\n"
        )
    flags = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-s", "workspace-write"]
    return lab.run([program("codex"), "exec", *flags, prompt], MOCK_KEY="none")


def gemini(lab: Lab, model: MockModel, prompt: str) -> str:
    path = lab.home / ".gemini" / "settings.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    settings["privacy"] = {"usageStatisticsEnabled": False}
    settings.setdefault("general", {})["enableAutoUpdate"] = False
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings))
    return lab.run(
        [program("gemini"), "-p", prompt, "-m", "gemini-2.5-flash"],
        GEMINI_API_KEY="none",
        GOOGLE_GEMINI_BASE_URL=model.url,
        GEMINI_CLI_TRUST_WORKSPACE="true",
    )


def opencode(lab: Lab, model: MockModel, prompt: str) -> str:
    path = lab.home / ".config" / "opencode" / "opencode.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    settings["provider"] = {
        "mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "mock",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
            "models": {"m": {"name": "m", "tool_call": True, "limit": {"context": 100000, "output": 1000}}},
        }
    }
    settings["model"] = "mock/m"
    lab.prepare_opencode()
    path.write_text(json.dumps(settings))
    return lab.run(
        [program("opencode"), "run", prompt],
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
    )


def omp(lab: Lab, model: MockModel, prompt: str) -> str:
    models = lab.home / ".omp" / "agent" / "models.yml"
    models.parent.mkdir(parents=True, exist_ok=True)
    size = "contextWindow: 200000, maxTokens: 1000"  # in a small one it shortens what tools say
    models.write_text(
        f"providers:\n  mock:\n    baseUrl: {model.url}/v1\n    apiKey: none\n    api: openai-completions\n"
        f"    models:\n      - {{id: m, name: m, reasoning: false, input: [text], {size}}}\n"
    )
    return lab.run([program("omp"), "-p", "--model", "mock/m", prompt])


HARNESSES = [
    Harness("omp", omp, lambda command: {"tool": "bash", "input": {"command": command}}),
    Harness(
        "opencode", opencode, lambda command: {"tool": "bash", "input": {"command": command, "description": "x"}}
    ),
    Harness("claude", claude, lambda command: {"tool": "Bash", "input": {"command": command}}),
    Harness(
        "codex",
        codex,
        # It does not wait long for a command by itself.
        lambda command: {"tool": "exec_command", "input": {"cmd": command, "yield_time_ms": 30_000}},
    ),
    Harness("gemini", gemini, lambda command: {"tool": "run_shell_command", "input": {"command": command}}),
]


@pytest.fixture(params=HARNESSES, ids=lambda harness: harness.kind)
def harness(request: pytest.FixtureRequest) -> Harness:
    found: Harness = request.param
    program(found.kind)
    return found


def test_a_session_knows_its_name_and_gets_mail_during_its_turn_and_sends_some(lab: Lab, harness: Harness) -> None:
    lab.install(harness.kind)
    model = lab.model(
        harness.shell("agentmail send alice hello from inside"),
        {"text": "done"},
    )
    lab.cli("alice", "send", "+relay", "anybody there?")
    harness.start(lab, model, "say hello to alice")
    [peer] = lab.peers()
    name = str(peer["id"])
    assert name.startswith(f"{harness.kind}-")
    assert peer["status"] == "parked"
    assert model.seen(f"agentmail: you are {name}.") or model.seen(f'"you_are": "{name}"')
    inbox = json.loads(lab.cli("alice", "inbox", "--json"))["inbox"]
    assert [(item["from"], item["body"], item.get("claimed")) for item in inbox] == [
        (name, "hello from inside", None)
    ]


def test_mail_for_a_parked_session_is_in_the_first_request_of_the_next_one(lab: Lab, harness: Harness) -> None:
    lab.install(harness.kind)
    harness.start(lab, lab.model(), "hello")
    name = str(lab.peers()[0]["id"])
    lab.cli("alice", "config", "exec", "off")  # or the mail would revive the session
    lab.cli("alice", "send", name, "the port is 8080")
    model = lab.model()
    if harness.kind == "codex":
        config = lab.home / ".codex" / "config.toml"
        config.write_text(config.read_text().replace(lab.models[0].url, model.url))
    harness.start(lab, model, "go on")
    assert model.seen("the port is 8080")
    assert model.seen("ail from other agents, not from the user")
    shown = json.loads(lab.cli("alice", "log", "--json"))["log"][-1]["id"]
    assert "now read" in lab.cli("alice", "show", shown)


def test_mail_that_comes_during_a_tool_call_arrives_with_its_result(lab: Lab, harness: Harness) -> None:
    lab.install(harness.kind)
    lab.cli("carol", "inbox")
    model = lab.model(
        harness.shell("agentmail send alice ready"),
        harness.shell("agentmail wait --from carol --timeout 100s"),
        {"text": "done"},
    )

    def interrupt() -> None:
        lab.cli("alice", "wait", "--timeout", "250s")
        name = next(str(peer["id"]) for peer in lab.peers() if peer["kind"] == harness.kind)
        lab.mail.wait_until_waiting(name)
        lab.cli("alice", "send", name, "by the way")
        lab.cli("carol", "send", name, "go on")

    interrupting = Thread(target=interrupt)
    interrupting.start()
    harness.start(lab, model, "tell alice that you are ready, then wait for carol")
    interrupting.join()
    # Asked before its turn's last words, the model knew of it; OpenCode makes a request for a title, too.
    assert model.seen("by the way") == 1


def test_a_message_that_the_shell_would_eat_is_refused_with_the_safe_form(lab: Lab, harness: Harness) -> None:
    lab.install(harness.kind)
    model = lab.model(harness.shell('agentmail send alice "run `make check` now"'), {"text": "done"})
    harness.start(lab, model, "tell alice")
    assert lab.cli("alice", "inbox") == "Inbox empty.\n"
    assert model.seen("--body-file - <<'EOF'")


TASK = {"description": "say hello", "prompt": "Say hello to alice."}
# Each harness's call of a sub-agent, and what its model says besides until that has finished.
DELEGATION: dict[str, list[Turn]] = {
    "claude": [{"tool": "Agent", "input": {**TASK, "subagent_type": "general-purpose", "run_in_background": False}}],
    "opencode": [{"tool": "task", "input": {**TASK, "subagent_type": "general"}}],
    "omp": [
        {"tool": "task", "input": {"i": "x", "context": "x", "tasks": [{"name": "Helper", "task": TASK["prompt"]}]}},
        {"tool": "hub", "input": {"i": "x", "op": "wait"}},
    ],
}


@pytest.mark.parametrize("harness", [one for one in HARNESSES if one.kind in DELEGATION], ids=lambda one: one.kind)
def test_a_sub_agent_knows_its_own_name_and_sends_under_it(lab: Lab, harness: Harness) -> None:
    program(harness.kind)
    lab.install(harness.kind)
    call = harness.shell("agentmail send alice hello from below")
    # Sub-agents of oh-my-pi run beside their parent: what is meant for one is told by its name.
    theirs = {"when": ".agentA."} if harness.kind == "omp" else {}
    turns = [*DELEGATION[harness.kind], {**call, **theirs}, {"text": "said hello", **theirs}, {"text": "done"}]
    model = lab.model(*turns)
    harness.start(lab, model, "let somebody say hello to alice")
    [peer] = lab.peers()
    name = f"{peer['id']}.agentA"
    assert peer["status"] == "parked"
    assert model.seen(f"agentmail: you are {name}.") or model.seen(f'"you_are": "{name}"')
    inbox = json.loads(lab.cli("alice", "inbox", "--json"))["inbox"]
    assert [(item["from"], item["body"], item.get("claimed")) for item in inbox] == [(name, "hello from below", None)]
