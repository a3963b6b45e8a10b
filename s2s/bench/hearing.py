"""Hears an answer back: is every clause there, once, and do the words agree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors import batch
from actors.messages import STT_RATE_HZ, SttRequest, SttResult, Word
from orchestration.session.clauses import ClauseStream
from s2s.audio import Pcm16, Resampler

LISTENER = "whisper-base"
"""The asset that listens: not the system's own STT, whose mistakes would repeat."""
SHORTEST_CLAUSE_WORDS = 3
"""A shorter clause counts with the next one: one misheard word is no missing clause."""
MISSING_SHARE = 0.5
DOUBLED_SHARE = 0.6


@dataclass(frozen=True)
class Heard:
    """What became of a text that was spoken."""

    text: str
    wer: float
    """Word errors per word said."""
    missing: tuple[str, ...] = ()
    """Clauses of which half the words or more were not heard."""
    doubled: tuple[str, ...] = ()
    """Clauses that were heard once more."""


class Ear:
    """A speech recogniser in this process."""

    def __init__(self) -> None:
        """Load it, for one thread: a replacement may be loading beside it.  Raises `AssetError`."""
        from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

        from actors.stt.whisper import Whisper, WhisperOptions

        self._whisper = Whisper(WhisperOptions(model_name=LISTENER, encoder_window="full"))
        self._whisper.load("cpu", "auto", threads=1)
        self._normalize = EnglishTextNormalizer({})

    def transcribe(self, pcm: Pcm16, rate_hz: int) -> str:
        """The words in int16 `pcm`."""
        return self._hear(pcm, rate_hz, word_times=False).text

    def word_times(self, pcm: Pcm16, rate_hz: int) -> list[Word]:
        """The words in int16 `pcm`, and when each is said."""
        return self._hear(pcm, rate_hz, word_times=True).words or []

    def _hear(self, pcm: Pcm16, rate_hz: int, word_times: bool) -> SttResult:
        sound = Resampler(rate_hz, STT_RATE_HZ).feed(pcm, last=True)
        request = SttRequest(sound.tobytes(), language="en", word_times=word_times)
        (results,) = batch.run(self._whisper.transcribe, [request])
        result = results[-1]
        assert isinstance(result, SttResult), result
        return result

    def check(self, answer: str, pcm: Pcm16, rate_hz: int) -> Heard:
        """Compare what is heard in `pcm` with the text of the answer."""
        heard = self.transcribe(pcm, rate_hz)
        clauses = [self.words(clause) for clause in spoken_clauses(answer)]
        return compare(clauses, self.words(heard), heard)

    def words(self, text: str) -> list[str]:
        """Its words as they are compared: lower case, without marks, numbers in one spelling."""
        words: Any = self._normalize(text)
        return str(words).split()


def spoken_clauses(answer: str) -> list[str]:
    """The clauses in which `answer` is spoken."""
    stream = ClauseStream()
    return [clause.spoken for clause in [*stream.feed(answer), *stream.finish()] if clause.spoken]


def compare(clauses: Sequence[Sequence[str]], heard: Sequence[str], text: str = "") -> Heard:
    """Compare the words of the spoken `clauses`, in order, with the words that were `heard`."""
    clauses = _joined(clauses)
    said = [word for clause in clauses for word in clause]
    pairs = align(said, heard)
    errors = sum(mine is None or other is None or said[mine] != heard[other] for mine, other in pairs)
    lost = {mine for mine, other in pairs if other is None}
    missing, start = [], 0
    for clause in clauses:
        if sum(at in lost for at in range(start, start + len(clause))) >= MISSING_SHARE * len(clause):
            missing.append(" ".join(clause))
        start += len(clause)
    extra = [Counter(heard[at] for at in run) for run in _insertions(pairs)]
    doubled = [" ".join(clause) for clause in clauses if any(_covers(more, clause) for more in extra)]
    return Heard(text, errors / max(1, len(said)), tuple(missing), tuple(doubled))


def _joined(clauses: Sequence[Sequence[str]]) -> list[list[str]]:
    """Clauses of at least `SHORTEST_CLAUSE_WORDS`."""
    joined: list[list[str]] = []
    for clause in clauses:
        if joined and min(len(joined[-1]), len(clause)) < SHORTEST_CLAUSE_WORDS:
            joined[-1].extend(clause)
        elif clause:
            joined.append(list(clause))
    return joined


def _covers(extra: Counter[str], clause: Sequence[str]) -> bool:
    """Whether inserted words say `clause`; in any order, as the first copy may be the one that was aligned."""
    return (extra & Counter(clause)).total() >= DOUBLED_SHARE * len(clause)


def _insertions(pairs: Sequence[tuple[int | None, int | None]]) -> list[list[int]]:
    """Runs of heard words that nobody said."""
    runs: list[list[int]] = [[]]
    for mine, other in pairs:
        if mine is None and other is not None:
            runs[-1].append(other)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def align(said: Sequence[str], heard: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """The pairs of positions of a shortest edit; None where one of the two has no word there."""
    rows, columns = len(said) + 1, len(heard) + 1
    cost = [
        [max(row, column) if 0 in (row, column) else 0 for column in range(columns)] for row in range(rows)
    ]
    for row in range(1, rows):
        for column in range(1, columns):
            cost[row][column] = min(
                cost[row - 1][column - 1] + (said[row - 1] != heard[column - 1]),
                cost[row - 1][column] + 1,
                cost[row][column - 1] + 1,
            )
    pairs: list[tuple[int | None, int | None]] = []
    row, column = rows - 1, columns - 1
    while row or column:
        here = cost[row][column]
        if row and column and here == cost[row - 1][column - 1] + (said[row - 1] != heard[column - 1]):
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif row and here == cost[row - 1][column] + 1:
            row -= 1
            pairs.append((row, None))
        else:
            column -= 1
            pairs.append((None, column))
    return pairs[::-1]
