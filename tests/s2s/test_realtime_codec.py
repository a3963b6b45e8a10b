"""A connection's codec follows the session's formats, and what it sends is OpenAI's wire form."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from orchestration.session import config, events, items
from s2s.realtime.codec import MAX_DELTA_BYTES, Codec

CREATED: dict[str, Any] = {
    "id": "resp_1",
    "status": "in_progress",
    "status_details": None,
    "output": [],
    "conversation_id": None,
    "output_modalities": ["audio"],
    "max_output_tokens": "inf",
    "usage": None,
    "metadata": None,
}


def session(**audio: Any) -> events.SessionUpdated:
    settings = config.RealtimeSession(id="s", model="m", instructions="", audio=config.Audio(**audio))
    return events.SessionUpdated(event_id="e", session=settings)


def append(data: bytes) -> str:
    return json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(data).decode()})


def sent(codec: Codec, event: events.ServerEvent) -> list[dict[str, Any]]:
    return [json.loads(message) for message in codec.outbound(event)]


def created(audio_format: config.AudioFormat) -> events.ResponseCreated:
    audio = events.ResponseAudio(events.ResponseAudioOutput(audio_format, "af_heart"))
    return events.ResponseCreated(event_id="e", response=events.ResponseState(**CREATED, audio=audio))


def of_part() -> dict[str, Any]:
    return {"event_id": "e7", "response_id": "resp_1", "item_id": "i", "output_index": 0, "content_index": 0}


def test_audio_comes_in_at_16_khz_whatever_the_client_sends() -> None:
    codec = Codec()
    (event,) = codec.inbound(append(np.zeros(24_000, "<i2").tobytes()))
    tail, commit = codec.inbound('{"type": "input_audio_buffer.commit"}')
    assert isinstance(event, events.InputAudioBufferAppend) and isinstance(
        tail, events.InputAudioBufferAppend
    )
    assert len(event.audio) + len(tail.audio) == 32_000
    assert isinstance(commit, events.InputAudioBufferCommit)


def test_a_changed_input_format_takes_effect() -> None:
    codec = Codec()
    sent(codec, session(input=config.AudioInput(format=config.Pcmu())))
    codec.inbound(append(b"\xff" * 8_000))
    tail, _ = codec.inbound('{"type": "input_audio_buffer.commit"}')
    assert isinstance(tail, events.InputAudioBufferAppend)


def test_audio_goes_out_in_the_responses_format_with_its_tail_before_done() -> None:
    codec = Codec()
    sent(codec, created(config.Pcmu()))
    pcm = np.full(24_000, 1000, "<i2").tobytes()
    deltas = sent(codec, events.ResponseAudioDelta(delta=pcm, rate_hz=24_000, **of_part()))
    *tail, done = sent(codec, events.ResponseAudioDone(**of_part()))
    assert done["type"] == "response.output_audio.done"
    assert sum(len(base64.b64decode(each["delta"])) for each in deltas + tail) == 8_000
    assert all("rate_hz" not in each for each in deltas)


def test_a_delta_stays_small_and_every_piece_has_an_id_of_its_own() -> None:
    codec = Codec()
    pcm = np.zeros(48_000, "<i2").tobytes()
    deltas = sent(codec, events.ResponseAudioDelta(delta=pcm, rate_hz=24_000, **of_part()))
    assert [len(base64.b64decode(each["delta"])) for each in deltas] == [MAX_DELTA_BYTES] * 2 + [30_464]
    assert len({each["event_id"] for each in deltas}) == 3


@pytest.mark.parametrize("audio_format", [config.Pcm(), config.Pcma()])
def test_a_retrieved_items_audio_is_in_the_sessions_format(audio_format: config.AudioFormat) -> None:
    codec = Codec()
    sent(codec, session(input=config.AudioInput(format=audio_format)))
    part = items.InputAudio(transcript="hi", audio=np.zeros(16_000, "<i2").tobytes())
    item = items.MessageItem(role="user", content=[part])
    (message,) = sent(codec, events.ConversationItemRetrieved(item=item))
    expected = 48_000 if isinstance(audio_format, config.Pcm) else 8_000
    assert len(base64.b64decode(message["item"]["content"][0]["audio"])) == expected


def test_a_retrieved_answer_is_resampled_from_the_voices_rate() -> None:
    part = items.OutputAudio(transcript="hi", audio=bytes(32_000), rate_hz=16_000)
    item = items.MessageItem(role="assistant", content=[part])
    (message,) = sent(Codec(), events.ConversationItemRetrieved(item=item))
    content = message["item"]["content"][0]
    assert len(base64.b64decode(content["audio"])) == 48_000 and "rate_hz" not in content


def test_audio_of_a_created_item_is_decoded() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": base64.b64encode(bytes(4800)).decode()}]}  # fmt: skip  # noqa: E501
    (event,) = Codec().inbound(json.dumps({"type": "conversation.item.create", "item": item}))
    assert isinstance(event, events.ConversationItemCreate) and isinstance(event.item, items.MessageItem)
    part: Any = event.item.content[0]
    assert len(part.audio) == 3200
