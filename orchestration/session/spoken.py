"""What an answer sounded like, clause by clause, so that it can be cut where listening ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.messages import Word
from orchestration.session.words import word_ends

_MS_PER_CHARACTER = 65
"""Pace of English speech, as long as no clause of an answer is known whole."""
_TOLERANCE_MS = 2
"""Clients and clocks round: a clause heard but for this is heard."""


@dataclass
class SpokenClause:
    text_end: int
    """Where the clause ends in the transcript."""
    spoken: str
    """What TTS was given."""
    samples: int = 0
    rate_hz: int = 0
    words: list[Word] | None = None
    """As far as its sound goes, and it may go on, where TTS tells them."""
    complete: bool = False

    @property
    def ms(self) -> float:
        return self.samples * 1000 / self.rate_hz if self.rate_hz else 0.0

    def expected_ms(self, ms_per_character: float) -> float:
        return self.ms if self.complete else max(self.ms, len(self.spoken) * ms_per_character)

    def words_heard(self, ms: float, ms_per_character: float) -> float:
        """Share of the clause's words that end within its first `ms`."""
        if self.words:
            count = len(self.words) if self.complete else max(len(self.words), len(word_ends(self.spoken)))
            return sum(word.end_ms <= ms for word in self.words) / count
        expected_ms = self.expected_ms(ms_per_character)
        return min(1.0, ms / expected_ms) if expected_ms else 1.0


@dataclass
class Spoken:
    """The sound of one content part, and the text that it says."""

    text: str = ""
    """The whole transcript as written."""
    clauses: list[SpokenClause] = field(default_factory=list)
    pcm: bytearray = field(default_factory=bytearray)
    """int16 at `rate_hz`, all that was sent (until it is forgotten to save memory)."""
    heard_ms: float | None = None
    """How much of it was heard; None: all."""
    truncated_ms: int | None = None
    """Where the client has cut it."""

    @property
    def rate_hz(self) -> int:
        return next((clause.rate_hz for clause in self.clauses if clause.rate_hz), 0)

    @property
    def sent_ms(self) -> float:
        return sum(clause.ms for clause in self.clauses)

    @property
    def ms_per_character(self) -> float:
        """The pace at which it is spoken."""
        known = [clause for clause in self.clauses if clause.complete]
        characters = sum(len(clause.spoken) for clause in known)
        return sum(clause.ms for clause in known) / characters if characters else _MS_PER_CHARACTER

    @property
    def length_ms(self) -> int:
        """The sound that the item has, as far as a client can know."""
        sent = round(self.sent_ms)
        return sent if self.truncated_ms is None else min(sent, self.truncated_ms)

    @property
    def heard(self) -> str:
        """The text that was heard."""
        return self.text if self.heard_ms is None else self.cut(self.heard_ms)

    def cut(self, ms: float) -> str:
        """The text that is over after `ms` of sound, whole words only."""
        begin = 0
        for clause in self.clauses:
            if not clause.complete or ms + _TOLERANCE_MS < clause.ms:
                share = clause.words_heard(ms, self.ms_per_character)
                return self.text[:begin] + _first_words(self.text[begin : clause.text_end], share)
            ms -= clause.ms
            begin = clause.text_end
        return self.text[:begin]

    def truncate(self, ms: int) -> None:
        """The client says that nothing was heard after `ms`."""
        self.heard_ms = self.truncated_ms = ms
        del self.pcm[int(ms * self.rate_hz / 1000) * 2 :]


def _first_words(text: str, share: float) -> str:
    ends = word_ends(text)
    count = int(len(ends) * share + 1e-9)
    return text[: ends[count - 1]] if count else ""
