"""The effective session: what the client has set, over the server's defaults."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from orchestration.session.config import (
    AudioInput,
    EffectiveSession,
    FunctionChoice,
    Pcm,
    RealtimeSession,
    ServerVad,
    SessionDefaults,
    ToolChoice,
    TranscriptionSession,
    TurnDetection,
)
from orchestration.session.errors import ClientError

_FIXED = ("id", "object", "expires_at")
_OBJECTS = ("audio", "input", "output", "turn_detection")
_NULL_IS_A_VALUE = (
    "transcription",
    "noise_reduction",
    "turn_detection",
    "idle_timeout_ms",
    "tracing",
    "include",
)


class Settings:
    """The session object of one session."""

    def __init__(self, session_id: str, defaults: SessionDefaults) -> None:
        self._defaults = defaults
        audio_input: dict[str, Any] = {"turn_detection": {"type": "server_vad"}}
        if defaults.transcription is not None:
            audio_input["transcription"] = msgspec.to_builtins(defaults.transcription)
        self._initial: dict[str, Any] = {
            "type": "realtime",
            "id": session_id,
            "model": defaults.model,
            "instructions": defaults.instructions,
            "audio": {"input": audio_input, "output": {"voice": defaults.voice}},
        }
        if defaults.expires_at is not None:
            self._initial["expires_at"] = defaults.expires_at
        self._wire = copy.deepcopy(self._initial)
        self.session: EffectiveSession = _typed(self._wire)

    @property
    def input(self) -> AudioInput:
        return self.session.audio.input

    @property
    def turn_detection(self) -> TurnDetection | None:
        return self.input.turn_detection

    @property
    def transcribes(self) -> bool:
        """Whether the client wants transcripts of what is said."""
        return self.input.transcription is not None or self.realtime is None

    @property
    def realtime(self) -> RealtimeSession | None:
        """The session if it may answer."""
        return self.session if isinstance(self.session, RealtimeSession) else None

    def update(self, patch: Mapping[str, Any], audio_sent: bool) -> None:
        """Merge `patch`; raises `ClientError` and changes nothing where it cannot hold."""
        for name in patch:
            if name in _FIXED and patch[name] != self._wire.get(name, patch[name]):
                raise ClientError("invalid_value", f"{name} cannot be changed.", f"session.{name}")
        kind = patch.get("type", self._wire["type"])
        if kind != self._wire["type"] and audio_sent:
            raise ClientError("invalid_value", "The session type cannot change now.", "session.type")
        merged = merge(self._initial, _without_nulls(merge(self._wire, patch)))
        session = _typed(merged)
        self._check(session, patch, audio_sent)
        self._wire, self.session = merged, session

    def _check(self, session: EffectiveSession, patch: Mapping[str, Any], audio_sent: bool) -> None:
        _check_input(session.audio.input, self._defaults.allow_16k)
        if not isinstance(session, RealtimeSession):
            return
        output = session.audio.output
        old = self.session.audio.output if isinstance(self.session, RealtimeSession) else None
        if audio_sent and old is not None and output.voice != old.voice:
            raise ClientError(
                "cannot_update_voice",
                "The voice cannot change once the session has spoken.",
                "session.audio.output.voice",
            )
        _check_rate(output.format, self._defaults.allow_16k, "session.audio.output.format.rate")
        _require(0.25 <= output.speed <= 1.5, output.speed, "0.25 to 1.5", "session.audio.output.speed")
        check_modalities(session.output_modalities, "session.output_modalities")
        check_max_tokens(session.max_output_tokens, "session.max_output_tokens")
        names = [tool.name for tool in session.tools]
        check_tools(names, "session.tools")
        check_choice(session.tool_choice, names, "session.tool_choice")


def merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`patch` over `base`, object by object; an object of another `type` replaces the old one whole."""
    merged = dict(base)
    for name, value in patch.items():
        old = merged.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping) and _same_type(old, value):
            merged[name] = merge(old, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged


def _without_nulls(wire: Mapping[str, Any]) -> dict[str, Any]:
    """Null in a field where it says nothing means that field's default."""
    return {
        name: _without_nulls(value) if isinstance(value, Mapping) and name in _OBJECTS else value
        for name, value in wire.items()
        if value is not None or name in _NULL_IS_A_VALUE
    }


def _same_type(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return bool(old.get("type") == new.get("type", old.get("type")))


def _typed(wire: Mapping[str, Any]) -> EffectiveSession:
    kind: type[EffectiveSession] = (
        TranscriptionSession if wire.get("type") == "transcription" else RealtimeSession
    )
    try:
        return msgspec.convert(wire, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        param = "session" + path.rstrip("`") if path else "session"
        raise ClientError("invalid_value", message, param) from None


def _check_input(audio: AudioInput, allow_16k: bool) -> None:
    _check_rate(audio.format, allow_16k, "session.audio.input.format.rate")
    where = "session.audio.input.turn_detection"
    vad = audio.turn_detection
    if not isinstance(vad, ServerVad):
        return
    _require(0.0 <= vad.threshold <= 1.0, vad.threshold, "0 to 1", f"{where}.threshold")
    padding, silence = vad.prefix_padding_ms, vad.silence_duration_ms
    _require(0 <= padding <= 5_000, padding, "0 to 5000", f"{where}.prefix_padding_ms")
    _require(0 <= silence <= 10_000, silence, "0 to 10000", f"{where}.silence_duration_ms")
    idle = vad.idle_timeout_ms
    if idle is not None:
        _require(5_000 <= idle <= 30_000, idle, "5000 to 30000", f"{where}.idle_timeout_ms")


def _check_rate(audio_format: object, allow_16k: bool, param: str) -> None:
    if isinstance(audio_format, Pcm) and audio_format.rate == 16000 and not allow_16k:
        raise ClientError(
            "invalid_value", "audio/pcm at 16000 Hz is not allowed by this server; 24000 is.", param
        )


def check_modalities(modalities: list[Any], param: str) -> None:
    if modalities not in (["text"], ["audio"]):
        raise ClientError("invalid_value", f'Expected ["text"] or ["audio"], found {modalities}.', param)


def check_max_tokens(tokens: int | str, param: str) -> None:
    if isinstance(tokens, int):
        _require(1 <= tokens <= 4096, tokens, '1 to 4096, or "inf"', param)


def check_tools(names: list[str], param: str) -> None:
    """Function names have a form that every model's template can carry, and are distinct."""
    for index, name in enumerate(names):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,128}", name):
            raise ClientError("invalid_value", f"{name!r} is no function name.", f"{param}[{index}].name")
        if name in names[:index]:
            raise ClientError("invalid_value", f"Function {name!r} is given twice.", f"{param}[{index}].name")


def check_choice(choice: ToolChoice, names: list[str], param: str) -> None:
    if isinstance(choice, FunctionChoice) and choice.name not in names:
        raise ClientError("invalid_value", f"tool_choice names {choice.name!r}, which is no tool.", param)


def _require(holds: bool, found: object, expected: str, param: str) -> None:
    if not holds:
        raise ClientError("invalid_value", f"Expected {expected}, found {found}.", param)
