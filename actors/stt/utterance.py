"""An utterance while it is transcribed: the windows it is heard in, and the transcript they add up to."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from actors.batch import Key
from actors.messages import SttRequest, SttResult, Word


@dataclass(slots=True)
class Window:
    """At most 30 s of an utterance."""

    utterance: Utterance
    audio: NDArray[np.float32]
    start_ms: int
    positions: int
    tokens: list[int] = field(default_factory=list)
    logprob: float | None = None
    text: str = ""
    rejected: str | None = None
    decoded: bool = False
    words: list[Word] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Utterance:
    key: Key
    request: SttRequest
    language: str | None
    """None: to be detected."""
    windows: list[Window] = field(default_factory=list)
    left: int = 0

    def so_far(self) -> SttResult:
        """What the windows heard up to the first that is not decoded yet."""
        heard = [
            window.text
            for window in takewhile(lambda each: each.decoded, self.windows)
            if not window.rejected
        ]
        return SttResult(" ".join(heard), final=False, language=self.language)

    def result(self) -> SttResult:
        """The whole transcript: what its windows heard, without those in which nobody spoke."""
        heard = [window for window in self.windows if window.rejected is None]
        rejected = self.windows[0].rejected if self.windows and not heard else None
        words = [word for window in heard for word in window.words]
        logprobs = [window.logprob for window in self.windows if window.logprob is not None]
        return SttResult(
            text=" ".join(window.text for window in heard),
            language=self.language,
            words=words if self.request.word_times and (words or not heard) else None,
            rejected=rejected if self.windows else "no_speech",
            logprob=sum(logprobs) / len(logprobs) if logprobs else None,
        )
