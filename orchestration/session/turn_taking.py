"""One person's turns, from the first speech to the endpoint, and the work that begins before the endpoint is sure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from actors.messages import Rank, Result, SttResult, TurnRequest, TurnResult
from orchestration.session.answers import Answers
from orchestration.session.audio_buffer import AudioBuffer, to_ms, to_samples
from orchestration.session.barge_in import FIRST_WORDS, BargeIn, Wish
from orchestration.session.config import ServerVad
from orchestration.session.core import Core
from orchestration.session.echo import is_echo
from orchestration.session.events import (
    InputAudioBufferSpeechStarted,
    InputAudioBufferSpeechStopped,
    InputAudioTranscriptionDelta,
)
from orchestration.session.partials import Partials
from orchestration.session.stable_words import StableWords
from orchestration.session.timeline import TurnRecord
from orchestration.session.transcripts import Hearing
from orchestration.session.turns import endpointing
from orchestration.session.turns.base import AskTurn, Ended, Endpointing, Paused, Resumed, Signal, Started
from orchestration.session.vad_feed import Frame

TURN_WINDOW_MS = 8_000
"""What the turn model hears."""
SEMANTIC_PREFIX_MS = 300
SPEECH_PROBABILITY = 0.5


@dataclass
class Turn:
    """A turn that is being spoken."""

    number: int
    item_id: str
    start: int
    """First sample of its speech."""
    run_start: int
    """First sample of its speech in a row."""
    audio_start: int
    """First sample of its sound: `start` less the padding."""
    record: TurnRecord = field(default_factory=TurnRecord)
    over_answer: bool = False
    """Whether an answer was playing when it began."""
    words: StableWords = field(default_factory=StableWords)
    """What the client was told of it while it was spoken."""
    partials: Partials | None = None
    first_words: Partials | None = None
    """Of speech over an answer: what tells an interruption from a backchannel."""
    doubted: bool = False
    """Whether its words, so far, are no reason to stop the answer."""
    announced: bool = False
    """Whether the client knows of it: speech over an answer first has to prove to be an interruption."""
    paused: bool = False
    end: int = 0
    """Where its speech ended, by the last pause."""
    attempt: int = 0
    hearing: Hearing | None = None
    ended: Ended | None = None
    """The endpoint, while a turn that is not announced waits for its words."""

    def stop_partials(self) -> None:
        """The transcript of all that was said is asked for: it goes first."""
        for each in (self.partials, self.first_words):
            if each is not None:
                each.stop()


class TurnTaking:
    """Follows VAD frames.  `over(turn, hearing, ended, now)` is called for each turn that is complete,
    `dismissed(record, now)` for speech that was none of the client's business."""

    def __init__(
        self,
        core: Core,
        answers: Answers,
        buffer: AudioBuffer,
        over: Callable[[Turn, Hearing, Ended, float], None],
        dismissed: Callable[[TurnRecord, float], None],
    ) -> None:
        self._core = core
        self._answers = answers
        self._buffer = buffer
        self._over = over
        self._dismissed = dismissed
        self._barge_in = BargeIn(core.defaults.pace)
        self._count = 0
        self._questions = 0
        self._held = False
        """Whether the sound is held back."""
        self.turn: Turn | None = None
        self._endpointing = self._strategy()

    def configure(self, now: float) -> None:
        """Turn detection was set."""
        self._endpointing = self._strategy()
        self.forget(now)

    def _strategy(self) -> Endpointing:
        return endpointing(self._core.settings.turn_detection, self._core.defaults.pace)

    def forget(self, now: float) -> None:
        """What was being said was committed or cleared by the client."""
        if self.turn is not None:
            self._drop_attempt(self.turn)
            self.turn = None
        self._hold(False, now)
        self._endpointing.reset()

    def next_number(self) -> int:
        self._count += 1
        return self._count

    @property
    def speaking(self) -> bool:
        """Whether a turn is on that the client knows of."""
        return self.turn is not None and self.turn.announced

    def frame(self, frame: Frame, now: float) -> None:
        for signal in self._endpointing.frame(frame):
            self._signal(signal, frame.end, now)
        turn = self.turn
        if turn is None or turn.paused:
            return
        if frame.probability < SPEECH_PROBABILITY:
            return
        if turn.partials is not None and self._wants_partials(turn):
            turn.partials.look(
                turn.start, frame.end, lambda: self._buffer.read(turn.audio_start, frame.end), now
            )
        if turn.announced:
            return
        if turn.first_words is not None and not self._core.echoes:
            turn.first_words.look(
                turn.run_start, frame.end, lambda: self._buffer.read(turn.audio_start, frame.end), now
            )
        if not self._overlaps(now) or (
            not self._core.echoes and self._barge_in.by_duration(frame.end - turn.run_start, turn.doubted)
        ):
            self._announce(turn, now)

    def _signal(self, signal: Signal, position: int, now: float) -> None:
        match signal:
            case Started(at=at):
                self._start(at, now)
            case Paused(at=at):
                self._pause(at, position, now)
            case Resumed(at=at):
                self._resume(at, now)
            case AskTurn(until=until):
                self._ask_turn(until, now)
            case _:
                self._end(signal, now)

    def _start(self, at: int, now: float) -> None:
        if self.turn is not None:
            self._resume(at, now)
            return
        detection = self._core.settings.turn_detection
        padding_ms = detection.prefix_padding_ms if isinstance(detection, ServerVad) else SEMANTIC_PREFIX_MS
        audio_start = max(self._buffer.start, at - to_samples(padding_ms))
        self.turn = Turn(self.next_number(), self._core.outbox.new_id("item"), at, at, audio_start)
        turn = self.turn
        turn.record.speech_start = now
        if self._core.defaults.partial_share and self._core.defaults.hears == "transcript":
            turn.partials = Partials(
                self._core, f"partial-{turn.number}", lambda result, at: self._partial(turn, result, at)
            )
        turn.over_answer = self._overlaps(now)
        if turn.over_answer:
            if turn.partials is not None:
                turn.first_words = Partials(
                    self._core,
                    f"first-words-{turn.number}",
                    lambda result, at: self._first_words(turn, result, at),
                    FIRST_WORDS,
                )
            self._hold(True, now)
        else:
            self._announce(turn, now)

    def _overlaps(self, now: float) -> bool:
        detection = self._core.settings.turn_detection
        interrupts = detection is not None and detection.interrupt_response
        return interrupts and self._core.playback.playing(now)

    def _hold(self, held: bool, now: float) -> None:
        """Where the server paces the sound: stop it while nobody knows yet whether it is interrupted."""
        core = self._core
        if held == self._held or (held and (core.echoes or not core.defaults.paced_output)):
            return
        self._held = held
        if held:
            core.playback.hold(now)
        else:
            core.playback.release(now)
        core.outbox.hold(held)

    def _wants_partials(self, turn: Turn) -> bool:
        """Whether words are wanted while they are spoken: by the client, or since only they tell speech from echo."""
        settings = self._core.settings
        if not turn.announced:
            return self._core.echoes
        transcription = settings.input.transcription
        live = transcription is not None and transcription.delay is not None
        return live or settings.realtime is None

    def _first_words(self, turn: Turn, result: SttResult, now: float) -> None:
        """What was said over an answer, a moment after it began."""
        wish = Wish.NOTHING
        if result.rejected is None and not is_echo(result.text, self._answers.output.said(now)):
            wish = self._barge_in.by_words(result.text, result.logprob, whole=False)
        turn.doubted = wish is Wish.NOTHING
        if wish is Wish.FLOOR or (wish is Wish.UNCLEAR and self._core.echoes):
            self._announce(turn, now)

    def _partial(self, turn: Turn, result: SttResult, now: float) -> None:
        if not turn.announced:
            self._first_words(turn, result, now)
        elif result.rejected is None and (delta := turn.words.grow(result.text.strip())):
            event = InputAudioTranscriptionDelta(item_id=turn.item_id, content_index=0, delta=delta)
            self._core.outbox.send(event)

    def _announce(self, turn: Turn, now: float) -> None:
        turn.announced = True
        if turn.first_words is not None:
            turn.first_words.stop()
        turn.record.item_id = turn.item_id
        self._core.timeline.add(turn.record)
        started = InputAudioBufferSpeechStarted(audio_start_ms=to_ms(turn.audio_start), item_id=turn.item_id)
        self._core.outbox.send(started)
        detection = self._core.settings.turn_detection
        if detection is not None and detection.interrupt_response:
            self._answers.interrupt(now)
        self._hold(False, now)

    def _pause(self, at: int, position: int, now: float) -> None:
        turn = self.turn
        assert turn is not None, "only a turn can pause"
        turn.paused, turn.end = True, at
        turn.stop_partials()
        turn.record.pause_seen = now
        turn.record.last_speech = now - to_ms(position - at) / 1000
        early = not turn.announced or self._core.defaults.speculation != "off"
        if early and self._core.defaults.hears == "transcript":
            self._hear(turn, position, Rank.SPECULATIVE, now)
        else:
            self._words("", now)

    def _words(self, text: str, now: float) -> None:
        for signal in self._endpointing.said(text):
            self._signal(signal, self._buffer.end, now)

    def _hear(self, turn: Turn, until: int, rank: Rank, now: float) -> Hearing:
        hearing = turn.hearing = self._hearing(turn, until)
        hearing.heard = lambda at: self._heard(turn, hearing, at)
        hearing.start(rank, now)
        return hearing

    def _hearing(self, turn: Turn, until: int) -> Hearing:
        turn.attempt += 1
        pcm = self._buffer.read(turn.audio_start, until)
        hearing = Hearing(self._core, f"turn-{turn.number}.{turn.attempt}", pcm, turn.record)
        hearing.words = turn.words
        if turn.over_answer:
            hearing.said_by_machine = self._answers.output.said
        return hearing

    def _resume(self, at: int, now: float) -> None:
        turn = self.turn
        assert turn is not None, "only a turn can go on"
        turn.run_start, turn.paused = at, False
        turn.ended = None
        self._drop_attempt(turn)
        if not turn.announced and self._overlaps(now):
            self._hold(True, now)

    def _drop_attempt(self, turn: Turn) -> None:
        self._core.outbox.cancel(f"endpoint-{self._questions}")
        turn.stop_partials()
        if turn.hearing is not None:
            turn.hearing.cancel()
            turn.hearing = None
            self._core.timeline.stt.thrown_away += 1
        self._answers.drop_speculation()

    def _heard(self, turn: Turn, hearing: Hearing, now: float) -> None:
        """An early transcript: it may prove an interruption, and the answer may begin."""
        self._weigh(turn, hearing, now)
        if turn.ended is not None:
            self._conclude(turn, hearing, turn.ended, now)
        elif turn.announced and hearing.text:
            detection = self._core.settings.turn_detection
            if detection is not None and detection.create_response:
                self._core.language = hearing.language or self._core.language
                self._answers.speculate(hearing.text, now)
        self._words(hearing.text, now)

    def _weigh(self, turn: Turn, hearing: Hearing, now: float) -> None:
        """Do the words of speech over an answer want the floor?  Any words do once the answer is over."""
        wish = self._barge_in.by_words(hearing.text, hearing.logprob, whole=True)
        lasts = self._core.echoes or self._barge_in.by_duration(turn.end - turn.start)
        wanted = wish is Wish.FLOOR or (wish is Wish.UNCLEAR and lasts)
        if not turn.announced and (wanted or (hearing.text != "" and not self._overlaps(now))):
            self._announce(turn, now)
        self._hold(False, now)

    def _ask_turn(self, until: int, now: float) -> None:
        turn = self.turn
        assert turn is not None, "only a turn can be complete"
        self._questions += 1
        window = max(turn.audio_start, until - to_samples(TURN_WINDOW_MS))
        request = TurnRequest(self._buffer.read(window, until))
        self._core.outbox.submit(request, f"endpoint-{self._questions}", self._judged, now)

    def _judged(self, result: Result, now: float) -> None:
        if isinstance(result, TurnResult):  # otherwise silence decides
            for signal in self._endpointing.judged(result.probability):
                self._signal(signal, self._buffer.end, now)

    def _end(self, ended: Ended, now: float) -> None:
        turn = self.turn
        assert turn is not None, "only a turn can end"
        turn.record.endpoint = now
        hearing = turn.hearing
        if turn.announced or self._core.defaults.hears == "audio":
            self._conclude(turn, hearing, ended, now)
            return
        if hearing is None:
            hearing = self._hear(turn, ended.at, Rank.CONFIRMED, now)
        if hearing.done:
            self._conclude(turn, hearing, ended, now)
        else:
            turn.ended = ended
            hearing.promote(now)

    def _conclude(self, turn: Turn, hearing: Hearing | None, ended: Ended, now: float) -> None:
        if hearing is not None:
            self._weigh(turn, hearing, now)
        if not turn.announced:
            self._dismiss(turn, now)
            return
        self.turn = None
        self._core.outbox.cancel(f"endpoint-{self._questions}")
        if hearing is None:
            hearing = self._hearing(turn, ended.at)
        else:
            self._core.timeline.stt.used += 1
            hearing.promote(now)
        stopped = InputAudioBufferSpeechStopped(audio_end_ms=to_ms(ended.at), item_id=turn.item_id)
        self._core.outbox.send(stopped)
        self._over(turn, hearing, ended, now)

    def _dismiss(self, turn: Turn, now: float) -> None:
        """It was no interruption: the client never hears of it."""
        self._hold(False, now)
        self._drop_attempt(turn)
        self.turn = None
        self._dismissed(turn.record, now)
