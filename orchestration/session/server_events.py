"""What a client is sent: OpenAI Realtime (GA) server events as plain structs, audio as bytes.

`msgspec.to_builtins` of a server event is its wire form, but for `rate_hz` (see `ResponseAudioDelta` and
`items.OutputAudio`), which the driver takes out after it has resampled the audio.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from orchestration.session.config import AudioFormat, RealtimeSession, TranscriptionSession
from orchestration.session.items import Item


class _Server(msgspec.Struct, tag_field="type", kw_only=True):
    event_id: str = ""
    """Given when the event is sent."""


class ErrorDetail(msgspec.Struct):
    type: Literal["invalid_request_error", "server_error"]
    code: str | None
    message: str
    param: str | None = None
    event_id: str | None = None
    """The client event at fault."""


class Error(_Server, tag="error"):
    error: ErrorDetail


class SessionCreated(_Server, tag="session.created"):
    session: RealtimeSession | TranscriptionSession


class SessionUpdated(_Server, tag="session.updated"):
    session: RealtimeSession | TranscriptionSession


class InputAudioBufferCommitted(_Server, tag="input_audio_buffer.committed"):
    previous_item_id: str | None
    item_id: str


class InputAudioBufferCleared(_Server, tag="input_audio_buffer.cleared"):
    pass


class InputAudioBufferSpeechStarted(_Server, tag="input_audio_buffer.speech_started"):
    audio_start_ms: int
    item_id: str


class InputAudioBufferSpeechStopped(_Server, tag="input_audio_buffer.speech_stopped"):
    audio_end_ms: int
    item_id: str


class InputAudioBufferTimeoutTriggered(_Server, tag="input_audio_buffer.timeout_triggered"):
    audio_start_ms: int
    audio_end_ms: int
    item_id: str


class ConversationItemAdded(_Server, tag="conversation.item.added"):
    previous_item_id: str | None
    item: Item


class ConversationItemDone(_Server, tag="conversation.item.done"):
    previous_item_id: str | None
    item: Item


class ConversationItemRetrieved(_Server, tag="conversation.item.retrieved"):
    item: Item


class ConversationItemTruncated(_Server, tag="conversation.item.truncated"):
    item_id: str
    content_index: int
    audio_end_ms: int


class ConversationItemDeleted(_Server, tag="conversation.item.deleted"):
    item_id: str


class TranscriptionUsage(msgspec.Struct, tag_field="type", tag="duration"):
    seconds: float


class InputAudioTranscriptionDelta(_Server, tag="conversation.item.input_audio_transcription.delta"):
    item_id: str
    content_index: int
    delta: str


class InputAudioTranscriptionCompleted(_Server, tag="conversation.item.input_audio_transcription.completed"):
    item_id: str
    content_index: int
    transcript: str
    usage: TranscriptionUsage


class TranscriptionError(msgspec.Struct):
    type: str
    code: str
    message: str


class InputAudioTranscriptionFailed(_Server, tag="conversation.item.input_audio_transcription.failed"):
    item_id: str
    content_index: int
    error: TranscriptionError


class InputAudioTranscriptionSegment(_Server, tag="conversation.item.input_audio_transcription.segment"):
    item_id: str
    content_index: int
    id: str
    text: str
    speaker: str
    start: float
    end: float


class OutputAudioBufferStarted(_Server, tag="output_audio_buffer.started"):
    response_id: str


class OutputAudioBufferStopped(_Server, tag="output_audio_buffer.stopped"):
    response_id: str


class OutputAudioBufferCleared(_Server, tag="output_audio_buffer.cleared"):
    response_id: str


class ResponseError(msgspec.Struct):
    type: str
    code: str
    message: str | UnsetType = UNSET


class StatusDetails(msgspec.Struct, omit_defaults=True):
    type: Literal["completed", "cancelled", "incomplete", "failed"]
    reason: Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"] | None = None
    error: ResponseError | None = None


class InputTokenDetails(msgspec.Struct):
    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0


class OutputTokenDetails(msgspec.Struct):
    text_tokens: int = 0
    audio_tokens: int = 0


class Usage(msgspec.Struct):
    total_tokens: int
    input_tokens: int
    output_tokens: int
    input_token_details: InputTokenDetails
    output_token_details: OutputTokenDetails


class ResponseAudioOutput(msgspec.Struct):
    format: AudioFormat
    voice: str


class ResponseAudio(msgspec.Struct):
    output: ResponseAudioOutput


class ResponseState(msgspec.Struct):
    """The `response` of `response.created` and `response.done`."""

    id: str
    status: Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]
    status_details: StatusDetails | None
    output: list[Item]
    conversation_id: str | None
    output_modalities: list[Literal["text", "audio"]]
    max_output_tokens: int | Literal["inf"]
    audio: ResponseAudio
    usage: Usage | None
    metadata: dict[str, str] | None
    object: Literal["realtime.response"] = "realtime.response"


class ResponseCreated(_Server, tag="response.created"):
    response: ResponseState


class ResponseDone(_Server, tag="response.done"):
    response: ResponseState


class _OfItem(_Server):
    response_id: str
    item_id: str
    output_index: int


class _OfPart(_OfItem):
    content_index: int


class ResponseOutputItemAdded(_Server, tag="response.output_item.added"):
    response_id: str
    output_index: int
    item: Item


class ResponseOutputItemDone(_Server, tag="response.output_item.done"):
    response_id: str
    output_index: int
    item: Item


class TextPart(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class AudioPart(msgspec.Struct, tag_field="type", tag="audio"):
    transcript: str


class ResponseContentPartAdded(_OfPart, tag="response.content_part.added"):
    part: TextPart | AudioPart


class ResponseContentPartDone(_OfPart, tag="response.content_part.done"):
    part: TextPart | AudioPart


class ResponseTextDelta(_OfPart, tag="response.output_text.delta"):
    delta: str


class ResponseTextDone(_OfPart, tag="response.output_text.done"):
    text: str


class ResponseAudioTranscriptDelta(_OfPart, tag="response.output_audio_transcript.delta"):
    delta: str


class ResponseAudioTranscriptDone(_OfPart, tag="response.output_audio_transcript.done"):
    transcript: str


class ResponseAudioDelta(_OfPart, tag="response.output_audio.delta"):
    delta: bytes
    """int16 mono at `rate_hz`, the voice's own rate."""
    rate_hz: int
    """Not on the wire: the driver resamples to the session's format and takes it out."""


class ResponseAudioDone(_OfPart, tag="response.output_audio.done"):
    pass


class FunctionCallArgumentsDelta(_OfItem, tag="response.function_call_arguments.delta"):
    call_id: str
    delta: str


class FunctionCallArgumentsDone(_OfItem, tag="response.function_call_arguments.done"):
    call_id: str
    name: str
    arguments: str


class RateLimit(msgspec.Struct):
    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float


class RateLimitsUpdated(_Server, tag="rate_limits.updated"):
    rate_limits: list[RateLimit]


ServerEvent = (
    Error
    | SessionCreated
    | SessionUpdated
    | InputAudioBufferCommitted
    | InputAudioBufferCleared
    | InputAudioBufferSpeechStarted
    | InputAudioBufferSpeechStopped
    | InputAudioBufferTimeoutTriggered
    | ConversationItemAdded
    | ConversationItemDone
    | ConversationItemRetrieved
    | ConversationItemTruncated
    | ConversationItemDeleted
    | InputAudioTranscriptionDelta
    | InputAudioTranscriptionCompleted
    | InputAudioTranscriptionFailed
    | InputAudioTranscriptionSegment
    | OutputAudioBufferStarted
    | OutputAudioBufferStopped
    | OutputAudioBufferCleared
    | ResponseCreated
    | ResponseDone
    | ResponseOutputItemAdded
    | ResponseOutputItemDone
    | ResponseContentPartAdded
    | ResponseContentPartDone
    | ResponseTextDelta
    | ResponseTextDone
    | ResponseAudioTranscriptDelta
    | ResponseAudioTranscriptDone
    | ResponseAudioDelta
    | ResponseAudioDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
    | RateLimitsUpdated
)
