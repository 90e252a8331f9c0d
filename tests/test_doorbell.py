"""A waiter is told by whatever means there are, and not before there is something to see."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Timer

import pytest

from agentmail import doorbell
from agentmail.bells import Bells
from agentmail.doorbell import POLL_SECONDS, Doorbell


@pytest.mark.parametrize("means", doorbell._MEANS)
def test_a_strike_wakes_and_a_ring_does_not(tmp_path: Path, means: type[Doorbell]) -> None:
    bells = Bells(str(tmp_path))
    bells.hang("bob")
    with means(bells.path("bob")) as bell:  # type: ignore[call-arg]
        bells.ring("bob")
        assert not bell.wait(0.05)
        bells.strike("bob")
        assert bell.wait(10)
        assert not bell.wait(0.05)
        Timer(0.05, bells.strike, ["bob"]).start()
        assert bell.wait(10)


def test_waiters_beyond_the_number_of_watches_get_pipes(tmp_path: Path) -> None:
    if len(doorbell._MEANS) < 2:
        pytest.skip("watches are not scarce here")
    bells = Bells(str(tmp_path))
    names = [f"agent-{number}" for number in range(200)]
    for name in names:
        bells.hang(name)
    waiting = [doorbell.open_doorbell(bells.path(name)) for name in names]
    try:
        for name in names:
            bells.strike(name)
        assert all(bell.wait(10) for bell in waiting)
    finally:
        for bell in waiting:
            bell.close()


def test_without_any_means_time_passes() -> None:
    start = time.monotonic()
    assert not Doorbell().wait(0.01)
    assert time.monotonic() - start < POLL_SECONDS
