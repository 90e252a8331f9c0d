"""Paired measurements: a figure of ours and its yardstick's, taken in turn, so that both see the same machine."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.workshop import Workshop


class Pairs(NamedTuple):
    """What was measured."""

    ours: list[float]
    yardstick: list[float]


class Row(NamedTuple):
    """One line of the table, before it is measured."""

    what: str
    yardstick: str
    measure: Callable[[Workshop, int], Pairs]  # given the number of pairs
    ratio: float | None  # the target: ours is at most so many times the yardstick
    limit: float | None = None  # the target: ours is at most this
    unit: str = "ms"
    pairs: int = 1  # per round asked for; a quick measurement takes more


class Result(NamedTuple):
    """One line of the table."""

    what: str
    yardstick: str
    unit: str
    pairs: int
    yardstick_median: float
    median: float
    ratio: float | None
    target: str
    ok: bool


def take(row: Row, shop: Workshop, rounds: int) -> Result:
    """Measure a row. The ratio is the median of the pairs' own: a slow moment of the machine hits both of a pair."""
    pairs = row.measure(shop, rounds * row.pairs)
    ratios = [ours / other for ours, other in zip(*pairs, strict=True) if other]
    ratio = statistics.median(ratios) if ratios and row.ratio is not None else None
    median = statistics.median(pairs.ours)
    ok = (row.ratio is None or (ratio is not None and ratio <= row.ratio)) and (
        row.limit is None or median <= row.limit
    )
    return Result(
        row.what,
        row.yardstick,
        row.unit,
        len(pairs.ours),
        statistics.median(pairs.yardstick),
        median,
        ratio,
        _target(row),
        ok,
    )


def paired(
    rounds: int,
    ours: Callable[[], float],
    yardstick: Callable[[], float],
    *,
    prepare: Callable[[], object] = lambda: None,
) -> Pairs:
    """Take both figures `rounds` times, the first of each pair in turn; the very first pair only warms up."""
    pairs = Pairs([], [])
    for number in range(rounds + 1):
        turns = [(ours, pairs.ours), (yardstick, pairs.yardstick)]
        for figure, into in turns if number % 2 else reversed(turns):
            prepare()
            into.append(figure())
    return Pairs(pairs.ours[1:], pairs.yardstick[1:])


def timed(call: Callable[[], object]) -> Callable[[], float]:
    """The milliseconds that a call takes."""

    def figure() -> float:
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) * 1000

    return figure


def _target(row: Row) -> str:
    parts = [f"≤ {row.ratio:g}" if row.ratio is not None else "", f"≤ {row.limit:g} {row.unit}" if row.limit else ""]
    return ", ".join(part for part in parts if part)
