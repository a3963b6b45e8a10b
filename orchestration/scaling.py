"""When the pool of a stage grows and when it shrinks: pure decisions, time passed in.

It grows when somebody has been kept waiting for a while, and shrinks when one replica fewer would have been enough
for a long time: growing late costs a pause in a conversation, shrinking late costs only memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OVERDUE_S = 0.25
"""An item that waits so long past its due time is heard as a pause."""
GROW_AFTER_S = 3.0
SHRINK_AFTER_S = 60.0
SPARE = 0.6
"""Busy for less than this part of the time, the replicas that are left would do."""


@dataclass(frozen=True)
class Load:
    """What one stage has to do at a moment."""

    overdue_s: float
    """Of the item that has waited longest past its due time, here or at any gateway."""
    busy: float
    """Replicas that work, on average since the last look: 1.5 is one all the time and another half of it."""


class Work:
    """How much the replicas of a stage work between one look and the next, from what each has worked in all."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, float]] = {}

    def busy(self, worked_s: Mapping[str, float], now_s: float) -> float:
        """Replicas that worked, on average since the last look; `worked_s` by replica.  One that was not in that look
        counts from the next on."""
        before, self._before = self._before, {name: (total_s, now_s) for name, total_s in worked_s.items()}
        return sum(
            min(1.0, (total_s - before[name][0]) / (now_s - before[name][1]))
            for name, total_s in worked_s.items()
            if name in before and now_s > before[name][1]
        )


class Scaler:
    """The pool of one stage, between `least` and `most` replicas."""

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most
        self._late_since: float | None = None
        self._spare_since: float | None = None

    def decide(self, load: Load, serving: int, wanted: int, now_s: float) -> int:
        """1: one replica more; -1: one fewer; 0: as it is.

        `serving` of the `wanted` replicas take work; where some are still loading, their help is awaited.
        """
        late = load.overdue_s >= OVERDUE_S
        spare = not late and load.busy < SPARE * (wanted - 1)
        self._late_since = (self._late_since or now_s) if late else None
        self._spare_since = (self._spare_since or now_s) if spare else None
        if serving < wanted:
            self._late_since = self._spare_since = None
        elif (
            self._late_since is not None and now_s - self._late_since >= GROW_AFTER_S and wanted < self._most
        ):
            self._late_since = None
            return 1
        elif (
            self._spare_since is not None
            and now_s - self._spare_since >= SHRINK_AFTER_S
            and wanted > self._least
        ):
            self._spare_since = None
            return -1
        return 0
