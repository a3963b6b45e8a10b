"""When things came in one turn, as its client saw them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestration.session import events


@dataclass
class Moments:
    """When things came in one turn, monotonic s."""

    committed: float | None = None
    transcript: float | None = None
    first_text: float | None = None
    last_text: float | None = None
    done: float | None = None
    status: str = ""
    sound: list[tuple[float, float]] = field(default_factory=list)
    """When each piece came, and its length in s."""

    def see(self, event: events.ServerEvent) -> None:
        now = time.monotonic()
        match event:
            case events.InputAudioBufferCommitted():
                self.committed = now
            case events.InputAudioTranscriptionCompleted():
                self.transcript = now
            case events.ResponseAudioTranscriptDelta():
                self.first_text = self.first_text or now
                self.last_text = now
            case events.ResponseAudioDelta(delta=pcm, rate_hz=rate_hz):
                self.sound.append((now, len(pcm) / 2 / rate_hz))
            case events.ResponseDone(response=response):
                self.done = now
                details = response.status_details
                reason = f": {details.reason}" if details is not None and details.reason else ""
                self.status = response.status + reason

    @property
    def first_sound(self) -> float | None:
        return self.sound[0][0] if self.sound else None

    def work(self, stage: str) -> tuple[float | None, float | None]:
        """From when to when `stage` works for this answer."""
        last_sound = self.sound[-1][0] if self.sound else None
        return {
            "stt": (self.committed, self.transcript),
            "llm": (self.first_text, self.last_text),
            "tts": (self.first_text, last_sound),
        }[stage]

    def gap_s(self) -> float:
        return longest_gap_s(self.sound)


def longest_gap_s(sound: Sequence[tuple[float, float]]) -> float:
    """Longest silence in s of a player that begins with the first of `sound`, (moment, length) pieces in s."""
    gap, ends = 0.0, sound[0][0] if sound else 0.0
    for came, length_s in sound:
        gap = max(gap, came - ends)
        ends = max(ends, came) + length_s
    return gap
