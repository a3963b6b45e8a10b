"""`semantic_vad`: a turn ends when it sounds complete and its words don't say otherwise, or after a long silence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestration.session.config import Pace, SemanticVad
from orchestration.session.turns.base import AskTurn, Ended, Paused, Signal
from orchestration.session.turns.speech_run import SpeechRun
from orchestration.session.vad_feed import Frame

VAD_THRESHOLD = 0.5
ASK_AGAIN_MS = 400
"""Silence after which the turn model is asked once more: a longer pause tells it more."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long to wait, by eagerness."""

    complete_ms: int
    """Silence that ends a turn which sounds complete."""
    longest_ms: int
    """Silence that ends any turn (OpenAI's bounds)."""
    completeness: float
    """Probability from which a turn counts as complete."""


WAITS = {
    "high": Waits(256, 2_000, 0.4),
    "auto": Waits(384, 4_000, 0.5),
    "medium": Waits(384, 4_000, 0.5),
    "low": Waits(640, 8_000, 0.7),
}


_OPEN_ENDS = """
a an the my your his her our their this these those and or but because so if when while that which who than
to of in on at for from with by as is are was were be am i um uh
"""
OPEN_ENDS = frozenset(re.findall(r"\w+", _OPEN_ENDS))
"""English words that no sentence ends with; in other languages the sound alone decides."""


def is_open(text: str) -> bool:
    """Whether `text` stops in the middle of a sentence."""
    words = re.findall(r"[^\W_]+", text.lower().replace("'", ""))
    return bool(words) and words[-1] in OPEN_ENDS and not text.rstrip().endswith(("?", "!"))


class SemanticEndpointing:
    """Waits for the words, too: without them there is nothing to answer, so that this costs no time."""

    def __init__(self, detection: SemanticVad, pace: Pace) -> None:
        self._waits = WAITS[detection.eagerness]
        self._run = SpeechRun(VAD_THRESHOLD, pace)
        self._now = 0
        self.reset()

    def frame(self, frame: Frame) -> list[Signal]:
        self._now = frame.end
        signals = self._run.frame(frame)
        if any(isinstance(signal, Paused) for signal in signals):
            self._complete, self._finished, self._asked = False, False, 1
            return [*signals, AskTurn(frame.end), *self._end()]
        if self._run.paused and self._asked == 1 and self._run.silence_ms(frame.end) >= ASK_AGAIN_MS:
            self._asked = 2
            signals.append(AskTurn(frame.end))
        return [*signals, *self._end()]

    def judged(self, probability: float) -> list[Signal]:
        self._complete = self._complete or probability >= self._waits.completeness
        return self._end()

    def said(self, text: str) -> list[Signal]:
        self._finished = not is_open(text)
        return self._end()

    def reset(self) -> None:
        self._run.reset()
        self._complete = self._finished = False
        self._asked = 0

    def _end(self) -> list[Signal]:
        silence_from = self._run.silence_from
        if silence_from is None or not self._run.paused:
            return []
        enough = self._waits.complete_ms if self._complete and self._finished else self._waits.longest_ms
        if self._run.silence_ms(self._now) < enough:
            return []
        self.reset()
        return [Ended(self._now, silence_from)]
