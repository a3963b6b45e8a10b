"""`turn_detection: null`: the client commits."""

from __future__ import annotations

from orchestration.session.config import Pace
from orchestration.session.turns.base import Signal
from orchestration.session.vad_feed import Frame


class ManualTurns:
    def __init__(self, detection: None, pace: Pace) -> None:
        pass

    def frame(self, frame: Frame) -> list[Signal]:
        return []

    def judged(self, probability: float) -> list[Signal]:
        return []

    def said(self, text: str) -> list[Signal]:
        return []

    def reset(self) -> None:
        pass
