# ruff: noqa: E501
"""Inbound events are validated strictly, and an error names the one field at fault."""

import base64
import json
from typing import Any

import pytest

from orchestration.session import events
from s2s.realtime.events import CLIENT_EVENTS, EventError, parse


def fault(event: Any) -> tuple[str, str | None, str | None]:
    with pytest.raises(EventError) as raised:
        parse(event if isinstance(event, (str, bytes)) else json.dumps(event))
    detail = raised.value.detail
    assert detail.type == "invalid_request_error" and detail.message
    return detail.code or "", detail.param, detail.event_id


def update(**session: Any) -> dict[str, Any]:
    return {"type": "session.update", "event_id": "e1", "session": {"type": "realtime", **session}}


def test_there_are_eleven_client_events() -> None:
    assert len(CLIENT_EVENTS) == 11


def test_an_append_carries_its_audio() -> None:
    event = parse(
        json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(b"\1\2\3").decode()})
    )
    assert event == events.InputAudioBufferAppend(audio=b"\1\2\3")


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        ("{", "invalid_json", None),
        (b"\xff\xfe", "invalid_json", None),
        ("[" * 5000, "invalid_json", None),
        ("[]", "invalid_event", None),
        ({}, "missing_required_parameter", "type"),
        ({"type": 3}, "invalid_value", "type"),
        ({"type": "nonsense"}, "invalid_value", "type"),
        ({"type": "input_audio_buffer.append"}, "missing_required_parameter", "audio"),
        ({"type": "input_audio_buffer.append", "audio": 3}, "invalid_type", "audio"),
        ({"type": "input_audio_buffer.append", "audio": "!!!"}, "invalid_value", "audio"),
        ({"type": "input_audio_buffer.append", "audio": "", "more": 1}, "unknown_parameter", "more"),
        ({"type": "response.create", "response": {"foo": 1}}, "unknown_parameter", "response.foo"),
        ({"type": "response.create", "response": {"prompt": {"id": "p"}}}, "unsupported_parameter", "response.prompt"),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": 3}]}},
            "invalid_type",
            "item.content[0].text",
        ),
        ({"type": "conversation.item.create", "item": {"type": "message", "role": "user"}}, "missing_required_parameter", "item.content"),
        ({"type": "conversation.item.create", "item": {"type": "poem"}}, "invalid_value", "item.type"),
        ({"type": "conversation.item.create", "item": {"type": "mcp_call"}}, "unsupported_parameter", "item.type"),
        ({"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": "1"}, "invalid_type", "audio_end_ms"),
    ],
)  # fmt: skip
def test_an_error_names_code_and_field(event: Any, code: str, param: str | None) -> None:
    assert fault(event)[:2] == (code, param)


@pytest.mark.parametrize(
    ("session", "code", "param"),
    [
        ({"voicee": "x"}, "unknown_parameter", "session.voicee"),
        ({"instructions": 3}, "invalid_type", "session.instructions"),
        ({"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": "x"}}}}, "invalid_type", "session.audio.input.turn_detection.threshold"),
        ({"audio": {"input": {"turn_detection": {"type": "other"}}}}, "invalid_value", "session.audio.input.turn_detection.type"),
        ({"audio": {"input": {"format": {"type": "audio/pcm", "rate": 44100}}}}, "invalid_value", "session.audio.input.format.rate"),
        ({"audio": {"input": {"format": {"type": "audio/mp3"}}}}, "invalid_value", "session.audio.input.format.type"),
        ({"tools": [{"type": "mcp", "server_label": "s"}]}, "unsupported_parameter", "session.tools[0]"),
        ({"prompt": {"id": "p"}}, "unsupported_parameter", "session.prompt"),
        ({"output_modalities": ["video"]}, "invalid_value", "session.output_modalities[0]"),
    ],
)  # fmt: skip
def test_session_errors_name_the_arm_that_was_meant(session: dict[str, Any], code: str, param: str) -> None:
    assert fault(update(**session)) == (code, param, "e1")


@pytest.mark.parametrize(
    "session",
    [
        {"audio": {"input": {"turn_detection": None}}},
        {
            "audio": {
                "input": {"format": {"type": "audio/pcmu"}},
                "output": {"format": {"type": "audio/pcma"}},
            }
        },
        {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}},
        {"audio": {"output": {"voice": "marin", "speed": 1.25}}},
        {"model": "gpt-realtime", "tracing": "auto", "max_output_tokens": "inf"},
        {"tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}]},
        {"tool_choice": {"type": "function", "name": "f"}},
        {"truncation": {"type": "retention_ratio", "retention_ratio": 0.8}},
        {"include": ["item.input_audio_transcription.logprobs"]},
    ],
)
def test_what_openai_accepts_is_accepted(session: dict[str, Any]) -> None:
    parsed = parse(json.dumps(update(**session)))
    assert isinstance(parsed, events.SessionUpdate) and parsed.session == {"type": "realtime", **session}


def test_a_session_without_type_is_told_so() -> None:
    assert fault({"type": "session.update", "session": {"instructions": "x"}})[1] == "session.type"


def test_items_become_the_cores_structs() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    event = parse(json.dumps({"type": "conversation.item.create", "previous_item_id": "root", "item": item}))
    assert isinstance(event, events.ConversationItemCreate)
    assert event.previous_item_id == "root" and event.item.content[0].text == "hi"
