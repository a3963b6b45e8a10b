"""A chat completion's body to the request that an LLM stage takes."""

from __future__ import annotations

import binascii
import io
from collections.abc import Mapping, Sequence
from typing import Any

from actors.messages import AudioPart, ImagePart, LlmRequest, Message, TextPart, Tool, ToolCall

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class ChatError(ValueError):
    """A field that is not as it should be."""

    def __init__(self, message: str, param: str, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.param = param
        self.code = code


def parse_chat(body: Mapping[str, Any]) -> LlmRequest:
    """Raises `ChatError` naming the field at fault; fields that mean nothing here are let pass.

    An answer whose beginning stands as the last message is gone on with, and the beginning is not said again.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ChatError("'messages' is a list with at least one message.", "messages")
    if body.get("n", 1) not in (1, None):
        raise ChatError("Only one choice is made: 'n' is 1.", "n")
    tools = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(body.get("tools") or [])]
    parsed = [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    *before, last = parsed
    goes_on = bool(before) and last.role == "assistant" and not last.tool_calls
    return LlmRequest(
        messages=before if goes_on else parsed,
        delivered=last.text if goes_on else "",
        tools=tools,
        tool_choice=_tool_choice(body.get("tool_choice"), tools),
        max_tokens=_number(body, "max_completion_tokens", int) or _number(body, "max_tokens", int),
        temperature=_number(body, "temperature", float),
        seed=_number(body, "seed", int) or 0,
    )


def _number(body: Mapping[str, Any], name: str, kind: type[int] | type[float]) -> Any:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, kind)):
        raise ChatError(f"{name!r} is a number.", name)
    if value < 0:
        raise ChatError(f"{name!r} is not negative.", name)
    return kind(value)


def _message(message: Any, where: str) -> Message:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise ChatError(f"'{where}.role' is one of {', '.join(_ROLES)}.", f"{where}.role")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ChatError(f"'{where}.tool_calls' is a list.", f"{where}.tool_calls")
    return Message(
        role=_ROLES[message["role"]],  # type: ignore[arg-type]
        parts=_parts(message.get("content"), f"{where}.content"),
        tool_calls=[_call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls)],
        tool_call_id=message.get("tool_call_id"),
    )


def _parts(content: Any, where: str) -> list[TextPart | AudioPart | ImagePart]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not isinstance(content, Sequence):
        raise ChatError(f"'{where}' is text or a list of parts.", where)
    return [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]


def _part(part: Any, where: str) -> TextPart | AudioPart | ImagePart:
    match part:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "input_audio", "input_audio": {"data": str(data)}}:
            return AudioPart(_audio(data, where))
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            if not url.startswith("data:"):
                raise ChatError("Remote images are not fetched; send a data: URL.", f"{where}.image_url.url")
            return ImagePart(url)
        case _:
            raise ChatError(f"'{where}' is not a text, input_audio or image_url part.", where)


def _audio(data: str, where: str) -> bytes:
    """base64 of a wav or mp3 file to int16 at 16 kHz."""
    import numpy as np
    import soundfile
    import soxr

    try:
        samples, rate_hz = soundfile.read(
            io.BytesIO(binascii.a2b_base64(data)), dtype="float32", always_2d=True
        )
    except (soundfile.LibsndfileError, binascii.Error) as error:
        raise ChatError(
            f"'{where}.input_audio.data' is not audio: {error}.", f"{where}.input_audio.data"
        ) from None
    mono = soxr.resample(samples.mean(axis=1), rate_hz, 16_000)
    pcm: bytes = (np.clip(mono, -1, 1) * 32767).astype("<i2").tobytes()
    return pcm


def _call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str(call_id), "function": {"name": str(name), "arguments": str(arguments)}}:
            return ToolCall(call_id, name, arguments)
        case _:
            raise ChatError(f"'{where}' is {{id, type, function: {{name, arguments}}}}.", where)


def _tool(tool: Any, where: str) -> Tool:
    match tool:
        case {"type": "function", "function": {"name": str(name), **rest}}:
            parameters = rest.get("parameters") or {"type": "object", "properties": {}}
            if isinstance(parameters, dict):
                return Tool(name, str(rest.get("description") or ""), parameters)
    raise ChatError(f"'{where}' is {{type: function, function: {{name, description, parameters}}}}.", where)


def _tool_choice(choice: Any, tools: Sequence[Tool]) -> str:
    if choice is None:
        return "auto"
    if choice in ("auto", "none", "required"):
        return str(choice)
    match choice:
        case {"type": "function", "function": {"name": str(name)}} if any(
            tool.name == name for tool in tools
        ):
            return f"function:{name}"
    raise ChatError("'tool_choice' is auto, none, required, or one of 'tools' by name.", "tool_choice")
