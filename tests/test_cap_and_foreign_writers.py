"""A mailbox keeps its cap, whoever writes: agentmail, or any program that inserts rows."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import Mail, finish

POST = """
INSERT INTO messages (sender, body) SELECT id, :body FROM agents WHERE name = 'alice';
INSERT INTO receipts (message, recipient)
  SELECT (SELECT max(id) FROM messages), id FROM agents WHERE name = 'bob';
"""


def fill(mail: Mail, count: int) -> list[str]:
    """Send so many messages from alice to bob in one process."""
    from agentmail.identity import Caller
    from agentmail.operations import send, session
    from agentmail.spool import open_spool

    spool = open_spool(str(mail.spool))
    me = session.enter(spool, Caller("alice"))
    ids = [str(send.send(me, send.Draft("bob", f"m{number}"))[0].id) for number in range(count)]
    spool.close()
    return ids


def insert(mail: Mail, *bodies: str) -> None:
    """Write with the sqlite3 shell, which knows nothing of agentmail."""
    shell = shutil.which("sqlite3")
    if not shell:
        pytest.skip("the sqlite3 shell is not installed")
    script = "BEGIN;" + "".join(POST.replace(":body", f"'{body}'") for body in bodies) + "COMMIT;"
    subprocess.run([shell, str(mail.spool)], input=script, text=True, check=True, timeout=30)


def test_of_150_messages_the_newest_100_stay(mail: Mail) -> None:
    mail.register("bob")
    fill(mail, 150)
    inbox = mail.run("bob", "inbox", "--json").ok().json
    assert [item["body"] for item in inbox["inbox"]] == [f"m{number}" for number in range(50, 150)]
    assert [item["n"] for item in inbox["inbox"]] == list(range(51, 151))


def test_the_reader_is_told_of_the_drop_once(mail: Mail) -> None:
    mail.register("bob")
    fill(mail, 150)
    assert "50 older messages dropped unread" in mail.run("bob", "inbox").ok().out
    assert "dropped" not in mail.run("bob", "inbox").ok().out


def test_a_reader_that_could_not_print_is_told_again(mail: Mail) -> None:
    mail.register("bob")
    fill(mail, 101)
    command = "python -m agentmail inbox > /dev/full"
    subprocess.run(["sh", "-c", command], env=mail.environment("bob"), check=False, capture_output=True)
    assert "1 older message dropped" in mail.run("bob", "inbox").ok().out


def test_the_drop_shows_in_the_receipt(mail: Mail) -> None:
    mail.register("bob")
    first, *_ = fill(mail, 101)
    shown = mail.run("alice", "show", first).ok().out
    assert "now dropped" in shown
    assert mail.run("alice", "show", first, "--json").json["receipts"][0]["state"] == "dropped"


def test_the_sender_is_told_whose_mail_its_own_pushed_out(mail: Mail) -> None:
    mail.register("bob")
    first, *_ = fill(mail, 100)
    sent = mail.run("carol", "send", "bob", "one more").ok().out
    assert f"[{first}] from alice was dropped unread" in sent
    second = mail.run("carol", "send", "bob", "and more", "--json").ok().json
    assert second["receipts"][0]["dropped"][0]["from"] == "alice"


def test_a_waiting_reader_takes_its_mail_past_a_full_mailbox(mail: Mail) -> None:
    mail.register("bob", "carol")
    fill(mail, 100)
    waiting = mail.start("bob", "wait", "--from", "carol", "--timeout", "30s")
    mail.wait_until_waiting("bob")
    assert "dropped" not in mail.run("carol", "send", "bob", "for you").ok().out
    assert "for you" in finish(waiting).out
    assert len(mail.run("bob", "inbox", "--json").json["inbox"]) == 100


def test_a_full_mailbox_may_refuse_instead(mail: Mail) -> None:
    mail.register("bob")
    mail.run(None, "config", "cap", "3").ok()
    mail.run(None, "config", "overflow", "refuse").ok()
    fill(mail, 3)
    refused = mail.run("alice", "send", "bob", "one more")
    assert refused.status == 1
    assert "- bob: failed — mailbox full (3 unread)" in refused.out
    assert mail.sql("SELECT count(*) FROM messages") == [(3,)]
    assert [item["body"] for item in mail.run("bob", "inbox", "--json").json["inbox"]] == ["m0", "m1", "m2"]


def test_a_broadcast_passes_a_full_mailbox_by(mail: Mail) -> None:
    mail.register("bob", "carol")
    mail.run(None, "config", "cap", "1").ok()
    mail.run(None, "config", "overflow", "refuse").ok()
    fill(mail, 1)
    sent = mail.run("alice", "send", "all", "hi", "--json").ok().json
    assert {item["to"]: item["outcome"] for item in sent["receipts"]} == {"bob": "failed", "carol": "queued"}


def test_rows_of_the_sqlite3_shell_keep_the_cap_and_are_numbered(mail: Mail) -> None:
    mail.register("alice", "bob")
    insert(mail, *(f"s{number}" for number in range(150)))
    inbox = mail.run("bob", "inbox", "--json").ok().json
    assert [item["body"] for item in inbox["inbox"]] == [f"s{number}" for number in range(50, 150)]
    assert [item["n"] for item in inbox["inbox"]] == list(range(51, 151))
    assert inbox["dropped"] == 50
    assert mail.sql("SELECT count(*) FROM receipts WHERE state = 'dropped' AND dropped IS NOT NULL") == [(50,)]


def test_a_blocked_wait_gets_what_the_sqlite3_shell_wrote(mail: Mail) -> None:
    mail.register("alice", "bob")
    waiting = mail.start("bob", "wait", "--timeout", "30s")
    mail.wait_until_waiting("bob")
    insert(mail, "from the shell")
    assert "alice (claimed): from the shell" in finish(waiting).out


def test_the_sqlite3_shell_is_refused_by_a_mailbox_that_refuses(mail: Mail) -> None:
    mail.register("alice", "bob")
    mail.run(None, "config", "cap", "1").ok()
    mail.run(None, "config", "overflow", "refuse").ok()
    insert(mail, "one")
    with pytest.raises(subprocess.CalledProcessError):
        insert(mail, "two")


def test_ids_rise_in_the_order_of_commits_also_for_a_foreign_writer(mail: Mail) -> None:
    mail.register("alice", "bob")
    before = int(mail.send("alice", "bob", "one"))
    insert(mail, "two")
    after = int(mail.send("alice", "bob", "three"))
    [(between,)] = mail.sql("SELECT id FROM messages WHERE body = 'two'")
    assert before < between < after
