"""The spool file: made once, private, refused when it is not safe, and never half done."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmail.spool import SCHEMA_VERSION, open_spool
from agentmail.spool import mail as rows
from tests.conftest import AGENTMAIL, Mail, finish

if TYPE_CHECKING:
    from agentmail.spool import Spool

SCHEMA = Path(rows.__file__).parent / "schema"


def refusal(mail: Mail, *words: str) -> str:
    """The one line with which an unusable spool is refused."""
    done = mail.run("bob", "inbox", *words)
    assert (done.status, done.out, done.err.count("\n")) == (3, "", 1), done
    assert "; " in done.err, "says what to do"
    return done.err


def test_ten_processes_may_create_it_at_the_same_instant(mail: Mail) -> None:
    started = [mail.start(f"agent{number}", "inbox") for number in range(10)]
    for process in started:
        done = finish(process)
        assert (done.status, done.err) == (0, ""), done
    assert mail.sql("SELECT count(*) FROM agents") == [(10,)]
    assert mail.sql("PRAGMA user_version") == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_it_is_private_whatever_the_umask(mail: Mail, umask: int) -> None:
    before = os.umask(umask)
    try:
        mail.run("bob", "inbox").ok()
        mail.run("alice", "send", "bob", "hi").ok()
        mail.run("bob", "inbox").ok()
    finally:
        os.umask(before)
    for path in [mail.spool.parent, *mail.spool.parent.rglob("*")]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))


def test_it_keeps_a_log_and_syncs_it(mail: Mail) -> None:
    mail.register("bob")
    spool = open_spool(str(mail.spool))
    assert spool.db.value("PRAGMA journal_mode") == "wal"
    assert spool.db.value("PRAGMA synchronous") == 2
    assert spool.db.value("PRAGMA foreign_keys") == 1
    spool.close()


def test_the_version_is_the_number_of_migrations() -> None:
    files = sorted(path.name for path in SCHEMA.glob("*.sql"))
    assert [name[:3] for name in files] == [f"{number:03}" for number in range(1, SCHEMA_VERSION + 1)]


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_an_older_spool_is_upgraded_with_its_mail(mail: Mail, version: int) -> None:
    mail.spool.parent.mkdir(mode=0o700)
    connection = sqlite3.connect(mail.spool)
    for path in sorted(SCHEMA.glob("*.sql"))[:version]:
        connection.executescript(path.read_text())
    connection.executescript(
        f"""
        PRAGMA user_version = {version};
        INSERT INTO agents (name, display, kind, since, active) VALUES ('alice', 'alice', 'human', 0, 0);
        INSERT INTO agents (name, display, kind, since, active) VALUES ('bob', 'bob', 'human', 0, 0);
        INSERT INTO messages (sender, body) VALUES (1, 'old mail');
        INSERT INTO receipts (message, recipient) SELECT id, 2 FROM messages;
        """
    )
    connection.close()
    mail.spool.chmod(0o600)
    assert "old mail" in mail.run("bob", "inbox").ok().out
    assert mail.sql("PRAGMA user_version") == [(SCHEMA_VERSION,)]


def test_a_newer_spool_is_refused_untouched(mail: Mail) -> None:
    mail.register("bob")
    mail.sql(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    mail.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    before = mail.spool.read_bytes()
    assert "upgrade agentmail-spool" in refusal(mail)
    assert mail.spool.read_bytes() == before


def test_a_failing_migration_leaves_the_spool_as_it_was(mail: Mail, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmail.spool import create

    folder = mail.home / "schema"
    shutil.copytree(SCHEMA, folder)
    (folder / f"{SCHEMA_VERSION:03}_broken.sql").write_text("CREATE TABLE half (a); CREATE TABLE half (a);")
    monkeypatch.setattr(create, "SCHEMA", folder)
    with pytest.raises(Exception, match="half"):
        open_spool(str(mail.spool))
    assert mail.sql("SELECT count(*) FROM sqlite_schema") == [(0,)]
    monkeypatch.undo()
    mail.run("bob", "inbox").ok()


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_directory_that_others_can_write_is_refused(mail: Mail, mode: int) -> None:
    mail.register("bob")
    mail.spool.parent.chmod(mode)
    assert "others can write" in refusal(mail)


def test_a_file_that_others_can_write_is_refused(mail: Mail) -> None:
    mail.register("bob")
    mail.spool.chmod(0o606)
    assert "others can write" in refusal(mail)


def test_what_belongs_to_somebody_else_is_refused(mail: Mail) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    mail.register("bob")
    os.chown(mail.spool, 12345, 12345)
    assert "belongs to another user" in refusal(mail)


@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_what_is_no_file_is_refused_and_not_waited_for(mail: Mail, kind: str) -> None:
    mail.spool.parent.mkdir(mode=0o700)
    if kind == "directory":
        mail.spool.mkdir()
    elif kind == "fifo":
        os.mkfifo(mail.spool, 0o600)
    else:
        mail.spool.symlink_to("/dev/null")
    refusal(mail)


@pytest.mark.parametrize("content", [b"this is no database" * 100, os.urandom(4096)], ids=["text", "random"])
def test_a_file_of_another_kind_is_refused_untouched(mail: Mail, content: bytes) -> None:
    mail.spool.parent.mkdir(mode=0o700)
    mail.spool.write_bytes(content)
    mail.spool.chmod(0o600)
    refusal(mail)
    assert mail.spool.read_bytes() == content


def test_another_programs_database_is_refused_untouched(mail: Mail) -> None:
    mail.spool.parent.mkdir(mode=0o700)
    mail.sql("CREATE TABLE theirs (a)")
    mail.spool.chmod(0o600)
    before = mail.spool.read_bytes()
    assert "not an agentmail spool" in refusal(mail)
    assert mail.spool.read_bytes() == before


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION - 1, SCHEMA_VERSION])
def test_another_programs_database_with_a_version_like_ours_is_refused_untouched(mail: Mail, version: int) -> None:
    mail.spool.parent.mkdir(mode=0o700)
    mail.sql("CREATE TABLE messages (id)")
    mail.sql(f"PRAGMA user_version = {version}")
    mail.spool.chmod(0o600)
    before = mail.spool.read_bytes()
    assert "not an agentmail spool" in refusal(mail)
    assert mail.spool.read_bytes() == before


def test_a_truncated_spool_is_one_line(mail: Mail) -> None:
    mail.register("bob")
    mail.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    mail.spool.write_bytes(mail.spool.read_bytes()[:5000])
    refusal(mail)


def test_a_read_only_directory_is_one_line(mail: Mail) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    mail.register("bob")
    mail.spool.parent.chmod(0o500)
    try:
        assert "cannot write" in refusal(mail)
    finally:
        mail.spool.parent.chmod(0o700)


def test_a_lock_held_too_long_is_one_line_and_nothing_is_stored(mail: Mail) -> None:
    mail.register("alice", "bob")
    holder = sqlite3.connect(mail.spool, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    done = mail.run("alice", "send", "bob", "hi")
    holder.execute("ROLLBACK")
    holder.close()
    assert (done.status, done.out) == (3, "")
    assert "locked by another process" in done.err
    assert mail.sql("SELECT count(*) FROM messages") == [(0,)]


def test_a_sandbox_that_denies_writing_is_told_which_setting_to_change(mail: Mail) -> None:
    from agentmail.spool.faults import unwritable

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEX_THREAD_ID", "t")
        assert "writable_roots" in str(unwritable("/x/spool.db", "read-only"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CODEX_THREAD_ID", raising=False)
        patch.delenv("CODEX_SANDBOX_NETWORK_DISABLED", raising=False)
        patch.setenv("CLAUDECODE", "1")
        assert "sandbox.filesystem.allowWrite" in str(unwritable("/x/spool.db", "read-only"))


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/home/somebody"},
        {"HOME": "/home/somebody", "XDG_STATE_HOME": "/var/state"},
        {"HOME": "/home/somebody", "XDG_STATE_HOME": "/var/state/"},
        {"HOME": "/home/somebody", "XDG_STATE_HOME": ""},
        {"HOME": "/home/somebody", "XDG_STATE_HOME": "relative/path"},
        {"HOME": "/"},
        {},
    ],
)
def test_the_default_place_is_platformdirs(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    from platformdirs import user_state_dir

    from agentmail import paths

    for name in ("HOME", "XDG_STATE_HOME", "AGENTMAIL_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert os.path.normpath(paths.state_directory()) == os.path.normpath(user_state_dir("agentmail", appauthor=False))


def test_an_option_comes_before_the_environment(mail: Mail) -> None:
    other = mail.home / "other" / "mine.db"
    mail.run("bob", "inbox", "--spool", str(other)).ok()
    assert other.exists()
    assert not mail.spool.exists()


@pytest.fixture
def spool(mail: Mail) -> Spool:
    return open_spool(str(mail.spool))


def test_ids_rise_although_the_clock_steps_back(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmail import clock
    from agentmail.identity import Caller
    from agentmail.operations import send, session

    me = session.enter(spool, Caller("alice"))
    session.enter(spool, Caller("bob"))
    start = clock.now()
    ids = []
    for hours in (0, -1, 0, 1, -100):
        monkeypatch.setattr(send, "now", lambda hours=hours: start + hours * 3_600_000)
        ids.append(send.send(me, send.Draft("bob", "hi"))[0].id)
    assert ids == sorted(set(ids), key=int)  # type: ignore[arg-type]


def test_ids_rise_in_the_order_of_commits_between_processes(mail: Mail) -> None:
    from agentmail.identity import Caller
    from agentmail.operations import send, session

    mail.register("bob")

    def write(name: str) -> None:
        mine = open_spool(str(mail.spool))
        me = session.enter(mine, Caller(name))
        for _ in range(40):
            send.send(me, send.Draft("bob", "hi"))
        mine.close()

    threads = [threading.Thread(target=write, args=(f"writer{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = mail.sql("SELECT message FROM receipts ORDER BY n")
    assert numbers == sorted(numbers)
    assert len(numbers) == 160


def test_our_output_is_never_written_into_the_spool(mail: Mail) -> None:
    import subprocess

    mail.register("bob")
    mail.send("alice", "bob", "hello")
    for closed in ("<&- >&- 2>&-", ">&- 2>&-", "<&- >&-"):
        subprocess.run(
            ["sh", "-c", f"{' '.join(AGENTMAIL)} inbox {closed}"],
            env=mail.environment("bob"),
            check=False,
            timeout=30,
        )
    assert mail.sql("PRAGMA integrity_check") == [("ok",)]
    assert "hello" in mail.run("bob", "inbox").ok().out
