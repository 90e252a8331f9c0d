"""Durations as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmail import durations
from agentmail.errors import BadInput

UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
WRITTEN = [
    ("300ms", 300),
    ("45s", 45_000),
    ("2m", 120_000),
    ("1h30m", 5_400_000),
    ("1h5s", 3_605_000),
    ("2d", 172_800_000),
    ("1d1h1m1s1ms", 90_061_001),
    ("1.5s", 1_500),
    (".5m", 30_000),
    (" 2M ", 120_000),
    ("0s", 0),
]
NOT_DURATIONS = [
    "",
    " ",
    "5",
    "m",
    ".",
    ".s",
    "1.2.3s",
    "5 m",
    "m5",
    "1m1h",
    "1m1m",
    "-5s",
    "nan",
    "infs",
    "1e3s",
    "5x",
]
SHOWN = [
    (0, "0s"),
    (0.3, "0s"),
    (1, "1ms"),
    (300, "300ms"),
    (1_500, "1s500ms"),
    (120_000, "2m"),
    (5_400_000, "1h30m"),
    (3_605_000, "1h5s"),
    (90_061_001, "1d1h"),
]
AGES = [(-5, "just now"), (999, "just now"), (1_000, "1s ago"), (119_999, "1m ago"), (7_200_000, "2h ago")]
AGES += [(90_000_000, "1d ago")]


@pytest.mark.parametrize(("text", "ms"), WRITTEN)
def test_durations_are_read(text: str, ms: float) -> None:
    assert durations.parse(text) == ms


@pytest.mark.parametrize("text", NOT_DURATIONS)
def test_what_is_no_duration_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(BadInput, match="is no duration; write it like") as refused:
        durations.parse(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(("ms", "text"), SHOWN)
def test_durations_are_shown_in_the_two_largest_units(ms: float, text: str) -> None:
    assert durations.show(ms) == text


@pytest.mark.parametrize(("ms", "text"), AGES)
def test_ages_are_shown_in_the_largest_unit(ms: float, text: str) -> None:
    assert durations.ago(ms) == text


@given(st.sampled_from(list(UNITS)), st.integers(1, 999))
def test_a_number_of_one_unit_is_that_many_of_it(unit: str, count: int) -> None:
    assert durations.parse(f"{count}{unit}") == count * UNITS[unit]


@given(st.integers(0, 10**13))
def test_what_is_shown_is_read_as_nearly_the_same(ms: int) -> None:
    read = durations.parse(durations.show(ms))
    assert read <= ms
    assert ms - read <= ms / 24  # all but the two largest units is left out
    assert durations.show(read) == durations.show(ms)


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_is_refused(text: str) -> None:
    try:
        assert durations.parse(text) >= 0
    except BadInput:
        pass
