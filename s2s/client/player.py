"""What the speaker plays, and how much of it has been heard.

The event loop fills it, an audio device pulls from it, maybe in a thread of its own.  No device and no clock in here:
each pull says when its first sample is heard.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from s2s.audio import Pcm16, Resampler

WIRE_HZ = 24_000
"""Of all sound from and to the server: int16, mono, little endian."""
AUDIBLE_RMS = 10 ** (-45 / 20) * 32_768
"""5 ms of int16 at this level can be heard from a speaker."""
FIRST_PREBUFFER_S = 0.04
MOST_PREBUFFER_S = 0.4
FADE_S = 0.005
KEPT_BLOCKS = 256
"""Pulls that an item remembers: 5 s of 20 ms blocks, far more than any device holds."""
KEPT_ITEMS = 16
"""Items whose first audible moment is remembered."""


@dataclass(frozen=True)
class Cut:
    """An item whose sound was stopped before its end."""

    item_id: str
    heard_ms: int


@dataclass
class _Item:
    item_id: str
    resampler: Resampler
    pieces: deque[Pcm16] = field(default_factory=deque)
    received: int = 0
    """Samples at the wire's rate."""
    queued: int = 0
    """Samples that were ever queued, at the device's rate, as are those below."""
    pulled: int = 0
    finished: bool = False
    audible: int | None = None
    """The first sample that can be heard."""
    blocks: deque[tuple[int, int, float]] = field(default_factory=lambda: deque(maxlen=KEPT_BLOCKS))
    """First sample, length, and when the first is heard."""


class Player:
    """Items one after the other.  Moments are seconds of the monotonic clock."""

    def __init__(self, rate_hz: int = WIRE_HZ) -> None:
        """`rate_hz`: of the device."""
        self.rate_hz = rate_hz
        self.underruns = 0
        """How often an answer that had begun had nothing to play."""
        self._lock = threading.Lock()
        self._items: deque[_Item] = deque()
        self._audible_at: dict[str, float] = {}
        self._leaving: list[_Item] = []
        """Wholly pulled; its end may still be in the device."""
        self._prebuffer = round(FIRST_PREBUFFER_S * rate_hz)
        self._buffering = True
        self._waited = 0
        self._fading: Pcm16 = np.zeros(0, np.int16)

    def play(self, item_id: str, data: bytes) -> None:
        """Queue sound of an item, int16 at the wire's rate."""
        with self._lock:
            item = self._find(item_id)
            if item is None:
                item = _Item(item_id, Resampler(WIRE_HZ, self.rate_hz))
                self._items.append(item)
            item.received += len(data) // 2
            self._queue(item, item.resampler.feed(np.frombuffer(data, "<i2")))

    def finish(self, item_id: str) -> None:
        """No more of this item will come."""
        with self._lock:
            item = self._find(item_id)
            if item is not None and not item.finished:
                self._queue(item, item.resampler.feed(np.zeros(0, np.int16), last=True))
                item.finished = True

    def flush(self, now: float) -> list[Cut]:
        """Play nothing more of what is here; the items that were cut, each with what had been heard of it."""
        with self._lock:
            self._leave(now)
            cut = [self._cut(item, now) for item in (*self._leaving, *self._items)]
            if self._items and not self._buffering:
                self._fading = self._fade_of(self._items[0])
            self._items.clear()
            self._leaving.clear()
            self._buffering, self._waited = True, 0
            return cut

    def pull(self, samples: int, at: float) -> Pcm16:
        """The next block, silence where there is nothing; its first sample is heard `at`."""
        out = np.zeros(samples, np.int16)
        with self._lock:
            fading, self._fading = self._fading[:samples], self._fading[samples:]
            out[: len(fading)] = fading
            filled = len(fading)
            while filled < samples and self._may_play(samples - filled):
                item = self._items[0]
                piece = item.pieces.popleft()
                taken = piece[: samples - filled]
                if len(taken) < len(piece):
                    item.pieces.appendleft(piece[len(taken) :])
                out[filled : filled + len(taken)] = taken
                self._pulled(item, len(taken), at + filled / self.rate_hz)
                filled += len(taken)
        return out

    def plays(self, now: float) -> bool:
        """Whether there is anything that was not heard yet."""
        with self._lock:
            self._leave(now)
            return bool(self._items or self._leaving)

    def holds(self, item_id: str, now: float) -> bool:
        """Whether the item has sound that was not heard yet, or may get more."""
        with self._lock:
            self._leave(now)
            return any(item.item_id == item_id for item in (*self._items, *self._leaving))

    def audible_at(self, item_id: str) -> float | None:
        """When the item's first audible sample is heard; None as long as it was not pulled."""
        return self._audible_at.get(item_id)

    def _find(self, item_id: str) -> _Item | None:
        return next((item for item in self._items if item.item_id == item_id), None)

    def _queue(self, item: _Item, pcm: Pcm16) -> None:
        if not len(pcm):
            return
        if item.audible is None and (at := first_audible(pcm, self.rate_hz)) is not None:
            item.audible = item.queued + at
        item.pieces.append(pcm)
        item.queued += len(pcm)

    def _may_play(self, wanted: int) -> bool:
        """Whether the first item has a piece to play now."""
        while self._items and not self._items[0].pieces and self._items[0].finished:
            self._leaving.append(self._items.popleft())
        if not self._items:
            self._buffering, self._waited = True, 0
            return False
        item = self._items[0]
        ready = item.queued - item.pulled
        if self._buffering:
            self._waited += wanted if ready else 0
            enough = ready >= self._prebuffer or item.finished or self._waited > self._prebuffer
            self._buffering = not (ready and enough)
        elif not ready:
            self.underruns += 1
            self._prebuffer = min(2 * self._prebuffer, round(MOST_PREBUFFER_S * self.rate_hz))
            self._buffering, self._waited = True, 0
        return not self._buffering

    def _pulled(self, item: _Item, samples: int, at: float) -> None:
        start, item.pulled = item.pulled, item.pulled + samples
        item.blocks.append((start, samples, at))
        if item.audible is not None and start <= item.audible < item.pulled:
            self._audible_at[item.item_id] = at + (item.audible - start) / self.rate_hz
            while len(self._audible_at) > KEPT_ITEMS:
                del self._audible_at[next(iter(self._audible_at))]

    def _heard(self, item: _Item, now: float) -> int:
        for start, samples, at in reversed(item.blocks):
            if at <= now:
                return start + min(samples, round((now - at) * self.rate_hz))
        return 0

    def _leave(self, now: float) -> None:
        """Forget what has been heard to its end."""
        while self._items and not self._items[0].pieces and self._items[0].finished:
            self._leaving.append(self._items.popleft())
        self._leaving = [item for item in self._leaving if self._heard(item, now) < item.queued]

    def _cut(self, item: _Item, now: float) -> Cut:
        heard_ms = self._heard(item, now) * 1000 // self.rate_hz
        return Cut(item.item_id, min(heard_ms, item.received * 1000 // WIRE_HZ))

    def _fade_of(self, item: _Item) -> Pcm16:
        """The next samples, faded out, so that the cut is no click."""
        rest = np.concatenate([np.zeros(0, np.int16), *item.pieces])[: round(FADE_S * self.rate_hz)]
        faded: Pcm16 = (rest * np.linspace(1, 0, len(rest), endpoint=False)).astype(np.int16)
        return faded


def first_audible(pcm: Pcm16, rate_hz: int) -> int | None:
    """The first sample, to 5 ms, that can be heard."""
    step = rate_hz // 200
    padded = np.pad(pcm, (0, -len(pcm) % step)).astype(np.float64).reshape(-1, step)
    loud = np.flatnonzero(np.sqrt(np.square(padded).mean(axis=1)) >= AUDIBLE_RMS)
    return int(loud[0]) * step if len(loud) else None


def level_db(pcm: Pcm16) -> float:
    """RMS in dB of full scale; -96 and below is silence."""
    if not len(pcm):
        return -96.0
    rms = float(np.sqrt(np.square(pcm.astype(np.float64)).mean()))
    return max(-96.0, 20 * float(np.log10(max(rms, 1e-9) / 32_768)))
