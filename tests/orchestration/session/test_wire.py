"""Every server event is one of OpenAI's, field by field (validated by the models of the `openai` package)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from openai.types.realtime import RealtimeServerEvent
from openai.types.realtime.realtime_session_create_response import RealtimeSessionCreateResponse
from openai.types.realtime.realtime_transcription_session_create_response import (
    RealtimeTranscriptionSessionCreateResponse,
)
from pydantic import BaseModel, TypeAdapter

from actors.messages import Failed, LlmDone, LlmText
from orchestration.session import events as ev
from orchestration.session.config import SessionDefaults
from tests.orchestration.session.session_rig import Rig, call


def models() -> dict[str, type[BaseModel]]:
    union = (
        RealtimeServerEvent.__value__ if hasattr(RealtimeServerEvent, "__value__") else RealtimeServerEvent
    )
    found: dict[str, type[BaseModel]] = {}
    for model in union.__args__[0].__args__ if hasattr(union.__args__[0], "__args__") else union.__args__:
        found[model.model_fields["type"].annotation.__args__[0]] = model
    return found


MODELS = models()
SESSIONS: dict[str, type[BaseModel]] = {
    "realtime": RealtimeSessionCreateResponse,
    "transcription": RealtimeTranscriptionSessionCreateResponse,
}


def checked(event: Any) -> None:
    fields = msgspec.to_builtins(event)
    fields.pop("rate_hz", None)
    for part in fields.get("item", {}).get("content", []):
        part.pop("rate_hz", None)
    assert fields["event_id"]
    if "session" in fields:  # the events' own models have the request's session here
        session = fields["session"]
        session.pop("parallel_tool_calls", None)  # only in the request's model
        model = SESSIONS[session["type"]]
        extra: Any = "forbid" if session["type"] == "realtime" else "ignore"  # turn detection
        TypeAdapter(model).validate_python(session, strict=True, extra=extra)
        fields["session"] = {"type": session["type"]}
    TypeAdapter(MODELS[fields["type"]]).validate_python(fields, strict=True, extra="forbid")


def a_full_session() -> Rig:
    rig = Rig(SessionDefaults(speculation="off", paced_output=True))
    rig.update(
        audio={"input": {"transcription": {"model": "whisper-1"}, "noise_reduction": {"type": "near_field"}}},
        tools=[{"type": "function", "name": "clock", "description": "", "parameters": {"type": "object"}}],
    )
    rig.hear(1000)
    rig.quiet(700)
    rig.wait(5)
    rig.replies.append(
        [LlmText("Let me look. "), call("clock", '{"zone": "UTC"}'), LlmDone("tool_calls", 5, 0, 9)]
    )
    rig.write("What time is it?")
    rig.create()
    rig.create(output_modalities=["text"], conversation="none", metadata={"topic": "time"})
    item = rig.of(ev.ConversationItemDone)[0].item.id
    rig.send(ev.ConversationItemRetrieve(item_id=item))
    rig.send(ev.ConversationItemDelete(item_id=item))
    rig.send(ev.ConversationItemDelete(item_id=item, event_id="mine"))
    answer = rig.of(ev.ResponseDone)[0].response.output[0].id
    rig.send(ev.ConversationItemRetrieve(item_id=answer))
    rig.send(ev.ConversationItemTruncate(item_id=answer, content_index=0, audio_end_ms=100))
    rig.send(ev.InputAudioBufferClear())
    rig.transcripts.append(Failed("stt: gone"))
    rig.hear(1000)
    rig.quiet(700)
    rig.create()
    rig.send(ev.OutputAudioBufferClear())
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}})
    rig.wait(20)
    return rig


def test_every_event_is_openais() -> None:
    rig = a_full_session()
    for event in rig.events:
        checked(event)
    unseen = set(MODELS) & {cls.__struct_config__.tag for cls in ev.ServerEvent.__args__} - set(rig.types())
    assert unseen <= {"conversation.item.input_audio_transcription.segment"}


def test_every_event_has_an_id_of_its_own() -> None:
    ids = [event.event_id for event in a_full_session().events]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", sorted(cls.__struct_config__.tag for cls in ev.ServerEvent.__args__))
def test_our_events_are_all_known_to_openai(kind: str) -> None:
    assert kind in MODELS


def test_a_transcription_session_is_openais_too() -> None:
    rig = Rig(SessionDefaults(session={"type": "transcription"}, expires_at=4_000_000_000))
    for event in rig.events:
        checked(event)
