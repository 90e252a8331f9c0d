"""What a sender may rely on."""

from __future__ import annotations

from tests.conftest import Mail


def test_a_message_arrives_byte_for_byte(mail: Mail) -> None:
    mail.register("bob")
    body = "  leading, trailing  \n\ttabs, ünïcödé 🙂\r\n-- and / @ signs\n\n"
    mail.run("alice", "send", "bob", stdin=body).ok()
    assert mail.run("bob", "inbox", "--json").ok().json["inbox"][0]["body"] == body


def test_bare_words_are_joined_by_one_space(mail: Mail) -> None:
    mail.register("bob")
    mail.run("alice", "send", "bob", "which", "port?", "--json").ok()
    assert mail.run("bob", "inbox", "--json").json["inbox"][0]["body"] == "which port?"
