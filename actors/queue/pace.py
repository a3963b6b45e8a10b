"""How often to send, and the figures that both halves keep."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Protocol

import msgspec

from actors.messages import Rank

WINDOW_S = 0.25
"""Time constant of the rate."""
BUSY_RATE_HZ = 200.0
"""Items a second from which sending each by itself costs too much: a call is 0.5-0.7 ms of CPU."""
BUSY_TICK_S = 0.010
MAX_TICK_S = 0.032
"""One VAD frame: waiting longer would only collect the next one."""


class Pace:
    """The least time between two sendings: none when little flows, 10 ms when much does, up to 32 ms when the
    far end answers slowly."""

    def __init__(self) -> None:
        self._level = 0.0
        self._at = 0.0
        self._round_trip_s = 0.0

    def sent(self, items: int, now: float) -> None:
        self._level = self._decayed(now) + items
        self._at = now

    def answered(self, round_trip_s: float) -> None:
        self._round_trip_s += 0.2 * (round_trip_s - self._round_trip_s)

    def tick_s(self, now: float) -> float:
        if self._decayed(now) < BUSY_RATE_HZ * WINDOW_S:
            return 0.0
        return min(MAX_TICK_S, max(BUSY_TICK_S, self._round_trip_s))

    def _decayed(self, now: float) -> float:
        return self._level * math.exp(min(0.0, self._at - now) / WINDOW_S)


class Spread(msgspec.Struct, frozen=True):
    """How a measure was spread over the last 256 values."""

    p50: float = 0.0
    p95: float = 0.0
    most: float = 0.0


class Recent:
    """The last 256 values of a measure."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=256)

    def add(self, value: float) -> None:
        self._values.append(value)

    def spread(self) -> Spread:
        ordered = sorted(self._values)
        if not ordered:
            return Spread()
        last = len(ordered) - 1
        return Spread(ordered[round(0.5 * last)], ordered[round(0.95 * last)], ordered[-1])


class Due(Protocol):
    """An item that waits."""

    rank: int
    due: float
    """Monotonic s."""


def overdue_s(waiting: Iterable[Due], now: float) -> float:
    """How far the waiting item that somebody waits for is past its due time; 0 when none is."""
    due = [item.due for item in waiting if item.rank == Rank.CONFIRMED]
    return max(0.0, now - min(due, default=now))


class Figures(msgspec.Struct, frozen=True):
    """One half of the queue at a moment; counts are since the start."""

    depth: int
    """Items waiting."""
    working: int
    """Items given on and not finished."""
    oldest_age_s: float
    """How long the oldest waiting item has waited."""
    overdue_s: float
    """See `overdue_s`."""
    wait_s: Spread
    """From arrival until given on."""
    lateness_s: Spread
    """How far past its due time an item was given on; 0 when in time."""
    batch_size: Spread
    taken: int = 0
    finished: int = 0
    failed: int = 0
    redelivered: int = 0
    cancelled: int = 0
    promoted: int = 0
    dropped: int = 0
    """Results of an older attempt or a seen index, items replaced by newer ones, duplicates."""
    refused: int = 0
    """Items turned away because the outbox was full."""


class Counts:
    """The running figures behind `Figures`."""

    def __init__(self) -> None:
        self.wait_s = Recent()
        self.lateness_s = Recent()
        self.batch_size = Recent()
        self.taken = 0
        self.finished = 0
        self.failed = 0
        self.redelivered = 0
        self.cancelled = 0
        self.promoted = 0
        self.dropped = 0
        self.refused = 0

    def gave_on(self, waited_s: float, late_s: float) -> None:
        self.taken += 1
        self.wait_s.add(waited_s)
        self.lateness_s.add(max(0.0, late_s))

    def figures(self, depth: int, working: int, oldest_age_s: float, overdue_s: float) -> Figures:
        return Figures(
            depth,
            working,
            oldest_age_s,
            overdue_s,
            self.wait_s.spread(),
            self.lateness_s.spread(),
            self.batch_size.spread(),
            self.taken,
            self.finished,
            self.failed,
            self.redelivered,
            self.cancelled,
            self.promoted,
            self.dropped,
            self.refused,
        )
