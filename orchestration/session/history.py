"""The prompt: what the model is told of the conversation."""

from __future__ import annotations

from collections.abc import Iterable

from actors.messages import AudioPart, ImagePart, Message, TextPart, ToolCall
from orchestration.session.conversation import Entry
from orchestration.session.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    MessageItem,
    OutputAudio,
)

AUDIO_BYTES_PER_CHARACTER = 320
"""What sound counts as in a prompt: models take some 25 tokens a second of it, text has 4 characters a token."""


def prompt(
    instructions: str, entries: Iterable[Entry], limit_characters: int, hears_audio: bool = False
) -> list[Message]:
    """Messages of `entries` after a system message: user speech as its transcript (or its sound), answers as far as
    they were heard.  Beyond `limit_characters` the oldest go, whole turns at a time."""
    messages: list[Message] = []
    for entry in entries:
        message = _message(entry, hears_audio)
        if message is None:
            continue
        last = messages[-1] if messages else None
        if last is not None and last.role == message.role == "assistant":
            messages[-1] = _joined(last, message)
        else:
            messages.append(message)
    system = [Message("system", [TextPart(instructions)])] if instructions else []
    return system + _shortened(messages, limit_characters)


def tool_rounds(entries: list[Entry]) -> int:
    """Function outputs since a person last said something."""
    rounds = 0
    for entry in reversed(entries):
        if isinstance(entry.item, MessageItem) and entry.item.role == "user":
            break
        rounds += isinstance(entry.item, FunctionCallOutputItem)
    return rounds


def _message(entry: Entry, hears_audio: bool) -> Message | None:
    match entry.item:
        case FunctionCallItem(name=name, arguments=arguments, call_id=call_id):
            return Message("assistant", [], [ToolCall(call_id, name, arguments)])
        case FunctionCallOutputItem(call_id=call_id, output=output):
            return Message("tool", [TextPart(output)], [], call_id)
        case _:
            parts = _parts(entry, entry.item, hears_audio)
            return Message(entry.item.role, parts) if parts else None


def _parts(entry: Entry, item: MessageItem, hears_audio: bool) -> list[TextPart | AudioPart | ImagePart]:
    parts: list[TextPart | AudioPart | ImagePart] = []
    for part in item.content:
        match part:
            case InputImage(image_url=url):
                parts.append(ImagePart(url))
            case InputAudio(transcript=transcript) if (
                hears_audio and entry.pcm and entry.transcript != "empty"
            ):
                parts.append(AudioPart(entry.pcm, transcript))
            case InputAudio(transcript=transcript):
                parts.append(TextPart(transcript or ""))
            case OutputAudio(transcript=transcript):
                heard = transcript or "" if entry.spoken is None else entry.spoken.heard
                parts.append(TextPart(heard.rstrip()))
            case _:
                parts.append(TextPart(part.text))
    return [part for part in parts if not isinstance(part, TextPart) or part.text]


def _joined(first: Message, second: Message) -> Message:
    parts = [*first.parts, *second.parts]
    if first.parts and second.parts:
        parts.insert(len(first.parts), TextPart(" "))
    return Message("assistant", parts, [*first.tool_calls, *second.tool_calls])


def _size(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    sound = sum(len(part.audio) for part in message.parts if isinstance(part, AudioPart))
    return len(message.text) + sound // AUDIO_BYTES_PER_CHARACTER + calls


def _shortened(messages: list[Message], limit_characters: int) -> list[Message]:
    """The newest messages that fit, from the begin of a turn on; the last turn always."""
    turns = [at for at, message in enumerate(messages) if message.role == "user"]
    sizes = [_size(message) for message in messages]
    for at in [0, *turns]:
        if sum(sizes[at:]) <= limit_characters:
            return messages[at:]
    return messages[turns[-1] :] if turns else messages
