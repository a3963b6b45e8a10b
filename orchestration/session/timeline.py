"""The moments of each turn, for figures: seconds on the session's monotonic clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, fields

KEPT_TURNS = 200


@dataclass
class TurnRecord:
    """One user turn and its answer.  A moment is None until it has come."""

    number: int = 0
    item_id: str = ""
    response_id: str = ""
    transcript: str = ""
    language: str | None = None
    answer: str = ""
    status: str = ""
    """How the response ended."""
    audio_ms: int = 0
    """Length of the user's audio."""
    speech_ms: int = 0
    """Speech in it, by VAD."""
    speech_start: float | None = None
    last_speech: float | None = None
    pause_seen: float | None = None
    endpoint: float | None = None
    stt_start: float | None = None
    transcript_done: float | None = None
    llm_start: float | None = None
    first_token: float | None = None
    first_clause: float | None = None
    tts_start: float | None = None
    first_audio: float | None = None
    """The first sound came from TTS."""
    first_audio_sent: float | None = None
    done: float | None = None
    """The whole answer was sent."""
    playback_end: float | None = None
    cancelled: float | None = None

    def mark(self, moment: str, now: float) -> None:
        """Set `moment` if it has not come before."""
        if getattr(self, moment) is None:
            setattr(self, moment, now)

    def adopt(self, other: TurnRecord) -> None:
        """Take over what `other`, the record of early work, knows and this one doesn't."""
        for entry in fields(self):
            if entry.name != "number" and getattr(self, entry.name) in (None, "", 0):
                setattr(self, entry.name, getattr(other, entry.name))


@dataclass
class Speculation:
    """How much early work was of use."""

    used: int = 0
    thrown_away: int = 0

    def __add__(self, other: Speculation) -> Speculation:
        return Speculation(self.used + other.used, self.thrown_away + other.thrown_away)


@dataclass
class Timeline:
    turns: deque[TurnRecord] = field(default_factory=lambda: deque(maxlen=KEPT_TURNS))
    stt: Speculation = field(default_factory=Speculation)
    answers: Speculation = field(default_factory=Speculation)
    _count: int = 0

    @property
    def speculation(self) -> dict[str, Speculation]:
        """What became of early work: transcripts, and answers."""
        return {"stt": self.stt, "answers": self.answers}

    def unanswered(self) -> TurnRecord:
        """The record of the last turn, or a new one if that has its answer."""
        return self.turns[-1] if self.turns and not self.turns[-1].response_id else self.begin()

    def begin(self) -> TurnRecord:
        record = TurnRecord()
        self.add(record)
        return record

    def add(self, record: TurnRecord) -> None:
        self._count += 1
        record.number = self._count
        self.turns.append(record)
