"""Is it an interruption?  Speech over an answer counts when it lasts, or when its words are no backchannel."""

from __future__ import annotations

import re

from orchestration.session.audio_buffer import to_ms
from orchestration.session.config import Pace

_SOUNDS = (
    "mm",
    "mmm",
    "mhm",
    "hm",
    "hmm",
    "mmhmm",
    "mhmm",
    "uhhuh",
    "uh",
    "huh",
    "um",
    "ah",
    "oh",
    "ha",
    "haha",
)
_NODS = ("ok", "okay", "yeah", "yep", "yup", "right", "sure", "really", "i", "see", "got", "it")
_BACKCHANNELS = frozenset((*_SOUNDS, *_NODS))


class BargeIn:
    """Follows speech that began while the machine was speaking: first suspected, then confirmed, or dismissed."""

    def __init__(self, pace: Pace) -> None:
        self._barge_in_ms = pace.barge_in_ms

    def by_duration(self, speech_samples: int) -> bool:
        """Whether speech of this length, without a pause, interrupts."""
        return to_ms(speech_samples) >= self._barge_in_ms

    def by_words(self, text: str) -> bool:
        """Whether these words, though short, want the floor."""
        return any(word not in _BACKCHANNELS for word in _words(text))


def is_sound(text: str) -> bool:
    """Whether nothing was said but "mm" and "uh"."""
    return all(word in _SOUNDS for word in _words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower().replace("-", "").replace("'", ""))
