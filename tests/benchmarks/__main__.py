"""Measure, and print a table of ratios: `python -m tests.benchmarks [--only WORD] [--rounds N] [--json PATH]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import sys
from typing import TYPE_CHECKING

from tests.benchmarks import cold, idle, resident, scale, waking
from tests.benchmarks.measure import take
from tests.benchmarks.workshop import Workshop

if TYPE_CHECKING:
    from tests.benchmarks.measure import Result

ROWS = [*cold.ROWS, *waking.ROWS, *resident.ROWS, *idle.ROWS, *scale.ROWS]
LAYOUT = "{:<36} {:<40} {:>10} {:>10} {:>7}  {:<14} {}"


def main(words: list[str]) -> int:
    """Measure the rows that are asked for; 1 if one is over its target."""
    asked = _parser().parse_args(words)
    rows = [row for row in ROWS if asked.only.lower() in row.what.lower()]
    print(LAYOUT.format("what", "yardstick", "its median", "ours", "ratio", "target", ""), flush=True)
    results = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left behind
    with Workshop() as shop:
        for row in rows:
            results.append(take(row, shop, asked.rounds))
            print(_line(results[-1]), flush=True)
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"machine": _machine(), "rows": [result._asdict() for result in results]}, file, indent=2)
    return 0 if all(result.ok for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="only rows with this in their name")
    parser.add_argument(
        "--rounds", type=int, default=15, metavar="N", help="pairs; quick rows take several per round"
    )
    parser.add_argument("--json", metavar="PATH", help="write the results there, too")
    return parser


def _line(result: Result) -> str:
    return LAYOUT.format(
        result.what,
        result.yardstick,
        f"{result.yardstick_median:.2f}",
        f"{result.median:.2f} {result.unit}"[:10],
        "" if result.ratio is None else f"{result.ratio:.2f}",
        result.target,
        "ok" if result.ok else "over",
    )


def _machine() -> dict[str, object]:
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
