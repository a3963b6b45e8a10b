"""Runs of speech and silence in VAD frames, with hysteresis: what all strategies have in common."""

from __future__ import annotations

from orchestration.session.audio_buffer import to_ms, to_samples
from orchestration.session.config import Pace
from orchestration.session.turns.base import Paused, Resumed, Signal, Started
from orchestration.session.vad_feed import Frame

HYSTERESIS = 0.15
"""Speech that has begun goes on until the probability is this far below the threshold."""
RESUME_FRAMES = 2
"""Frames of speech in a row that end a pause: one alone is a click or a breath."""


class SpeechRun:
    """Follows one turn: not speaking, speaking, paused."""

    def __init__(self, threshold: float, pace: Pace) -> None:
        self._threshold = threshold
        self._start_samples = to_samples(pace.start_ms)
        self._pause_samples = to_samples(pace.pause_ms)
        self.reset()

    def reset(self) -> None:
        self.speaking = False
        self.paused = False
        self.silence_from: int | None = None
        """Where the silence began that still lasts."""
        self._run_from: int | None = None
        self._run_frames = 0

    def frame(self, frame: Frame) -> list[Signal]:
        if frame.probability >= self._threshold:
            return self._speech(frame)
        if (
            not self.speaking
            or frame.probability < self._threshold - HYSTERESIS
            or self.silence_from is not None
        ):
            self._run_from, self._run_frames = None, 0
            return self._silence(frame)
        return []

    def silence_ms(self, until: int) -> int:
        return 0 if self.silence_from is None else to_ms(until - self.silence_from)

    def _speech(self, frame: Frame) -> list[Signal]:
        if self._run_from is None:
            self._run_from = frame.start
        self._run_frames += 1
        if not self.speaking:
            if frame.end - self._run_from < self._start_samples:
                return []
            self.speaking = True
            return [Started(self._run_from)]
        if self.silence_from is None or self._run_frames < RESUME_FRAMES:
            return []
        self.silence_from = None
        was_paused, self.paused = self.paused, False
        return [Resumed(self._run_from)] if was_paused else []

    def _silence(self, frame: Frame) -> list[Signal]:
        if not self.speaking:
            return []
        if self.silence_from is None:
            self.silence_from = frame.start
        if self.paused or frame.end - self.silence_from < self._pause_samples:
            return []
        self.paused = True
        return [Paused(self.silence_from)]
