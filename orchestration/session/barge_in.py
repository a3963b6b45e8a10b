"""Is it an interruption?  Speech over an answer counts when it lasts, or when its words are no backchannel."""

from __future__ import annotations

import re

from actors.messages import Rank
from orchestration.session.audio_buffer import to_ms
from orchestration.session.config import Pace
from orchestration.session.partials import Rhythm

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
_NODS = (
    "ok",
    "okay",
    "yes",
    "yeah",
    "yea",
    "yep",
    "yup",
    "right",
    "sure",
    "really",
    "wow",
    "i",
    "see",
    "got",
    "it",
)
_BACKCHANNELS = frozenset((*_SOUNDS, *_NODS))


FIRST_WORDS = Rhythm(first_ms=224, step_ms=96, rank=Rank.CONFIRMED, share=1.0)
"""When speech over an answer is looked at: of 224 ms a first word is known, more often than not."""
SURE_LOGPROB = -0.8
"""Mean log probability from which the beginning of what is said is believed: what "mm-hmm" is mistaken for is less
likely."""
UNDERSTOOD_LOGPROB = -1.0
"""The same for all that was said."""
DOUBT = 2
"""How many times longer speech must last whose words, so far, are no reason to stop."""


class BargeIn:
    """Follows speech that began while the machine was speaking: first suspected, then confirmed, or dismissed."""

    def __init__(self, pace: Pace) -> None:
        self._barge_in_ms = pace.barge_in_ms

    def by_duration(self, speech_samples: int, doubted: bool) -> bool:
        """Whether speech of this length, without a pause, interrupts; `doubted`: its words so far would not."""
        return to_ms(speech_samples) >= self._barge_in_ms * (DOUBT if doubted else 1)

    def by_words(self, text: str, logprob: float | None, whole: bool) -> bool:
        """Whether these words, though few, want the floor: all that was said (`whole`), or its beginning.

        `logprob`: mean log probability; None: not known.
        """
        understood = logprob is None or logprob >= (UNDERSTOOD_LOGPROB if whole else SURE_LOGPROB)
        return understood and any(word not in _BACKCHANNELS for word in _words(text))


def is_sound(text: str) -> bool:
    """Whether nothing was said but "mm" and "uh"."""
    return all(word in _SOUNDS for word in _words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower().replace("-", "").replace("'", ""))
