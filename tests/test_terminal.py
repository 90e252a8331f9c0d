"""An idle session in a tmux pane is woken by a notice that is typed there: never the body, never into a shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from agentmail.operations.waking import NOTICE
from tests.conftest import Mail, eventually
from tests.rousing import interval, pending, send
from tests.sessions import register
from tests.stub_harness import Claude, path_with

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


class Tmux:
    """A tmux server of the test's own."""

    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.socket = mail.home / "tmux"

    def run(self, *words: str, **env: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self.socket, "-f", "/dev/null", *words],
            env=self.mail.environment(None, **{"LC_ALL": "C.UTF-8", "TERM": "xterm", **env}),
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            check=True,
        )
        return done.stdout

    def session(self, name: str = "bob", **env: str) -> Claude:
        """A stub harness in a pane."""
        session = Claude(self.mail, name)
        command = f"exec {session.programs}/claude --session-id {session.session}"
        env = {**path_with(session.programs), "AGENTMAIL_AGENT": name, **env}
        self.run(
            "new-session", "-d", "-s", name, "-x", "120", "-y", "30", "-c", str(session.directory), command, **env
        )
        eventually(lambda: "❯" in self.screen(name))
        return session

    def screen(self, name: str = "bob") -> str:
        return self.run("capture-pane", "-p", "-J", "-t", f"{name}:0.0").strip()


@pytest.fixture
def tmux(mail: Mail) -> Iterator[Tmux]:
    register(mail, "alice")
    interval(mail, 0)
    tmux = Tmux(mail)
    yield tmux
    subprocess.run(["tmux", "-S", tmux.socket, "kill-server"], capture_output=True, check=False)


def test_the_notice_is_typed_and_the_hooks_show_the_mail(mail: Mail, tmux: Tmux) -> None:
    bob = tmux.session()
    assert send(mail, body="a secret; $(body) Enter") == ("woken", None)
    bob.until(lambda: bob.saw("a secret; $(body) Enter") == 1)
    assert bob.log("turn") == [NOTICE]
    assert NOTICE in tmux.screen().replace("\n", "")
    assert "secret" not in tmux.screen()


def test_an_enter_that_is_not_taken_is_repeated(mail: Mail, tmux: Tmux) -> None:
    bob = tmux.session(STUB_IGNORES_ENTER="2")
    assert send(mail) == ("woken", None)
    bob.until(lambda: bob.log("turn") == [NOTICE])


def test_a_terminal_that_never_takes_it_is_told(mail: Mail, tmux: Tmux) -> None:
    bob = tmux.session(STUB_IGNORES_ENTER="99")
    assert send(mail) == ("queued", "its terminal did not take the notice")
    assert bob.log("turn") == []
    assert pending(mail) == ["wake up"]


def test_a_half_typed_line_is_left_alone(mail: Mail, tmux: Tmux) -> None:
    bob = tmux.session()
    tmux.run("send-keys", "-t", "bob", "-l", "rm -rf")
    eventually(lambda: tmux.screen().endswith("rm -rf"))
    assert send(mail) == ("queued", "somebody is typing in its terminal")
    assert tmux.screen() == "❯ rm -rf"
    assert bob.log("turn") == []


def test_a_pane_that_is_scrolled_back_is_left_alone(mail: Mail, tmux: Tmux) -> None:
    tmux.session()
    tmux.run("copy-mode", "-t", "bob")
    assert send(mail) == ("queued", "its terminal is gone, or scrolled back")
    tmux.run("send-keys", "-t", "bob", "-X", "cancel")
    assert tmux.screen() == "❯"
    assert send(mail) == ("woken", None)


def test_a_pane_that_is_gone_is_told(mail: Mail, tmux: Tmux) -> None:
    tmux.session()
    mail.sql("UPDATE agents SET terminal = ? WHERE name = 'bob'", json.dumps([str(tmux.socket), "%99"]))
    outcome, error = send(mail)
    assert outcome == "queued"
    assert (error or "").startswith("its terminal is gone")


def test_a_server_that_is_gone_is_told(mail: Mail, tmux: Tmux) -> None:
    tmux.session()
    mail.sql("UPDATE agents SET terminal = ? WHERE name = 'bob'", json.dumps([f"{tmux.socket}-2", "%0"]))
    assert send(mail) == ("queued", "its terminal is gone")


def test_nothing_is_typed_into_the_shell_that_has_the_pane_now(mail: Mail, tmux: Tmux) -> None:
    tmux.session()
    tmux.run("new-session", "-d", "-s", "shell", "sh")
    pane = tmux.run("display-message", "-p", "-t", "shell", "#{pane_id}").strip()
    mail.sql("UPDATE agents SET terminal = ? WHERE name = 'bob'", json.dumps([str(tmux.socket), pane]))
    assert send(mail) == ("queued", "something else runs in its terminal")
    assert "mail" not in tmux.screen("shell")


def test_a_session_that_dies_with_its_pane_is_parked(mail: Mail, tmux: Tmux) -> None:
    bob = tmux.session()
    tmux.run("kill-session", "-t", "bob")
    pid = int(bob.log("ready")[0])
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))
    assert send(mail, PATH="/nowhere") == ("queued", "cannot run claude: no such file or directory")


def test_without_tmux_it_is_told(mail: Mail, tmux: Tmux) -> None:
    tmux.session()
    assert send(mail, PATH="/nowhere") == ("queued", "tmux is not on PATH")


def test_a_sentry_is_the_better_way(mail: Mail, tmux: Tmux) -> None:
    bob = tmux.session()
    tmux.run("send-keys", "-t", "bob", "hello", "Enter")
    bob.until(lambda: mail.sql("SELECT 1 FROM sentries"))
    bob.until(lambda: bob.log("idle"))
    assert send(mail) == ("woken", None)
    bob.until(lambda: bob.saw("wake up") == 1)
    assert NOTICE not in tmux.screen()


def test_exec_off_types_nothing(mail: Mail, tmux: Tmux) -> None:
    tmux.session()
    mail.run("alice", "config", "exec", "off").ok()
    assert send(mail) == ("queued", None)
    assert tmux.screen() == "❯"


def test_a_persons_pane_is_not_kept(mail: Mail, tmux: Tmux) -> None:
    here = {"TMUX": f"{tmux.socket},1,0", "TMUX_PANE": "%0"}
    mail.run("person", "register", "person", **here).ok()
    mail.run("agent", "register", "agent", CLAUDECODE="1", **here).ok()
    kept = dict(mail.sql("SELECT name, terminal FROM agents WHERE name <> 'alice'"))
    assert kept == {"person": None, "agent": json.dumps([str(tmux.socket), "%0"])}
