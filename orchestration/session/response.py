"""One response, from `response.created` to `response.done`: LLM text, clauses, speech, function calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from actors import languages
from actors.messages import Failed, LlmDone, LlmRequest, LlmText, LlmToolCall, Message, Rank, Result
from orchestration.session.clauses import Clause, ClauseOptions, ClauseStream
from orchestration.session.core import Core
from orchestration.session.errors import error_event
from orchestration.session.events import (
    InputTokenDetails,
    OutputTokenDetails,
    RateLimit,
    RateLimitsUpdated,
    ResponseAudio,
    ResponseAudioOutput,
    ResponseCreated,
    ResponseDone,
    ResponseError,
    ResponseState,
    StatusDetails,
    Usage,
)
from orchestration.session.gate import Gate
from orchestration.session.items import FunctionCallItem, Item, ItemStatus, copied
from orchestration.session.output_buffer import OutputBuffer
from orchestration.session.output_items import MessageOutput, call_output
from orchestration.session.plan import Plan
from orchestration.session.spoken import SpokenClause
from orchestration.session.timeline import TurnRecord
from orchestration.session.visible import VisibleText
from orchestration.session.voice import Voice, VoiceStyle

Status = Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]
Reason = Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"]

FIRST_CLAUSE_CHARS = 20
"""Longest first clause: a good second of speech, which a CPU makes in a third of one.  The second may be twice as
long."""
HURRY_S = 0.4
"""How long before the sound runs out a clause is cut for want of punctuation: about what its TTS takes."""


class Response:
    """Ends exactly once; then `finished` is called."""

    def __init__(
        self,
        core: Core,
        plan: Plan,
        output: OutputBuffer,
        record: TurnRecord,
        now: float,
        finished: Callable[[Response, float], None],
        speculative: bool = False,
    ) -> None:
        self.id = core.outbox.new_id("resp")
        self.plan = plan
        self.record = record
        self.status: Status = "in_progress"
        self._core = core
        self._finished = finished
        self._buffer = output
        self._gate = Gate(speculative)
        self._output: list[Item] = []
        self._message: MessageOutput | None = None
        self._visible = VisibleText()
        options = ClauseOptions(first_max_chars=FIRST_CLAUSE_CHARS, language=core.language or "en")
        self._clauses = ClauseStream(options)
        self._llm_done: LlmDone | None = None
        self._output_tokens = 0
        self._delivered_tokens = 0
        """Of the answer, but counted in the usage of the response that it goes on from."""
        self._text_waits = False
        """Whether text came since the clauses were last cut in a hurry."""
        self.to_a_turn = False
        """Whether it answers a spoken turn, unasked."""
        chosen = plan.voice != core.defaults.voice
        voices = {} if chosen else core.defaults.language_voices
        spoken = core.defaults.voice_languages
        language = core.language if spoken is None or core.language in spoken else None
        style = VoiceStyle(plan.tts_voice, language, plan.speed, core.defaults.seed, voices, spoken)
        self._unspoken: set[str] = set()
        """Languages that its voice lacks, of which the client was told."""
        allowance = None
        if speculative:
            allowance = 1 if core.defaults.speculation == "tts" else 0
        self._voice = Voice(core.outbox, self.id, style, self, core.playback.remaining_s, allowance)
        self._gate.do(self._open, now)

    def generate(
        self,
        messages: list[Message],
        tool_choice: str,
        now: float,
        delivered: str = "",
        delivered_tokens: int = 0,
    ) -> None:
        """Ask the LLM, for what comes after `delivered`."""
        self.record.mark("llm_start", now)
        plan = self.plan
        request = LlmRequest(
            messages,
            plan.tools if tool_choice != "none" else [],
            tool_choice,
            plan.max_output_tokens if isinstance(plan.max_output_tokens, int) else None,
            self._core.defaults.temperature,
            self._core.defaults.seed,
            delivered,
            delivered_tokens,
        )
        rank = Rank.SPECULATIVE if self._gate.closed else Rank.CONFIRMED
        self._core.outbox.submit(request, self.id, self._llm, now, rank)

    def release(self, now: float) -> None:
        """The turn is confirmed: what was held back happens, and work for it ranks first."""
        self._core.outbox.promote(self.id, now)
        self._gate.open(now)
        self._voice.allow_all(now)

    def discard(self) -> None:
        """Nobody will hear of this speculative response."""
        self.status = "cancelled"
        self._core.outbox.cancel(self.id)

    def cancel(self, reason: Literal["turn_detected", "client_cancelled"], now: float) -> None:
        self.record.mark("cancelled", now)
        self._voice.record.heard_ms = self._voice.record.sent_ms
        self._finish("cancelled", StatusDetails("cancelled", reason), now)
        if self._message is not None and reason == "turn_detected":
            item_id = self._message.item.id
            self._core.conversation.heard_until(item_id, self._core.playback.heard_ms(item_id, now))

    def fail(self, code: str, message: str, now: float) -> None:
        spoken = self._voice.record
        spoken.heard_ms = spoken.sent_ms
        error = ResponseError("server_error", code, message)
        self._finish("failed", StatusDetails("failed", error=error), now)

    def _open(self, now: float) -> None:
        self.record.response_id = self.id
        self._core.outbox.send(ResponseCreated(response=self._state("in_progress", None)))
        limit = self._core.defaults.limits.requests_per_minute
        self._core.outbox.send(RateLimitsUpdated(rate_limits=[RateLimit("requests", limit, limit, 0.0)]))

    def _llm(self, result: Result, now: float) -> None:
        match result:
            case LlmText(text=text, tokens=tokens):
                self.record.mark("first_token", now)
                self._output_tokens += tokens
                self._take_text(text, now)
            case LlmToolCall(name=name, arguments=arguments):
                self.record.mark("first_token", now)
                self._call(name, arguments, now)
            case LlmDone():
                own_tokens = result.output_tokens - self._delivered_tokens
                self._llm_done = msgspec.structs.replace(result, output_tokens=own_tokens)
                self._write(self._visible.finish(), now)
                self._speak(self._clauses.finish(), now)
                self._voice.end(now)
            case Failed(message=message):
                self.fail("llm_failed", message, now)
            case _:
                self.fail("llm_failed", f"llm: unexpected {type(result).__name__}.", now)

    def _take_text(self, text: str, now: float) -> None:
        self._write(self._visible.feed(text), now)
        self._speak(self._clauses.feed(text), now)
        self._text_waits = True
        self.hurry(now)

    def _write(self, text: str, now: float) -> None:
        if not text:
            return
        if self._message is None:
            self._message = MessageOutput(
                self._core,
                self._gate,
                self.id,
                len(self._output),
                self.plan.modality,
                self.plan.in_conversation,
                self._voice.record,
            )
            self._output.append(self._message.item)
            self._message.open(now)
        self._message.text(text, now)
        self.record.answer += text

    @property
    def unheard(self) -> str:
        """What was written of an answer that was interrupted in the middle, and not heard."""
        calls = len(self._output) > 1
        if self._message is None or calls or not self.plan.in_conversation or self.plan.modality != "audio":
            return ""
        heard = self._voice.record.heard
        return self._message.written[len(heard) :].strip() if heard else ""

    @property
    def item_id(self) -> str:
        """Of its message; empty where it has none."""
        return self._message.item.id if self._message is not None else ""

    def go_on(self, other: Response, messages: list[Message], now: float) -> None:
        """Say what was not heard of `other`; `messages` is what that was an answer to."""
        heard = other._voice.record.heard
        self._take_text(other.unheard, now)
        if other._llm_done is not None:
            self._llm(LlmDone(other._llm_done.finish_reason), now)
        else:
            self._delivered_tokens = other._output_tokens
            self.generate(messages, "none", now, heard + " " + other.unheard, other._output_tokens)

    def hurry_at(self) -> float | None:
        """When the sound runs out while the LLM writes a long clause: then it is cut where it stands."""
        if self._llm_done is not None or not self._text_waits or not self._voice.starved:
            return None
        playback = self._core.playback
        return None if self._gate.closed or playback.held else playback.ends_at - HURRY_S

    def hurry(self, now: float) -> None:
        at = self.hurry_at()
        if at is not None and at <= now:
            self._text_waits = False
            self._speak(self._clauses.hurry(), now)

    def _speak(self, clauses: list[Clause], now: float) -> None:
        if self.plan.modality != "audio":
            return
        for clause in clauses:
            if clause.spoken:
                self.record.mark("first_clause", now)
            self._voice.speak(clause.text, clause.spoken, now)
            if self._voice.started:
                self.record.mark("tts_start", now)

    def _call(self, name: str, arguments: str, now: float) -> None:
        called = any(isinstance(item, FunctionCallItem) for item in self._output)
        if called and not self.plan.parallel_tool_calls:
            return
        index = len(self._output)
        item = call_output(
            self._core, self._gate, self.id, index, name, arguments, self.plan.in_conversation, now
        )
        self._output.append(item)

    def sound(self, clause: SpokenClause, pcm: bytes, rate_hz: int, now: float) -> None:
        message = self._message
        assert message is not None, "a clause has text"
        self.record.mark("first_audio", now)
        message.sound(pcm, rate_hz, now)

        def play(at: float) -> None:
            self.record.mark("first_audio_sent", at)
            self._buffer.play(self.id, message.item.id, len(pcm) / 2 / rate_hz, at)

        self._gate.do(play, now)

    def not_spoken(self, language: str, now: float) -> None:
        if language in self._unspoken:
            return
        self._unspoken.add(language)
        message = (
            f"The voice {self.plan.voice!r} does not speak {languages.name(language)} ({language}): that part of the "
            "answer is only written."
        )
        error = error_event("language_not_spoken", message, kind="server_error")
        self._gate.do(lambda at: self._core.outbox.send(error), now)

    def voice_failed(self, message: str, now: float) -> None:
        self.fail("tts_failed", message, now)

    def spoken(self, now: float) -> None:
        assert self._llm_done is not None, "the voice ends after the LLM"
        match self._llm_done.finish_reason:
            case "length":
                self._finish("incomplete", StatusDetails("incomplete", "max_output_tokens"), now)
            case "content_filter":
                self._finish("incomplete", StatusDetails("incomplete", "content_filter"), now)
            case _:
                self._finish("completed", None, now)

    def _finish(self, status: Status, details: StatusDetails | None, now: float) -> None:
        self.status = status
        self._core.outbox.cancel(self.id)
        if self._message is not None:
            item_status: ItemStatus = "completed" if status == "completed" else "incomplete"
            self._message.close(item_status, now)
        self._gate.do(lambda at: self._end(details, at), now)

    def _end(self, details: StatusDetails | None, now: float) -> None:
        self.record.mark("done", now)
        self.record.status = self.status
        if self._core.playback.playing(now):
            self.record.mark("playback_end", self._core.playback.ends_at)
        self._core.outbox.send(ResponseDone(response=self._state(self.status, details)))
        self._finished(self, now)

    def _state(self, status: Status, details: StatusDetails | None) -> ResponseState:
        plan = self.plan
        ended = status != "in_progress"
        return ResponseState(
            id=self.id,
            status=status,
            status_details=details,
            output=[copied(item) for item in self._output] if ended else [],
            conversation_id=self._core.conversation.id if plan.in_conversation else None,
            output_modalities=[plan.modality],
            max_output_tokens=plan.max_output_tokens,
            audio=ResponseAudio(ResponseAudioOutput(plan.format, plan.voice)),
            usage=self._usage() if ended else None,
            metadata=plan.metadata,
        )

    def _usage(self) -> Usage:
        done = self._llm_done or LlmDone("stop", output_tokens=self._output_tokens)
        inputs = InputTokenDetails(text_tokens=done.input_tokens, cached_tokens=done.cached_tokens)
        outputs = OutputTokenDetails(text_tokens=done.output_tokens)
        return Usage(
            done.input_tokens + done.output_tokens, done.input_tokens, done.output_tokens, inputs, outputs
        )
