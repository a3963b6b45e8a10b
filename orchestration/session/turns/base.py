"""What an endpointing strategy sees and says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orchestration.session.vad_feed import Frame


@dataclass(frozen=True, slots=True)
class Started:
    """A person began to speak at sample `at`."""

    at: int


@dataclass(frozen=True, slots=True)
class Paused:
    """Nothing was said since sample `at`; the turn may be over."""

    at: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """The turn goes on after all, with speech from sample `at` on."""

    at: int


@dataclass(frozen=True, slots=True)
class AskTurn:
    """Is what was said up to sample `until` a complete turn?  The answer comes back by `judged`."""

    until: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn is over; it reaches to sample `at`, and its last speech was at `speech_end`."""

    at: int
    speech_end: int


Signal = Started | Paused | Resumed | AskTurn | Ended


class Endpointing(Protocol):
    """Decides from VAD frames alone, so that a file sent in a burst has the turns of a live microphone."""

    def frame(self, frame: Frame) -> list[Signal]: ...

    def judged(self, probability: float) -> list[Signal]:
        """The turn model's answer to the last `AskTurn`."""

    def said(self, text: str) -> list[Signal]:
        """What was said up to the pause that is on; empty where that is not known before the turn is over."""

    def reset(self) -> None:
        """No turn is on: what came before was committed or cleared."""
