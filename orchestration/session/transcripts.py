"""Transcripts of user speech: one STT request a stretch of sound, its events where the session asks for them."""

from __future__ import annotations

from collections.abc import Callable

from actors.messages import STT_RATE_HZ, Failed, Rank, Result, SttRequest, SttResult
from orchestration.session.conversation import Entry
from orchestration.session.core import Core
from orchestration.session.echo import is_echo
from orchestration.session.events import (
    InputAudioTranscriptionCompleted,
    InputAudioTranscriptionDelta,
    InputAudioTranscriptionFailed,
    TranscriptionError,
    TranscriptionUsage,
)
from orchestration.session.items import InputAudio, MessageItem
from orchestration.session.stable_words import StableWords
from orchestration.session.timeline import TurnRecord


class Hearing:
    """The transcription of one stretch of user speech."""

    def __init__(self, core: Core, generation: str, pcm: bytes, record: TurnRecord) -> None:
        self.generation = generation
        self.result: SttResult | None = None
        self.problem: str | None = None
        self.started = False
        self.heard: Callable[[float], None] = lambda now: None
        """Called when the transcript is there, or cannot be had."""
        self.words = StableWords()
        """What the client was told of it so far."""
        self.said_by_machine: Callable[[float], str] | None = None
        """Where it was spoken over an answer: what has come out of the speaker."""
        self._core = core
        self._pcm = pcm
        self.record = record

    @property
    def done(self) -> bool:
        return self.result is not None or self.problem is not None

    @property
    def text(self) -> str:
        """What was said; empty while unknown, and where nothing was."""
        if self.result is None or self.result.rejected is not None:
            return ""
        return self.result.text.strip()

    @property
    def logprob(self) -> float | None:
        """Mean log probability of the words, where STT says so."""
        return self.result.logprob if self.result is not None else None

    @property
    def language(self) -> str | None:
        """What was spoken, where STT says so."""
        return self.result.language if self.result is not None else None

    def start(self, rank: Rank, now: float) -> None:
        transcription = self._core.settings.input.transcription
        language = transcription.language if transcription is not None else None
        prompt = transcription.prompt if transcription is not None else None
        request = SttRequest(self._pcm, language or self._core.defaults.language, prompt)
        self.started = True
        self.record.stt_start = now
        self._core.outbox.submit(request, self.generation, self._result, now, rank)

    def know_silence(self, now: float) -> None:
        """VAD heard no speech in it: nothing need be asked."""
        self.result = SttResult("", rejected="no_speech")
        self.heard(now)

    def promote(self, now: float) -> None:
        self._core.outbox.promote(self.generation, now)

    def cancel(self) -> None:
        self._core.outbox.cancel(self.generation)

    def _result(self, result: Result, now: float) -> None:
        match result:
            case SttResult(final=True):
                self.result = self._unless_echo(result, now)
            case SttResult():
                return
            case Failed(message=message):
                self.problem = message
            case _:
                self.problem = f"stt: unexpected {type(result).__name__}."
        self.record.transcript_done = now
        self.heard(now)

    def _unless_echo(self, result: SttResult, now: float) -> SttResult:
        """`result`, without its words where the machine has heard itself."""
        if self.said_by_machine is None or not is_echo(result.text, self.said_by_machine(now)):
            return result
        self._core.echoes = True
        return SttResult("", rejected="echo")


class Transcripts:
    """Items that wait for their transcript."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._written = 0
        self._hearings: dict[int, tuple[Entry, Hearing]] = {}

    def follow(
        self, entry: Entry, hearing: Hearing, record: TurnRecord, settled: Callable[[float], None], now: float
    ) -> None:
        """Write what `hearing` brings, now or later, into `entry`, and then call `settled`."""
        if self._core.defaults.hears == "transcript":
            entry.transcript = "pending"
        self._hearings[id(entry)] = entry, hearing

        def heard(at: float) -> None:
            del self._hearings[id(entry)]
            self._settle(entry, hearing, record)
            settled(at)

        hearing.heard = heard
        if hearing.done:
            heard(now)

    def transcribe(self, entry: Entry, settled: Callable[[float], None], now: float) -> None:
        """Transcribe the sound of an item that the client wrote, unless it came with its transcript."""
        known = any(part.transcript for part in _spoken_parts(entry))
        if not entry.pcm or known or self._core.defaults.hears == "audio":
            return
        self._written += 1
        hearing = Hearing(self._core, f"written-{self._written}", entry.pcm, TurnRecord())
        self.follow(entry, hearing, hearing.record, settled, now)
        hearing.start(Rank.CONFIRMED, now)

    def forget(self, entry: Entry) -> None:
        """The item was deleted, or is not needed any more."""
        if id(entry) in self._hearings:
            _, hearing = self._hearings.pop(id(entry))
            hearing.heard = lambda now: None
            hearing.cancel()

    def _settle(self, entry: Entry, hearing: Hearing, record: TurnRecord) -> None:
        outbox = self._core.outbox
        told = self._core.settings.transcribes and self._core.conversation.find(entry.id) is entry
        if hearing.problem is not None:
            entry.transcript, entry.problem = "failed", hearing.problem
            if told:
                error = TranscriptionError("server_error", "transcription_failed", hearing.problem)
                outbox.send(InputAudioTranscriptionFailed(item_id=entry.id, content_index=0, error=error))
            return
        text = record.transcript = hearing.text
        entry.transcript = "words" if text else "empty"
        if text and hearing.language:
            self._core.language = record.language = hearing.language
        for part in _spoken_parts(entry):
            part.transcript = text
        self._core.conversation.changed()
        if not told:
            return
        rest = hearing.words.finish(text)
        if rest:
            outbox.send(InputAudioTranscriptionDelta(item_id=entry.id, content_index=0, delta=rest))
        told_text = hearing.words.told
        usage = TranscriptionUsage(len(entry.pcm) / 2 / STT_RATE_HZ)
        outbox.send(
            InputAudioTranscriptionCompleted(
                item_id=entry.id, content_index=0, transcript=told_text, usage=usage
            )
        )


def _spoken_parts(entry: Entry) -> list[InputAudio]:
    parts = entry.item.content if isinstance(entry.item, MessageItem) else []
    return [part for part in parts if isinstance(part, InputAudio)]
