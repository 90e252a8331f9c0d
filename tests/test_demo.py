"""`agentmail demo` shows a real exchange."""

from __future__ import annotations

import re

from tests.conftest import Mail


def test_two_agents_exchange_a_question_and_an_answer(mail: Mail) -> None:
    done = mail.run(None, "demo").ok()
    assert re.search(r"bob │ \[\d+\] alice \(claimed\): Which port", done.out)
    assert re.search(r"alice │ \[\d+\] bob \(reply to \d+\): 8080", done.out)


def test_the_demo_leaves_the_real_spool_alone(mail: Mail) -> None:
    mail.run(None, "demo").ok()
    assert not mail.spool.exists()
