"""What a client may send: OpenAI Realtime (GA) client events as plain structs, audio as bytes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from orchestration.session.config import AudioFormat, Tool, ToolChoice
from orchestration.session.items import Item, ItemReference


class _Client(msgspec.Struct, tag_field="type", kw_only=True):
    event_id: str | None = None


class SessionUpdate(_Client, tag="session.update"):
    session: dict[str, Any]
    """The JSON object as the client sent it: only fields that are present change."""


class InputAudioBufferAppend(_Client, tag="input_audio_buffer.append"):
    audio: bytes
    """int16 mono 16 kHz, whole samples: the driver has decoded and resampled it."""


class InputAudioBufferCommit(_Client, tag="input_audio_buffer.commit"):
    pass


class InputAudioBufferClear(_Client, tag="input_audio_buffer.clear"):
    pass


class ConversationItemCreate(_Client, tag="conversation.item.create"):
    item: Item
    """`InputAudio.audio` as int16 mono 16 kHz."""
    previous_item_id: str | None = None


class ConversationItemRetrieve(_Client, tag="conversation.item.retrieve"):
    item_id: str


class ConversationItemTruncate(_Client, tag="conversation.item.truncate"):
    item_id: str
    content_index: int
    audio_end_ms: int


class ConversationItemDelete(_Client, tag="conversation.item.delete"):
    item_id: str


class ResponseOutputParams(msgspec.Struct):
    format: AudioFormat | None = None
    voice: str | None = None


class ResponseAudioParams(msgspec.Struct):
    output: ResponseOutputParams | None = None


class ResponseParams(msgspec.Struct):
    """Overrides for one response; None: as the session says."""

    audio: ResponseAudioParams | None = None
    conversation: str | None = None
    """`auto`, or `none` for a response out of band."""
    input: list[MessageInput] | None = None
    instructions: str | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    metadata: dict[str, str] | None = None
    output_modalities: list[Literal["text", "audio"]] | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: ToolChoice | None = None
    tools: list[Tool] | None = None


MessageInput = Item | ItemReference


class ResponseCreate(_Client, tag="response.create"):
    response: ResponseParams | None = None


class ResponseCancel(_Client, tag="response.cancel"):
    response_id: str | None = None


class OutputAudioBufferClear(_Client, tag="output_audio_buffer.clear"):
    pass


ClientEvent = (
    SessionUpdate
    | InputAudioBufferAppend
    | InputAudioBufferCommit
    | InputAudioBufferClear
    | ConversationItemCreate
    | ConversationItemRetrieve
    | ConversationItemTruncate
    | ConversationItemDelete
    | ResponseCreate
    | ResponseCancel
    | OutputAudioBufferClear
)
