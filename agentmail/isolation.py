"""Starting without ``site``: installed hooks run ``python -I -S …/agentmail/__main__.py``, which saves a quarter."""

from __future__ import annotations

import sys


def admit_third_party() -> None:
    """Make other packages importable after all; the rare work that needs them calls this first."""
    if sys.flags.no_site:
        import site

        site.main()
