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

    def queue(self, item_id: str, seconds: float, now: float) -> None:
        start = max(now, self.ends_at)
        last = self._stretches[-1] if self._stretches else None
        if last is not None and last.item_id == item_id and last.end == start:
            last.end += seconds
        else:
            self._stretches.append(_Stretch(item_id, start, start + seconds))

    @property
    def ends_at(self) -> float:
        return self._stretches[-1].end if self._stretches else float("-inf")

    def remaining_s(self, now: float) -> float:
        return max(0.0, self.ends_at - now)

    def playing(self, now: float) -> bool:
        return self.ends_at > now

    def heard_ms(self, item_id: str, now: float) -> int:
        heard = sum(max(0.0, min(now, s.end) - s.start) for s in self._stretches if s.item_id == item_id)
        return round(heard * 1000)

    def unheard_items(self, now: float) -> list[str]:
        """Items with sound that has not been played."""
        return list(dict.fromkeys(s.item_id for s in self._stretches if s.end > now))

    def cut(self, now: float) -> None:
        """Playback stops here."""
        for stretch in self._stretches:
            stretch.end = max(stretch.start, min(stretch.end, now))
        self._stretches = [s for s in self._stretches if s.end > s.start][-32:]
