"""Is it an interruption?  Speech over an answer counts when its words ask for the floor, or when it lasts."""

from __future__ import annotations

import re
from enum import Enum, auto

from actors.messages import Rank
from orchestration.session.audio_buffer import to_ms
from orchestration.session.config import Pace
from orchestration.session.partials import Rhythm

_SOUNDS = frozenset((
    "mm", "mmm", "mhm", "hm", "hmm", "mmhmm", "mhmm", "uhhuh", "uh", "huh", "um", "ah", "oh", "ha",
    "haha",
))  # fmt: skip
_NODS = frozenset((
    "ok", "okay", "yes", "yeah", "yea", "yep", "yup", "right", "sure", "really", "wow", "i", "see",
    "got", "it",
))  # fmt: skip
_BACKCHANNELS = _SOUNDS | _NODS
_FLOOR = frozenset((
    "stop", "wait", "no", "hold", "hang", "hey", "but", "enough", "quiet", "listen", "pause",
    "cancel", "never", "actually", "sorry", "excuse", "please", "let", "tell", "say", "repeat",
    "what", "whats", "why", "who", "whos", "when", "where", "wheres", "how", "can", "could",
    "would", "will", "do", "does", "did", "dont", "is", "are",
))  # fmt: skip
"""Words with which people take the floor: they stop, object, ask."""


FIRST_WORDS = Rhythm(first_ms=224, step_ms=96, rank=Rank.CONFIRMED, share=1.0)
"""When speech over an answer is looked at: of 224 ms a first word is known, more often than not."""
SURE_LOGPROB = -0.8
"""Mean log probability from which the beginning of what is said is believed: what "mm-hmm" is mistaken for is less
likely."""
UNDERSTOOD_LOGPROB = -1.0
"""The same for all that was said."""
DOUBT = 2
"""How many times longer speech must last whose words, so far, are no reason to stop."""


class Wish(Enum):
    """What the words of speech over an answer want."""

    NOTHING = auto()
    """They are a backchannel, or were not understood."""
    UNCLEAR = auto()
    """They may be what a backchannel was mistaken for: an interruption, where they last."""
    FLOOR = auto()


class BargeIn:
    """Follows speech that began while the machine was speaking: first suspected, then confirmed, or dismissed."""

    def __init__(self, pace: Pace) -> None:
        self._barge_in_ms = pace.barge_in_ms

    def by_duration(self, speech_samples: int, doubted: bool = False) -> bool:
        """Whether speech of this length, without a pause, interrupts; `doubted`: its words so far want nothing."""
        return to_ms(speech_samples) >= self._barge_in_ms * (DOUBT if doubted else 1)

    def by_words(self, text: str, logprob: float | None, whole: bool) -> Wish:
        """What these words, though few, want: all that was said (`whole`), or its beginning.

        `logprob`: mean log probability; None: not known.
        """
        words = _words(text)
        likely = logprob is None or logprob >= (UNDERSTOOD_LOGPROB if whole else SURE_LOGPROB)
        if not likely or all(word in _BACKCHANNELS for word in words):
            return Wish.NOTHING
        return Wish.UNCLEAR if _FLOOR.isdisjoint(words) else Wish.FLOOR


def is_sound(text: str) -> bool:
    """Whether nothing was said but "mm" and "uh"."""
    return all(word in _SOUNDS for word in _words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower().replace("-", "").replace("'", "").replace("’", ""))
