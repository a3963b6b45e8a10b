"""What travels between a session and the stages.

Every request is self-contained: a stage keeps nothing of a session, so a request lost with its replica is rebuilt by
`resumed(delivered)` from the results that arrived and sent to another one.  Audio is mono 16-bit PCM, little endian.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, ClassVar, Literal

import msgspec

STT_RATE_HZ = 16_000
"""Sample rate of everything that VAD, turn detection and STT hear."""
VAD_FRAME_SAMPLES = 512
"""One VAD frame: 32 ms at 16 kHz."""
VAD_CONTEXT_SAMPLES = 64
"""Samples of the frame before that the VAD model sees in front of each frame."""


class Rank(IntEnum):
    """Who goes first: a lower rank always before a higher one, then by due time."""

    CONFIRMED = 0
    """Somebody waits for it: frames, a committed turn, its answer."""
    PARTIAL = 1
    """Interim transcripts."""
    SPECULATIVE = 2
    """Work for a turn that may yet go on; promoted when it is confirmed."""
    BACKGROUND = 3
    """HTTP requests beside the live sessions."""


class VadRequest(msgspec.Struct, frozen=True, array_like=True, tag="vad"):
    """k frames of one session with the model's state in front of them."""

    stage: ClassVar[str] = "vad"
    state: bytes
    """float32[2, 128]; empty for a new stream."""
    context: bytes
    """int16[64], the samples before the first frame; empty for a new stream."""
    frames: bytes
    """int16[k * 512]."""

    def resumed(self, delivered: Sequence[Result]) -> VadRequest:
        return self


class VadResult(msgspec.Struct, frozen=True, array_like=True, tag="vad.result"):
    probabilities: list[float]
    """Speech probability of each frame, 0..1."""
    state: bytes
    context: bytes


class TurnRequest(msgspec.Struct, frozen=True, array_like=True, tag="turn"):
    """The end of a paused turn: is it complete?"""

    stage: ClassVar[str] = "turn"
    audio: bytes
    """int16 at 16 kHz, at most the last 8 s."""

    def resumed(self, delivered: Sequence[Result]) -> TurnRequest:
        return self


class TurnResult(msgspec.Struct, frozen=True, array_like=True, tag="turn.result"):
    probability: float
    """1.0: the turn is complete."""


class Word(msgspec.Struct, frozen=True, array_like=True):
    text: str
    start_ms: int
    end_ms: int


class SttRequest(msgspec.Struct, frozen=True, array_like=True, tag="stt"):
    """One utterance to transcribe."""

    stage: ClassVar[str] = "stt"
    audio: bytes
    """int16 at 16 kHz, any length."""
    language: str | None = None
    """ISO 639-1 code; None: detect, or the model's only language."""
    prompt: str | None = None
    interim: bool = False
    """A partial transcript of a turn that goes on: may be decoded cheaper."""
    word_times: bool = False

    def resumed(self, delivered: Sequence[Result]) -> SttRequest:
        return self


class SttResult(msgspec.Struct, frozen=True, array_like=True, tag="stt.result"):
    """A transcript: `final=False` while it grows, then one `final=True` that replaces what came before."""

    text: str
    """Empty when nothing was said (see `rejected`)."""
    final: bool = True
    language: str | None = None
    words: list[Word] | None = None
    rejected: str | None = None
    """Why speech was thought absent: "no_speech", "repetition", ...; None for a real transcript."""
    logprob: float | None = None
    """Mean token log probability, where the model gives it."""


class AudioPart(msgspec.Struct, frozen=True, array_like=True, tag="audio"):
    """User speech for an LLM that hears (STT `none`)."""

    audio: bytes
    """int16 at 16 kHz."""
    transcript: str | None = None


class TextPart(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    text: str


class ImagePart(msgspec.Struct, frozen=True, array_like=True, tag="image"):
    url: str
    """A data: URL (remote ones are resolved, or refused, at the edge)."""


class ToolCall(msgspec.Struct, frozen=True, array_like=True):
    call_id: str
    name: str
    arguments: str
    """JSON text."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One message of the prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: list[TextPart | AudioPart | ImagePart] = []
    tool_calls: list[ToolCall] = []
    """Calls that an assistant message made."""
    tool_call_id: str | None = None
    """The call that a tool message answers."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


class Tool(msgspec.Struct, frozen=True, array_like=True):
    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments."""


class LlmRequest(msgspec.Struct, frozen=True, array_like=True, tag="llm"):
    """One answer to generate."""

    stage: ClassVar[str] = "llm"
    messages: list[Message]
    tools: list[Tool] = []
    tool_choice: str = "auto"
    """auto, none, required, or the name of the function that must be called (prefixed `function:`)."""
    max_tokens: int | None = None
    temperature: float | None = None
    """None: the backend's option."""
    seed: int = 0
    delivered: str = ""
    """Text of this answer that has been delivered: generation goes on after it, and it is not sent again."""
    delivered_tokens: int = 0
    delivered_calls: list[LlmToolCall] = []
    """Calls of this answer that have been delivered after that text: they are not made again."""

    def resumed(self, delivered: Sequence[Result]) -> LlmRequest:
        text = [result for result in delivered if isinstance(result, LlmText)]
        return msgspec.structs.replace(
            self,
            delivered=self.delivered + "".join(piece.text for piece in text),
            delivered_tokens=self.delivered_tokens + sum(piece.tokens for piece in text),
            delivered_calls=self.delivered_calls
            + [each for each in delivered if isinstance(each, LlmToolCall)],
        )


class LlmText(msgspec.Struct, frozen=True, array_like=True, tag="llm.text"):
    """A piece of the answer; the pieces concatenate to the whole text."""

    text: str
    tokens: int = 1


class LlmToolCall(msgspec.Struct, frozen=True, array_like=True, tag="llm.call"):
    """One complete function call."""

    name: str
    arguments: str
    """JSON text that parses against the tool's schema."""


FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class LlmDone(msgspec.Struct, frozen=True, array_like=True, tag="llm.done"):
    """The last result of an answer."""

    finish_reason: FinishReason
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class TtsRequest(msgspec.Struct, frozen=True, array_like=True, tag="tts"):
    """One clause to speak."""

    stage: ClassVar[str] = "tts"
    text: str
    voice: str | None = None
    """None: the backend's default."""
    language: str | None = None
    speed: float = 1.0
    seed: int = 0
    skip_samples: int = 0
    """Samples of this clause, at the voice's rate, that have been delivered and are not sent again."""

    def resumed(self, delivered: Sequence[Result]) -> TtsRequest:
        heard = sum(len(piece.pcm) // 2 for piece in delivered if isinstance(piece, TtsAudio))
        return msgspec.structs.replace(self, skip_samples=self.skip_samples + heard)


class TtsAudio(msgspec.Struct, frozen=True, array_like=True, tag="tts.audio"):
    """A piece of the clause's sound, at most 64 KB."""

    pcm: bytes
    """int16 at `rate_hz`."""
    rate_hz: int
    words: list[Word] | None = None
    """Where each word lies in the clause, at least as far as the end of this piece, if the backend knows."""


class TtsDone(msgspec.Struct, frozen=True, array_like=True, tag="tts.done"):
    """The last result of a clause."""

    samples: int
    """Length of the whole clause, skipped samples included."""


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The last result of work that could not be done."""

    message: str
    """In words, naming stage and cause; no traceback."""
    retry: bool = False
    """Whether another replica might succeed (a crash, not bad input)."""


Request = VadRequest | TurnRequest | SttRequest | LlmRequest | TtsRequest
Result = VadResult | TurnResult | SttResult | LlmText | LlmToolCall | LlmDone | TtsAudio | TtsDone | Failed


def is_final(result: Result) -> bool:
    """Whether `result` ends its request."""
    match result:
        case LlmText() | LlmToolCall() | TtsAudio():
            return False
        case SttResult(final=final):
            return final
        case _:
            return True
