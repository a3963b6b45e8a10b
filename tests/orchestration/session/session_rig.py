"""A scripted driver: fake stages that answer when they are told to, and a clock that moves only when told to."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from actors.messages import (
    VAD_FRAME_SAMPLES,
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    Request,
    Result,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsDone,
    TtsRequest,
    TurnResult,
    VadRequest,
    VadResult,
    is_final,
)
from orchestration.session import events as ev
from orchestration.session.config import SessionDefaults
from orchestration.session.effects import Cancel, Close, Effect, Hold, Promote, Send, Submit
from orchestration.session.session import Session

TTS_RATE_HZ = 1000
MS_PER_CHARACTER = 50
STT_SAMPLES_PER_MS = 16

Event = TypeVar("Event")


def sound(ms: int, speech: bool = True) -> bytes:
    """int16 at 16 kHz that the fake VAD takes for speech, or for silence."""
    return (b"\x01\x10" if speech else b"\x00\x00") * (ms * STT_SAMPLES_PER_MS)


class Rig:
    """One session and its fake stages.  A stage in `auto` answers at once; for others, `answer` does it."""

    def __init__(
        self,
        defaults: SessionDefaults | None = None,
        auto: tuple[str, ...] = ("vad", "turn", "stt", "llm", "tts"),
        start: bool = True,
        first_words: bool = False,
    ) -> None:
        self.now = 100.0
        self.session = Session("sess_test", defaults or SessionDefaults(speculation="off"), self.now)
        self.first_words = first_words
        """Whether STT is quick enough to tell the first words of speech over an answer."""
        self.auto = set(auto)
        self.events: list[Any] = []
        self.effects: list[Effect] = []
        self.requests: list[Submit] = []
        self.open: dict[int, Submit] = {}
        self.cancelled: list[str] = []
        self.promoted: list[str] = []
        self.holds: list[tuple[float, bool]] = []
        self.closed: str | None = None
        self.transcripts: deque[str | Result] = deque()
        self.replies: deque[str | list[Result]] = deque()
        self.turn_probability = 1.0
        self.speech_probability = 0.95
        if start:
            self.do(self.session.start(self.now))

    # the client's side

    def send(self, event: ev.ClientEvent) -> list[Any]:
        """The events that come of `event`."""
        before = len(self.events)
        self.do(self.session.receive(event, self.now))
        return self.events[before:]

    def update(self, **session: Any) -> list[Any]:
        return self.send(ev.SessionUpdate(session=session))

    def manual(self, **input: Any) -> None:
        self.update(audio={"input": {"turn_detection": None, **input}})

    def hear(self, ms: int, speech: bool = True, chunk_ms: int = 20, live: bool = True) -> list[Any]:
        """Sound from the microphone, in real time unless not `live`."""
        before = len(self.events)
        pcm = sound(ms, speech)
        step = chunk_ms * STT_SAMPLES_PER_MS * 2
        for at in range(0, len(pcm), step):
            piece = pcm[at : at + step]
            if live:
                self.wait(len(piece) / 32_000)
            self.do(self.session.receive(ev.InputAudioBufferAppend(audio=piece), self.now))
        return self.events[before:]

    def quiet(self, ms: int, **how: Any) -> list[Any]:
        return self.hear(ms, speech=False, **how)

    def commit(self) -> list[Any]:
        return self.send(ev.InputAudioBufferCommit())

    def create(self, **response: Any) -> list[Any]:
        return self.send(ev.ResponseCreate(response=ev.ResponseParams(**response)))

    def write(self, text: str, **item: Any) -> list[Any]:
        from orchestration.session.items import InputText, MessageItem

        message = MessageItem("user", [InputText(text)], **item)
        return self.send(ev.ConversationItemCreate(item=message))

    # the clock

    def wait(self, seconds: float) -> None:
        """Time passes; timers fire when they are due."""
        until = self.now + seconds
        while (at := self.session.wakeup_at()) is not None and at <= until:
            self.now = max(self.now, at)
            self.do(self.session.tick(self.now))
        self.now = until

    # the stages' side

    def do(self, effects: list[Effect]) -> None:
        self.effects += effects
        waiting: list[Submit] = []
        for effect in effects:
            match effect:
                case Send(event):
                    self.events.append(event)
                case Submit():
                    self.requests.append(effect)
                    self.open[effect.work] = effect
                    waiting.append(effect)
                case Cancel(generation):
                    self.cancelled.append(generation)
                    self.open = {w: s for w, s in self.open.items() if s.generation != generation}
                case Promote(generation, _):
                    self.promoted.append(generation)
                case Hold(held):
                    self.holds.append((self.now, held))
                case Close(reason):
                    self.closed = reason
        for submit in waiting:
            slow = submit.generation.startswith("first-words-") and not self.first_words
            if submit.request.stage in self.auto and submit.work in self.open and not slow:
                self.finish(submit)

    def waiting(self, stage: str) -> list[Submit]:
        return [submit for submit in self.open.values() if submit.request.stage == stage]

    def answer(self, stage: str, *results: Result) -> None:
        """Answer the oldest open request of `stage`: as scripted, or with `results`."""
        submit = self.waiting(stage)[0]
        if results:
            self.give(submit, *results)
            if is_final(results[-1]):
                self.open.pop(submit.work, None)
        else:
            self.finish(submit)

    def finish(self, submit: Submit) -> None:
        self.give(submit, *self._script(submit.request))
        self.open.pop(submit.work, None)

    def give(self, submit: Submit, *results: Result) -> None:
        for result in results:
            self.do(self.session.result(submit.work, result, self.now))

    def _script(self, request: Request) -> list[Result]:
        match request:
            case VadRequest(frames=frames):
                size = VAD_FRAME_SAMPLES * 2
                pieces = [frames[at : at + size] for at in range(0, len(frames), size)]
                loud = [self.speech_probability if any(piece) else 0.02 for piece in pieces]
                return [VadResult(loud, b"state", frames[-128:])]
            case SttRequest():
                said = self.transcripts.popleft() if self.transcripts else "Hello there."
                return [SttResult(said, language="en") if isinstance(said, str) else said]
            case LlmRequest():
                reply = self.replies.popleft() if self.replies else "It is noon. Have a nice day."
                if isinstance(reply, list):
                    return reply
                words = [word + " " for word in reply.split(" ")]
                words[-1] = words[-1][:-1]
                return [*map(LlmText, words), LlmDone("stop", 10, 4, len(words))]
            case TtsRequest(text=text):
                samples = len(text) * MS_PER_CHARACTER * TTS_RATE_HZ // 1000
                half = samples // 2 * 2
                return [
                    TtsAudio(b"\x07\x00" * (half // 2), TTS_RATE_HZ),
                    TtsAudio(b"\x07\x00" * (samples - half // 2), TTS_RATE_HZ),
                    TtsDone(samples),
                ]
            case _:
                return [TurnResult(self.turn_probability)]

    # what came out

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def types(self, events: list[Any] | None = None) -> list[str]:
        """Wire names of events, in order."""
        chosen = self.events if events is None else events
        return [event.__struct_config__.tag for event in chosen]

    def errors(self) -> list[str | None]:
        return [event.error.code for event in self.of(ev.Error)]

    def done(self) -> ev.ResponseState:
        """The last response that ended."""
        return self.of(ev.ResponseDone)[-1].response

    def prompts(self) -> list[LlmRequest]:
        return [submit.request for submit in self.requests if isinstance(submit.request, LlmRequest)]

    def spoken(self) -> list[str]:
        return [submit.request.text for submit in self.requests if isinstance(submit.request, TtsRequest)]


def told(request: LlmRequest) -> list[tuple[str, str]]:
    """The prompt as (role, text)."""
    return [(message.role, message.text) for message in request.messages]


def call(name: str, arguments: str = "{}") -> LlmToolCall:
    return LlmToolCall(name, arguments)
