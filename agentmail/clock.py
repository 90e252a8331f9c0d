"""The time of day, in one place so that a test may set it back."""

from __future__ import annotations

import time


def now() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000
