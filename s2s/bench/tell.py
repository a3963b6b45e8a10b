"""What a bench is doing, as it does it."""

from __future__ import annotations

import sys


def tell(bench: str, doing: str) -> None:
    """One line to stderr, so that stdout stays the figures'."""
    print(f"bench {bench}: {doing}", file=sys.stderr, flush=True)
