"""Conversation items and their content, as OpenAI names them; audio as bytes.

Items inside a conversation are changed in place; what an event carries is a snapshot (`copied`).
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class InputText(msgspec.Struct, tag_field="type", tag="input_text"):
    text: str = ""


class InputAudio(msgspec.Struct, tag_field="type", tag="input_audio"):
    """What a person said."""

    transcript: str | None = None
    audio: bytes | UnsetType = UNSET
    """int16 mono 16 kHz; sent only in `conversation.item.retrieved`."""


class InputImage(msgspec.Struct, tag_field="type", tag="input_image"):
    image_url: str = ""
    detail: Literal["auto", "low", "high"] = "auto"


class OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    text: str = ""


class OutputAudio(msgspec.Struct, tag_field="type", tag="output_audio"):
    """What the machine said."""

    transcript: str | None = None
    audio: bytes | UnsetType = UNSET
    """int16 mono at `rate_hz`; sent only in `conversation.item.retrieved`."""
    rate_hz: int | UnsetType = UNSET
    """Not on the wire: the driver resamples to the session's format and takes it out."""


ContentPart = InputText | InputAudio | InputImage | OutputText | OutputAudio


class MessageItem(msgspec.Struct, tag_field="type", tag="message"):
    role: Literal["system", "user", "assistant"]
    content: list[ContentPart]
    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = "completed"


class FunctionCallItem(msgspec.Struct, tag_field="type", tag="function_call"):
    name: str
    arguments: str
    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = "completed"
    call_id: str = ""


class FunctionCallOutputItem(msgspec.Struct, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str
    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = "completed"


Item = MessageItem | FunctionCallItem | FunctionCallOutputItem


class ItemReference(msgspec.Struct, tag_field="type", tag="item_reference"):
    """Stands for an item of the conversation in the `input` of a response."""

    id: str


def copied(item: Item) -> Item:
    """A snapshot of `item` that later changes don't reach."""
    snapshot = msgspec.structs.replace(item)
    if isinstance(snapshot, MessageItem):
        snapshot.content = [msgspec.structs.replace(part) for part in snapshot.content]
    return snapshot
