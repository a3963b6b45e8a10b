"""The responses of a session: which one is active, what it waits for, what interrupts it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from actors import languages
from actors.messages import Message, TextPart
from orchestration.session.config import RealtimeSession
from orchestration.session.conversation import Entry
from orchestration.session.core import Core
from orchestration.session.errors import ClientError
from orchestration.session.events import ResponseParams
from orchestration.session.history import prompt, tool_rounds
from orchestration.session.output_buffer import OutputBuffer
from orchestration.session.plan import resolve
from orchestration.session.response import Response
from orchestration.session.timeline import TurnRecord
from orchestration.session.transcripts import Transcripts


@dataclass
class _Waiting:
    """A response whose prompt is not complete: transcripts are still to come."""

    response: Response
    entries: list[Entry]


@dataclass(frozen=True)
class _Basis:
    """What a speculative answer was made from; it is of use only while this holds."""

    revision: int
    session: RealtimeSession


class Answers:
    def __init__(self, core: Core, transcripts: Transcripts) -> None:
        self._core = core
        self._transcripts = transcripts
        self.output = OutputBuffer(core)
        self.active: Response | None = None
        """The response that the conversation is waiting for."""
        self._beside: list[Response] = []
        """Responses out of band."""
        self._waiting: list[_Waiting] = []
        self._queued: TurnRecord | None = None
        """A turn to be answered when the active response is done."""
        self._speculative: tuple[Response, _Basis] | None = None
        self.unheard: TurnRecord | None = None
        """A turn whose answer was interrupted before any of it could be heard."""
        self._last: Response | None = None
        """The latest response of the conversation that is done; its sound may still be playing."""
        self.cut: Response | None = None
        """A response whose sound was interrupted, until something else is answered."""
        self.last_done_at: float | None = None
        self.draining = False

    @property
    def busy(self) -> bool:
        return self.active is not None or bool(self._beside)

    def create(self, params: ResponseParams, now: float, record: TurnRecord | None = None) -> Response:
        """A response that the client asked for, or that a turn calls for; raises `ClientError`."""
        session = self._answering_session()
        plan = resolve(session, params, self._core.defaults, self._core.conversation)
        if plan.in_conversation:
            self._check_free()
            self.unheard = None
            self.drop_speculation()
        elif len(self._beside) >= self._core.defaults.limits.responses_beside:
            raise ClientError("too_many_responses", "Too many responses run out of band; wait for one.")
        turn = record or self._core.timeline.unanswered()
        response = Response(self._core, plan, self.output, turn, now, self._finished)
        response.to_a_turn = record is not None
        self._adopt(response)
        entries = self._core.conversation.entries if plan.input is None else plan.input
        self._waiting.append(_Waiting(response, list(entries)))
        for entry in plan.input or []:
            if entry.transcript == "none":
                self._transcripts.transcribe(entry, self.look, now)
        self.look(now)
        return response

    def answer_turn(self, record: TurnRecord, now: float) -> None:
        """The user's turn is over and has words: answer it, with what speculation has prepared."""
        if self.draining or self._core.settings.realtime is None:
            return
        if self.active is not None:
            self._queued = record
            return
        self.unheard = None
        if self._speculative is not None:
            response = self._speculative[0]
            self._speculative = None
            self._core.timeline.answers.used += 1
            record.adopt(response.record)
            response.record, response.to_a_turn = record, True
            self._adopt(response)
            response.release(now)
            return
        self.create(ResponseParams(), now, record)

    def speculate(self, text: str, now: float) -> None:
        """Begin the answer to a turn that may yet go on; nobody hears of it before `answer_turn`."""
        session = self._core.settings.realtime
        if self._core.defaults.speculation not in ("llm", "tts") or session is None:
            return
        if self.active is not None or self.draining or self._core.conversation.pending():
            return
        self.drop_speculation()
        plan = resolve(session, ResponseParams(), self._core.defaults, self._core.conversation)
        response = Response(self._core, plan, self.output, TurnRecord(), now, self._finished, True)
        messages = self._prompt(plan.instructions, self._core.conversation.entries)
        messages.append(Message("user", [TextPart(text)]))
        self._speculative = (response, self._basis(session))
        response.generate(messages, plan.tool_choice, now)

    def check_speculation(self) -> None:
        """Called before a turn's item joins the conversation: drop what was made for another prompt."""
        session = self._core.settings.realtime
        basis = self._speculative[1] if self._speculative is not None else None
        if session is None or basis != self._basis(session):
            self.drop_speculation()

    def drop_speculation(self) -> None:
        if self._speculative is not None:
            self._speculative[0].discard()
            self._speculative = None
            self._core.timeline.answers.thrown_away += 1

    def look(self, now: float) -> None:
        """Start what has all its transcripts; called whenever one has come."""
        for waiting in list(self._waiting):
            if any(entry.transcript == "pending" for entry in waiting.entries):
                continue
            self._waiting.remove(waiting)
            last = waiting.entries[-1] if waiting.entries else None
            if last is not None and last.transcript == "failed":
                waiting.response.fail("stt_failed", last.problem, now)
            else:
                self._generate(waiting, now)

    def awaits(self, entry: Entry) -> bool:
        """Whether the active response waits for this very turn's words: then it is their answer."""
        return any(w.response is self.active and entry in w.entries for w in self._waiting)

    def forget(self, entry: Entry, now: float) -> None:
        """The item was deleted: nothing waits for it."""
        for waiting in self._waiting:
            waiting.entries = [other for other in waiting.entries if other is not entry]
        self.look(now)

    def cancel(self, response_id: str | None, now: float) -> None:
        """`response.cancel`; raises `ClientError` if there is nothing to cancel."""
        candidates = [self.active] if self.active is not None else []
        if response_id is not None:
            candidates = [response for response in [*candidates, *self._beside] if response.id == response_id]
        if not candidates:
            raise ClientError(
                "response_cancel_not_active", "Cancellation failed: no active response found.", "response_id"
            )
        candidates[0].cancel("client_cancelled", now)

    def interrupt(self, now: float) -> None:
        """A person speaks over the answer: it stops, and what was not heard is forgotten."""
        self.drop_speculation()
        self.unheard, self._queued = self._queued or self.unheard, None
        speaking = self.active or self._last
        playing = self._core.playback.playing(now)
        if self.active is not None:
            if self.active.record.first_audio_sent is None and self.active.to_a_turn:
                self.unheard = self.active.record
            self.active.cancel("turn_detected", now)
        self.output.cut(now)
        if playing and speaking is not None:
            self.cut = speaking if speaking.unheard else None

    def go_on(self, record: TurnRecord, now: float) -> None:
        """It was no interruption after all: say the rest of what was cut."""
        cut = self.cut
        if cut is None or not self._core.defaults.resume_answers or self.draining or self.active is not None:
            return
        self.drop_speculation()
        response = Response(self._core, cut.plan, self.output, record, now, self._finished)
        self._adopt(response)
        before = takewhile(lambda entry: entry.id != cut.item_id, self._core.conversation.entries)
        response.go_on(cut, self._prompt(cut.plan.instructions, list(before)), now)

    def _answering_session(self) -> RealtimeSession:
        session = self._core.settings.realtime
        if session is None:
            raise ClientError("invalid_request", "A transcription session does not answer.", "type")
        if self.draining:
            raise ClientError("server_draining", "The server is shutting down: no new responses.")
        return session

    def _check_free(self) -> None:
        if self.active is not None:
            raise ClientError(
                "conversation_already_has_active_response",
                f"The conversation has an active response already: {self.active.id}. "
                "Wait until it is done, or cancel it.",
            )

    def _adopt(self, response: Response) -> None:
        if response.plan.in_conversation:
            self.active, self.cut = response, None
        else:
            self._beside.append(response)

    def _generate(self, waiting: _Waiting, now: float) -> None:
        plan = waiting.response.plan
        choice = plan.tool_choice
        if choice != "none" and tool_rounds(waiting.entries) >= self._core.defaults.limits.tool_rounds:
            choice = "none"
        waiting.response.generate(self._prompt(plan.instructions, waiting.entries), choice, now)

    def _prompt(self, instructions: str, entries: list[Entry]) -> list[Message]:
        defaults = self._core.defaults
        if defaults.names_language and self._core.language is not None:
            instructions = f"{instructions}\n\nReply in {languages.name(self._core.language)}.".lstrip()
        return prompt(instructions, entries, defaults.limits.prompt_characters, defaults.hears == "audio")

    def _basis(self, session: RealtimeSession) -> _Basis:
        return _Basis(self._core.conversation.revision, session)

    def _finished(self, response: Response, now: float) -> None:
        self._waiting = [waiting for waiting in self._waiting if waiting.response is not response]
        if response is not self.active:
            self._beside = [other for other in self._beside if other is not response]
            return
        self.active, self._last = None, response
        self.last_done_at = now
        queued, self._queued = self._queued, None
        if queued is not None:
            self.answer_turn(queued, now)
