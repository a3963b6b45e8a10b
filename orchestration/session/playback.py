"""The playback clock: what of the sound that was sent can have been heard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _Stretch:
    item_id: str
    start: float
    end: float


class PlaybackClock:
    """Assumes a client that plays sound in order, from when it was sent, without waiting."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = []
        self._held_at: float | None = None

    @property
    def held(self) -> bool:
        return self._held_at is not None

    def hold(self, now: float) -> None:
        """Nothing is played until `release`."""
        self._held_at = now

    def release(self, now: float) -> None:
        """What was not played when it was held is played from now on."""
        held, self._held_at = self._held_at, None
        if held is None:
            return
        stretches, self._stretches = self._stretches, []
        for each in stretches:
            if each.start < held < each.end:
                self._stretches.append(_Stretch(each.item_id, each.start, held))
            waiting = max(each.start, held)
            if each.end > held:
                self._stretches.append(_Stretch(each.item_id, waiting + now - held, each.end + now - held))
            else:
                self._stretches.append(each)

    def _until(self, now: float) -> float:
        """The moment up to which sound was played."""
        return now if self._held_at is None else self._held_at

    def queue(self, item_id: str, seconds: float, now: float) -> None:
        start = max(self._until(now), self.ends_at)
        last = self._stretches[-1] if self._stretches else None
        if last is not None and last.item_id == item_id and last.end == start:
            last.end += seconds
        else:
            self._stretches.append(_Stretch(item_id, start, start + seconds))

    @property
    def ends_at(self) -> float:
        return self._stretches[-1].end if self._stretches else float("-inf")

    def remaining_s(self, now: float) -> float:
        return max(0.0, self.ends_at - self._until(now))

    def playing(self, now: float) -> bool:
        return self.ends_at > self._until(now)

    def heard_ms(self, item_id: str, now: float) -> int:
        until = self._until(now)
        heard = sum(max(0.0, min(until, s.end) - s.start) for s in self._stretches if s.item_id == item_id)
        return round(heard * 1000)

    def unheard_items(self, now: float) -> list[str]:
        """Items with sound that has not been played."""
        until = self._until(now)
        return list(dict.fromkeys(s.item_id for s in self._stretches if s.end > until))

    def cut(self, now: float) -> None:
        """Playback stops here, for good."""
        until = self._until(now)
        self._held_at = None
        for stretch in self._stretches:
            stretch.end = max(stretch.start, min(stretch.end, until))
        self._stretches = [s for s in self._stretches if s.end > s.start][-32:]
