"""Client events from the wire: JSON, validated strictly against OpenAI's own models, to the core's structs.

The models of the `openai` package are lenient: extra fields pass, unions have no usable discriminator.  So
validation is strict, extra fields are forbidden, and of a union's errors only those of the arm that `type`
(or `role`) names count: the error then points at the one field at fault.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from orchestration.session import events as core

MAX_EVENT_BYTES = 15 * 1024 * 1024
"""A larger frame closes the connection with 1009, as at OpenAI (15 MiB of audio an event)."""

CLIENT_EVENTS: dict[str, type[msgspec.Struct]] = {
    str(struct.__struct_config__.tag): struct for struct in core.ClientEvent.__args__
}


class EventError(Exception):
    """A client event that is not valid; `detail` is what the client is told."""

    def __init__(
        self, code: str, message: str, param: str | None = None, event_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.detail = core.ErrorDetail("invalid_request_error", code, message, param, event_id)


class _Append(msgspec.Struct, tag="input_audio_buffer.append", tag_field="type", forbid_unknown_fields=True):
    """Most events are these: one quick strict decode, with no model built."""

    audio: str
    event_id: str | None = None


_decode_append = msgspec.json.Decoder(_Append).decode


def parse(data: str | bytes) -> core.ClientEvent:
    """One client event; its audio is still in the client's format.  Raises `EventError`."""
    try:
        append = _decode_append(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _parse_any(data)
    return core.InputAudioBufferAppend(audio=_base64(append.audio, append.event_id), event_id=append.event_id)


def _parse_any(data: str | bytes) -> core.ClientEvent:
    try:
        event = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EventError("invalid_json", f"The message is not valid JSON: {error}.") from None
    if not isinstance(event, dict):
        raise EventError("invalid_event", "An event is a JSON object with a 'type'.")
    given_id = event.get("event_id")
    event_id = given_id if isinstance(given_id, str) else None
    kind = event.get("type")
    if kind is None:
        raise EventError(
            "missing_required_parameter", "Missing required parameter: 'type'.", "type", event_id
        )
    if not isinstance(kind, str) or kind not in CLIENT_EVENTS:
        known = ", ".join(sorted(CLIENT_EVENTS))
        raise EventError("invalid_value", f"Unknown event type {kind!r}. Known: {known}.", "type", event_id)
    _refuse_unbuilt(event, event_id)
    _validate(kind, event, event_id)
    if kind == "input_audio_buffer.append":
        return core.InputAudioBufferAppend(audio=_base64(event["audio"], event_id), event_id=event_id)
    try:
        converted: core.ClientEvent = msgspec.convert(event, core.ClientEvent, strict=True)
    except msgspec.ValidationError as error:
        raise _from_msgspec(error, event_id) from None
    return converted


def _base64(text: str, event_id: str | None) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise EventError(
            "invalid_value", f"'audio' is not valid base64: {error}.", "audio", event_id
        ) from None


def _refuse_unbuilt(event: dict[str, Any], event_id: str | None) -> None:
    """MCP and stored prompts are in OpenAI's models but not here: say so instead of a puzzling error."""
    for holder in ("session", "response"):
        settings = event.get(holder)
        if not isinstance(settings, dict):
            continue
        if settings.get("prompt"):
            raise EventError(
                "unsupported_parameter",
                "Stored prompts are OpenAI's; send 'instructions' instead.",
                f"{holder}.prompt",
                event_id,
            )
        tools = settings.get("tools")
        for index, tool in enumerate(tools if isinstance(tools, list) else ()):
            if isinstance(tool, dict) and tool.get("type") == "mcp":
                message = "MCP tools are not supported; declare a tool of type 'function'."
                raise EventError("unsupported_parameter", message, f"{holder}.tools[{index}]", event_id)
        choice = settings.get("tool_choice")
        if isinstance(choice, dict) and choice.get("type") == "mcp":
            raise EventError(
                "unsupported_parameter", "MCP tools are not supported.", f"{holder}.tool_choice", event_id
            )
    item = event.get("item")
    if isinstance(item, dict) and str(item.get("type", "")).startswith("mcp_"):
        raise EventError("unsupported_parameter", "MCP items are not supported.", "item.type", event_id)


@cache
def _adapter(kind: str) -> Any:
    from openai.types import realtime
    from pydantic import TypeAdapter

    name = "".join(part.capitalize() for part in re.split(r"[._]", kind)) + "Event"
    return TypeAdapter(getattr(realtime, name))


def _validate(kind: str, event: dict[str, Any], event_id: str | None) -> None:
    from pydantic import ValidationError

    try:
        _adapter(kind).validate_python(_with_wire_rates(event), strict=True, extra="forbid")
    except ValidationError as error:
        found = [(tuple(each["loc"]), each["type"], each["msg"]) for each in error.errors(include_url=False)]
        path, problem, message = _at_fault(found, event)
        raise _from_pydantic(path, problem, message, event_id) from None


def _with_wire_rates(event: dict[str, Any]) -> dict[str, Any]:
    """The event with a declared 16 kHz PCM (ours, for older robots) shown to OpenAI's model as its 24 kHz."""
    session = event.get("session")
    if not isinstance(session, dict) or not isinstance(session.get("audio"), dict):
        return event
    audio = dict(session["audio"])
    for side in ("input", "output"):
        settings = audio.get(side)
        if not isinstance(settings, dict):
            continue
        wire = settings.get("format")
        if isinstance(wire, dict) and wire.get("type") == "audio/pcm" and wire.get("rate") == 16_000:
            audio[side] = {**settings, "format": {**wire, "rate": 24_000}}
    return {**event, "session": {**session, "audio": audio}}


Loc = tuple[str | int, ...]
Fault = tuple[Loc, str, str]


def _at_fault(errors: Sequence[Fault], data: Any) -> Fault:
    """The first error that counts, its location as a path in `data` (names of union arms taken out)."""
    here = [error for error in errors if not error[0]]
    if here:
        return here[0]
    heads: dict[str | int, list[Fault]] = {}
    for loc, problem, message in errors:
        heads.setdefault(loc[0], []).append((loc[1:], problem, message))
    arms = {head: below for head, below in heads.items() if not _holds(data, head, below)}
    for head, below in heads.items():
        if head not in arms:
            deeper = data[head] if _is_key(data, head) else None
            path, problem, message = _at_fault(below, deeper)
            return (head, *path), problem, message
    fitting = list(arms.values())
    for tag in ("type", "role"):
        wrong = [error for below in fitting for error in below if _is_tag_error(error, tag)]
        fitting = [below for below in fitting if not any(_is_tag_error(error, tag) for error in below)]
        if not fitting:
            loc, problem, _ = wrong[0]
            expected = sorted(set(re.findall(r"'([^']+)'", " ".join(message for _, _, message in wrong))))
            return loc, problem, f"Input should be one of: {', '.join(expected)}"
    return _at_fault(min(fitting, key=len), data)


def _is_key(data: Any, head: str | int) -> bool:
    if isinstance(data, dict):
        return head in data
    return isinstance(data, list) and isinstance(head, int) and head < len(data)


def _holds(data: Any, head: str | int, below: Sequence[Fault]) -> bool:
    """Whether `head` is a field of `data` (there, or missing), rather than the name of a union's arm."""
    return _is_key(data, head) or all(not loc and problem == "missing" for loc, problem, _ in below)


def _is_tag_error(error: Fault, tag: str) -> bool:
    loc, problem, _ = error
    return loc == (tag,) and problem in ("literal_error", "missing")


def _from_pydantic(path: Loc, problem: str, message: str, event_id: str | None) -> EventError:
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if problem == "missing":
        return EventError(
            "missing_required_parameter", f"Missing required parameter: '{param}'.", param, event_id
        )
    if problem == "extra_forbidden":
        return EventError("unknown_parameter", f"Unknown parameter: '{param}'.", param, event_id)
    code = "invalid_type" if problem.endswith("_type") else "invalid_value"
    return EventError(code, f"Invalid '{param}': {message[0].lower()}{message[1:]}.", param, event_id)


def _from_msgspec(error: msgspec.ValidationError, event_id: str | None) -> EventError:
    message, _, where = str(error).partition(" - at `$")
    param = where.rstrip("`").lstrip(".") or None
    return EventError(
        "invalid_value", f"Invalid '{param}': {message}." if param else f"{message}.", param, event_id
    )
