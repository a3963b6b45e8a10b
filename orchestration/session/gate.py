"""Holds back what a speculative answer would do, until it is wanted."""

from __future__ import annotations

from collections.abc import Callable

Step = Callable[[float], None]
"""Something to do at a time."""


class Gate:
    """While closed it keeps the steps, in order; `open` does them, and from then on they are done at once."""

    def __init__(self, closed: bool) -> None:
        self._kept: list[Step] | None = [] if closed else None

    @property
    def closed(self) -> bool:
        return self._kept is not None

    def do(self, step: Step, now: float) -> None:
        if self._kept is None:
            step(now)
        else:
            self._kept.append(step)

    def open(self, now: float) -> None:
        kept, self._kept = self._kept or [], None
        for step in kept:
            step(now)
