"""The same call with much and with little in the spool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.benchmarks import cold, resident
from tests.benchmarks.measure import Pairs, Row, paired

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.workshop import Place, Workshop

FEW, MANY = 10, 1_000_000
TARGET = 1.15


def history(
    agents: int, figure: Callable[[Workshop, Place], Callable[[], float]]
) -> Callable[[Workshop, int], Pairs]:
    """A call with a million messages against the same with ten."""

    def measure(shop: Workshop, rounds: int) -> Pairs:
        return _compare(
            shop, rounds, shop.place(agents=agents, history=MANY), shop.place(agents=agents, history=FEW), figure
        )

    return measure


def crowd(figure: Callable[[Workshop, Place], Callable[[], float]]) -> Callable[[Workshop, int], Pairs]:
    """A call among a thousand agents against the same among two."""

    def measure(shop: Workshop, rounds: int) -> Pairs:
        return _compare(shop, rounds, shop.place(agents=resident.MANY), shop.place(agents=2), figure)

    return measure


def _compare(
    shop: Workshop,
    rounds: int,
    large: Place,
    small: Place,
    figure: Callable[[Workshop, Place], Callable[[], float]],
) -> Pairs:
    def prepare() -> None:
        large.refill()
        small.refill()

    return paired(rounds, figure(shop, large), figure(shop, small), prepare=prepare)


def _cold(words: tuple[str, ...]) -> Callable[[Workshop, Place], Callable[[], float]]:
    return lambda shop, place: cold.call(shop, place, words)


def _direct(_: Workshop, place: Place) -> Callable[[], float]:
    return resident.direct(place)


def _to_all(_: Workshop, place: Place) -> Callable[[], float]:
    return resident.to_all(place)


_FEW_MESSAGES = f"the same with {FEW}"
_FEW_AGENTS = "the same among 2"
_PEERS = 1 + cold.PEERS

ROWS = [
    Row("cold send, 1,000,000 messages", _FEW_MESSAGES, history(_PEERS, _cold(cold.SEND)), TARGET, pairs=2),
    Row("cold inbox, 1,000,000 messages", _FEW_MESSAGES, history(_PEERS, _cold(cold.INBOX)), TARGET, pairs=2),
    Row("cold list, 1,000,000 messages", _FEW_MESSAGES, history(_PEERS, _cold(cold.LIST)), TARGET, pairs=2),
    Row("resident send, 1,000,000 messages", _FEW_MESSAGES, history(_PEERS, _direct), TARGET, pairs=14),
    Row("send to all, 1,000,000 messages", _FEW_MESSAGES, history(1 + resident.MANY, _to_all), TARGET),
    Row("cold send among 1,000 agents", _FEW_AGENTS, crowd(_cold(cold.SEND)), TARGET, pairs=2),
    Row("resident send among 1,000 agents", _FEW_AGENTS, crowd(_direct), TARGET, pairs=14),
]
