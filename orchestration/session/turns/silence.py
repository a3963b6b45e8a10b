"""`server_vad`: a turn ends after `silence_duration_ms` of silence."""

from __future__ import annotations

from orchestration.session.config import Pace, ServerVad
from orchestration.session.turns.base import Ended, Signal
from orchestration.session.turns.speech_run import SpeechRun
from orchestration.session.vad_feed import Frame


class SilenceEndpointing:
    def __init__(self, detection: ServerVad, pace: Pace) -> None:
        self._silence_ms = detection.silence_duration_ms
        self._run = SpeechRun(detection.threshold, pace)

    def frame(self, frame: Frame) -> list[Signal]:
        signals = self._run.frame(frame)
        silence_from = self._run.silence_from
        if silence_from is not None and self._run.silence_ms(frame.end) >= self._silence_ms:
            self._run.reset()
            signals.append(Ended(frame.end, silence_from))
        return signals

    def judged(self, probability: float) -> list[Signal]:
        return []

    def said(self, text: str) -> list[Signal]:
        return []

    def reset(self) -> None:
        self._run.reset()
