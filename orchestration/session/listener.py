"""The input side of a session: sound in, committed user items out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from actors.messages import VAD_FRAME_SAMPLES, Rank
from orchestration.session.answers import Answers
from orchestration.session.audio_buffer import AudioBuffer, to_ms, to_samples
from orchestration.session.barge_in import is_sound
from orchestration.session.conversation import Entry
from orchestration.session.core import Core
from orchestration.session.errors import ClientError, error_event
from orchestration.session.events import (
    ConversationItemAdded,
    ConversationItemDone,
    InputAudioBufferCleared,
    InputAudioBufferCommitted,
    InputAudioBufferTimeoutTriggered,
)
from orchestration.session.items import InputAudio, MessageItem, copied
from orchestration.session.stable_words import StableWords
from orchestration.session.timeline import TurnRecord
from orchestration.session.transcripts import Hearing, Transcripts
from orchestration.session.turn_taking import SPEECH_PROBABILITY, Turn, TurnTaking
from orchestration.session.turns.base import Ended
from orchestration.session.vad_feed import Frame, VadFeed

SHORTEST_COMMIT_MS = 100
KEPT_SILENCE_MS = 30_000
"""Sound kept while nobody speaks, for a client that commits by itself although turns are detected."""


@dataclass
class _Commit:
    """A client's commit that waits until VAD has heard all of it: without speech STT is not asked, as it would
    invent words."""

    entry: Entry
    hearing: Hearing
    record: TurnRecord
    start: int
    end: int


class Listener:
    """The input buffer and the turns in it.

    An item whose sound proves to hold no words stays where it is with an empty transcript: the client has been told of
    it.  It is not answered, and no prompt has it.
    """

    def __init__(self, core: Core, answers: Answers, transcripts: Transcripts) -> None:
        self._core = core
        self._answers = answers
        self._buffer = AudioBuffer()
        self._vad = VadFeed(core.outbox, self._scored, self._vad_failed)
        self._turns = TurnTaking(core, answers, self._buffer, self._turn_over, self._answer_owed)
        self._transcripts = transcripts
        self._ignore_before = 0
        """Frames before this sample were committed or cleared by the client."""
        self._speech: deque[int] = deque()
        """Starts of the frames with speech that are in the buffer or in a commit that waits."""
        self._commits: list[_Commit] = []
        self._owed: tuple[Entry, TurnRecord] | None = None
        """A turn whose answer was put off because the person went on speaking."""

    @property
    def speaking(self) -> bool:
        return self._turns.speaking

    @property
    def turn_on(self) -> bool:
        """Whether somebody speaks, or may be speaking."""
        return self._turns.turn is not None

    def configure(self, now: float) -> None:
        self._turns.configure(now)

    def append(self, pcm: bytes, now: float) -> None:
        seconds = self._core.defaults.limits.buffered_audio_s
        if to_ms(self._buffer.end - self._buffer.start + len(pcm) // 2) > seconds * 1000:
            raise ClientError(
                "input_audio_buffer_full", f"The buffer holds {seconds:g} s; commit or clear it.", "audio"
            )
        self._buffer.append(pcm)
        self._vad.append(pcm, now)

    def clear(self, now: float) -> None:
        self._empty_buffer(now)
        self._core.outbox.send(InputAudioBufferCleared())

    def commit(self, now: float) -> None:
        """The client's commit: all that is in the buffer is a turn."""
        start, end = self._buffer.start, self._buffer.end
        if to_ms(end - start) < SHORTEST_COMMIT_MS:
            raise ClientError(
                "input_audio_buffer_commit_empty",
                f"Error committing input audio buffer: the buffer has {to_ms(end - start)} ms of audio, "
                f"expected at least {SHORTEST_COMMIT_MS} ms.",
            )
        self._core.conversation.check_room()
        turn = self._turns.turn
        words = StableWords()
        if turn is not None and turn.announced:
            item_id, record, words = turn.item_id, turn.record, turn.words
        else:
            item_id, record = self._core.outbox.new_id("item"), self._core.timeline.begin()
        pcm = self._buffer.read(start, end)
        entry = self._add_item(item_id, record, pcm)
        self._empty_buffer(now)
        record.endpoint = now
        if not self._wants_transcript():
            return
        hearing = Hearing(self._core, f"turn-{self._turns.next_number()}.1", pcm, record)
        hearing.words = words
        self._transcripts.follow(entry, hearing, record, self._answers.look, now)
        self._commits.append(_Commit(entry, hearing, record, start, end))
        self._check_commits(now)

    def idle(self, now: float) -> None:
        """Nobody has spoken for `idle_timeout_ms` after an answer: the machine speaks first."""
        start, end = self._buffer.start, self._buffer.end
        item_id = self._core.outbox.new_id("item")
        timeout = InputAudioBufferTimeoutTriggered(
            audio_start_ms=to_ms(start), audio_end_ms=to_ms(end), item_id=item_id
        )
        self._core.outbox.send(timeout)
        record = self._core.timeline.begin()
        entry = self._add_item(item_id, record, self._buffer.read(start, end))
        entry.transcript = "empty"
        self._empty_buffer(now)
        self._answers.last_done_at = None
        self._answers.answer_turn(record, now)

    def deleted(self, entry: Entry, now: float) -> None:
        """The client deleted an item."""
        self._commits = [commit for commit in self._commits if commit.entry is not entry]
        self._transcripts.forget(entry)
        self._answers.forget(entry, now)

    def _scored(self, frames: list[Frame], now: float) -> None:
        self._speech.extend(frame.start for frame in frames if frame.probability >= SPEECH_PROBABILITY)
        self._check_commits(now)
        for frame in frames:
            if frame.start >= self._ignore_before:
                self._turns.frame(frame, now)
        automatic = self._core.settings.turn_detection is not None
        if automatic and not self.turn_on:
            self._buffer.drop_before(self._vad.position - to_samples(KEPT_SILENCE_MS))
        oldest = min([commit.start for commit in self._commits], default=self._buffer.start)
        while self._speech and self._speech[0] < oldest:
            self._speech.popleft()

    def _vad_failed(self, frames: list[Frame], message: str, now: float) -> None:
        self._speech.extend(frame.start for frame in frames)  # who knows: then STT has to say
        self._core.outbox.send(error_event("vad_failed", message, kind="server_error"))

    def _check_commits(self, now: float) -> None:
        for commit in list(self._commits):
            if self._vad.position + VAD_FRAME_SAMPLES <= commit.end:
                return
            self._commits.remove(commit)
            frames = sum(commit.start <= start < commit.end for start in self._speech)
            commit.record.speech_ms = to_ms(frames * VAD_FRAME_SAMPLES)
            if commit.record.speech_ms < self._core.defaults.pace.start_ms:
                commit.hearing.know_silence(now)
            else:
                commit.hearing.start(Rank.CONFIRMED, now)

    def _turn_over(self, turn: Turn, hearing: Hearing, ended: Ended, now: float) -> None:
        self._answers.check_speculation()
        pcm = self._buffer.read(turn.audio_start, ended.at)
        turn.record.speech_ms = to_ms(ended.speech_end - turn.start)
        entry = self._add_item(turn.item_id, turn.record, pcm)
        self._buffer.drop_before(ended.at)
        if self._core.defaults.hears == "audio":
            self._answer(entry, turn.record, now)
        if not self._wants_transcript():
            return
        if not hearing.started:
            hearing.start(Rank.CONFIRMED, now)
        self._transcripts.follow(
            entry, hearing, turn.record, lambda at: self._settled(entry, turn.record, at), now
        )

    def _wants_transcript(self) -> bool:
        return self._core.defaults.hears == "transcript" or self._core.settings.transcribes

    def _settled(self, entry: Entry, record: TurnRecord, now: float) -> None:
        if self._core.defaults.hears == "audio":
            return
        if entry.transcript == "empty":
            self._answers.drop_speculation()
            self._answer_owed(record, now)
        elif self._answers.cut is not None and is_sound(record.transcript):
            self._answer_owed(record, now)
        else:
            self._answer(entry, record, now)
        self._answers.look(now)

    def _answer(self, entry: Entry, record: TurnRecord, now: float) -> None:
        detection = self._core.settings.turn_detection
        if detection is None or not detection.create_response:
            return
        if self.speaking and detection.interrupt_response:
            self._owed = entry, record
            return
        self._owed = None
        if not self._answers.awaits(entry):
            self._answers.answer_turn(record, now)

    def _answer_owed(self, record: TurnRecord, now: float) -> None:
        """Somebody made a sound, but said nothing: answer what was said before, if that has no answer yet; or say the
        rest of an answer that was cut."""
        detection = self._core.settings.turn_detection
        if self._owed is not None:
            self._answer(*self._owed, now)
        elif self._answers.unheard is not None and not self.speaking:
            self._answers.answer_turn(self._answers.unheard, now)
        elif detection is not None and detection.create_response and not self.speaking:
            self._answers.go_on(record, now)

    def _add_item(self, item_id: str, record: TurnRecord, pcm: bytes) -> Entry:
        conversation, outbox = self._core.conversation, self._core.outbox
        item = MessageItem("user", [InputAudio()], item_id)
        entry = Entry(item, pcm)
        record.item_id, record.audio_ms = item_id, to_ms(len(pcm) // 2)
        previous = conversation.last_id
        outbox.send(InputAudioBufferCommitted(previous_item_id=previous, item_id=item_id))
        conversation.add(entry)
        outbox.send(ConversationItemAdded(previous_item_id=previous, item=copied(item)))
        outbox.send(ConversationItemDone(previous_item_id=previous, item=copied(item)))
        return entry

    def _empty_buffer(self, now: float) -> None:
        self._turns.forget(now)
        self._ignore_before = self._buffer.end
        self._buffer.drop_before(self._buffer.end)
