"""Speaks the clauses of one answer: TTS requests by due time, their sound in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from actors.messages import Failed, Rank, Result, TtsAudio, TtsDone, TtsRequest
from orchestration.session.outbox import Outbox
from orchestration.session.spoken import Spoken, SpokenClause
from orchestration.session.text_language import TextLanguage

DELTA_MS = 400
"""Longest piece of sound in one event: 19 KB at 24 kHz, 26 KB as base64."""


class Listener(Protocol):
    """What an answer does with its sound."""

    def sound(self, clause: SpokenClause, pcm: bytes, rate_hz: int, now: float) -> None:
        """The next piece of sound."""

    def spoken(self, now: float) -> None:
        """All clauses are spoken."""

    def not_spoken(self, language: str, now: float) -> None:
        """A clause stays silent: the voice lacks its language."""

    def voice_failed(self, message: str, now: float) -> None:
        """A clause could not be spoken."""


@dataclass(frozen=True, slots=True)
class VoiceStyle:
    voice: str | None
    language: str | None
    """What is expected to be said; each clause's own language goes first where it shows."""
    speed: float
    seed: int
    language_voices: Mapping[str, str] = field(default_factory=dict)
    """Instead of `voice`, by language."""
    languages: tuple[str, ...] | None = None
    """What can be spoken; None: not known."""


@dataclass
class _Job:
    clause: SpokenClause
    language: str | None
    waiting: list[TtsAudio] = field(default_factory=list)
    """Sound that came before its turn."""
    submitted: bool = False
    samples: int = 0
    done: TtsDone | None = None


class Voice:
    """One answer's voice.  `allowance` bounds how many clauses are asked for while the answer is speculative."""

    def __init__(
        self,
        outbox: Outbox,
        generation: str,
        style: VoiceStyle,
        listener: Listener,
        remaining_s: Callable[[float], float],
        allowance: int | None,
    ) -> None:
        self._outbox = outbox
        self._generation = generation
        self._style = style
        self._listener = listener
        self._remaining_s = remaining_s
        self._allowance = allowance
        self._jobs: list[_Job] = []
        self._ended = False
        self._language = TextLanguage(style.language)
        self.started = False
        """Whether TTS was asked for anything."""
        self.record = Spoken()

    @property
    def starved(self) -> bool:
        """Whether all that it was given is spoken, and there may be more."""
        return self.started and not self._jobs and not self._ended

    def speak(self, text: str, spoken: str, now: float) -> None:
        """Add a clause; `spoken` empty: there is nothing to say for its text."""
        self.record.text += text
        language = self._language.of(spoken)
        if not self._speaks(language):
            assert language is not None
            self._listener.not_spoken(language, now)
            spoken = ""
        clause = SpokenClause(len(self.record.text), spoken)
        self.record.clauses.append(clause)
        if not spoken:
            clause.complete = True
            return
        self._jobs.append(_Job(clause, language))
        self._ask(now)

    def _speaks(self, language: str | None) -> bool:
        return language is None or self._style.languages is None or language in self._style.languages

    def end(self, now: float) -> None:
        """There are no more clauses."""
        self._ended = True
        self._pump(now)

    def allow_all(self, now: float) -> None:
        self._allowance = None
        self._ask(now)

    def _ask(self, now: float) -> None:
        rank = Rank.CONFIRMED if self._allowance is None else Rank.SPECULATIVE
        due_in_s = self._remaining_s(now)
        for job in self._jobs:
            if not job.submitted:
                if self._allowance is not None:
                    if self._allowance == 0:
                        return
                    self._allowance -= 1
                job.submitted = self.started = True
                self._submit(job, now, rank, due_in_s)
            if job.done is None:
                due_in_s += job.clause.expected_ms(self.record.ms_per_character) / 1000

    def _submit(self, job: _Job, now: float, rank: Rank, due_in_s: float) -> None:
        style = self._style
        voice = style.language_voices.get(job.language or "", style.voice)
        request = TtsRequest(job.clause.spoken, voice, job.language, style.speed, style.seed)
        self._outbox.submit(
            request, self._generation, lambda result, at: self._result(job, result, at), now, rank, due_in_s
        )

    def _result(self, job: _Job, result: Result, now: float) -> None:
        match result:
            case TtsAudio():
                job.waiting.append(result)
                job.samples += len(result.pcm) // 2
            case TtsDone() if job.samples:
                job.done = result
            case TtsDone():
                self._listener.voice_failed(
                    f"tts: no sound came for {len(job.clause.spoken)} characters.", now
                )
                return
            case Failed(message=message):
                self._listener.voice_failed(message, now)
                return
            case _:
                self._listener.voice_failed(f"tts: unexpected {type(result).__name__}.", now)
                return
        self._pump(now)

    def _pump(self, now: float) -> None:
        """Pass on the sound of the first clause that is not done, and of those behind it when it is."""
        while self._jobs:
            job = self._jobs[0]
            for piece in job.waiting:
                self._play(job.clause, piece, now)
            job.waiting.clear()
            if job.done is None:
                return
            job.clause.complete = True
            del self._jobs[0]
        if self._ended:
            self._listener.spoken(now)

    def _play(self, clause: SpokenClause, piece: TtsAudio, now: float) -> None:
        clause.words = piece.words or clause.words
        step = piece.rate_hz * DELTA_MS // 1000 * 2
        for at in range(0, len(piece.pcm), step):
            pcm = piece.pcm[at : at + step]
            clause.rate_hz = piece.rate_hz
            clause.samples += len(pcm) // 2
            self.record.pcm += pcm
            self._listener.sound(clause, pcm, piece.rate_hz, now)
