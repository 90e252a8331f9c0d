"""The benchmarks run; how fast anything is, is no test's business."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_they_print_a_table_and_write_it_as_json(tmp_path: Path) -> None:
    words = ["--only", "cold list (", "--rounds", "1", "--json", str(tmp_path / "figures.json")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *words],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "cold list (5 peers)" in done.stdout
    (row,) = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert row["pairs"] == 1
    assert row["ratio"] > 0
