# ruff: noqa: E501
"""HTTP and WebSocket beside fakes: statuses, forms and errors as OpenAI's clients expect them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import soundfile
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from actors.messages import Failed, LlmDone, LlmRequest, LlmToolCall, Rank, Request, Result
from orchestration.session.config import SessionDefaults
from s2s.access import Access
from s2s.realtime.chat import parse_chat
from s2s.realtime.http import Server, make_app
from s2s.sessions import Sessions
from tests.s2s.fake_links import FakeLinks

KEY = {"Authorization": "Bearer secret"}


class Rig:
    def __init__(self, access: Access | None = None, max_sessions: int = 8) -> None:
        self.links = FakeLinks()
        self.sessions = Sessions(self.links, SessionDefaults(), max_sessions)
        self.links.deliver = self.sessions.deliver
        self.pools = {"vad": 1, "stt": 1, "llm": 1, "tts": 1}
        self.server = Server(
            sessions=self.sessions,
            access=access or Access(),
            figures=dict,
            pools=lambda: self.pools,
            models={"whisper-tiny.en": "stt", "smollm2": "llm"},
        )
        self.client = TestClient(make_app(self.server))


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    with rig.client:
        yield rig


def wav(seconds: float = 0.5) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(int(16_000 * seconds), "int16"), 16_000, format="WAV")
    return file.getvalue()


def sse(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_health_is_ready_only_when_every_stage_is(rig: Rig) -> None:
    assert rig.client.get("/health").json()["status"] == "ready"
    rig.pools["tts"] = 0
    reply = rig.client.get("/health")
    assert (reply.status_code, reply.json()["status"]) == (503, "starting")
    rig.pools["tts"] = 1
    rig.sessions.draining = True
    assert rig.client.get("/health").json()["status"] == "draining"


def test_models_are_listed_and_unknown_ones_are_404(rig: Rig) -> None:
    assert [model["id"] for model in rig.client.get("/v1/models").json()["data"]] == [
        "whisper-tiny.en",
        "smollm2",
    ]
    assert rig.client.get("/v1/models/smollm2").json()["id"] == "smollm2"
    reply = rig.client.get("/v1/models/other")
    assert reply.status_code == 404 and reply.json()["error"]["code"] == "model_not_found"


def test_metrics_count_sessions_and_replicas(rig: Rig) -> None:
    text = rig.client.get("/metrics").text
    assert "s2s_sessions 0.0" in text and 's2s_replicas{stage="stt"} 1.0' in text
    assert 's2s_turn_stt_seconds_bucket{le="+Inf"}' in text
    assert 's2s_speculation_total{outcome="thrown_away",work="stt"} 0.0' in text


def test_a_turn_shows_in_the_histograms(rig: Rig) -> None:
    with rig.client.websocket_connect("/v1/realtime") as socket:
        text_turn(socket)
    assert "s2s_turn_llm_first_token_seconds_count 1.0" in rig.client.get("/metrics").text


@pytest.mark.parametrize("style", ["json", "verbose_json", "text", "srt", "vtt"])
def test_transcriptions_come_in_every_form(rig: Rig, style: str) -> None:
    reply = rig.client.post(
        "/v1/audio/transcriptions",
        files={"file": ("a.wav", wav())},
        data={"response_format": style, "model": "m"},
    )
    assert reply.status_code == 200 and "hello" in reply.text
    assert rig.links.submitted[-1][1] is Rank.BACKGROUND


def test_a_transcription_can_stream(rig: Rig) -> None:
    reply = rig.client.post(
        "/v1/audio/transcriptions", files={"file": ("a.wav", wav())}, data={"stream": "true"}
    )
    assert [event["type"] for event in sse(reply.text)] == ["transcript.text.delta", "transcript.text.done"]


def test_a_bad_upload_is_named(rig: Rig) -> None:
    post = rig.client.post
    assert post("/v1/audio/transcriptions", data={"model": "m"}).status_code == 400
    assert post("/v1/audio/transcriptions", files={"other": b""}).json()["error"]["param"] == "file"
    assert post("/v1/audio/transcriptions", content=iter([b"-" * 100])).status_code == 411
    error = post("/v1/audio/transcriptions", files={"file": ("talk.wav", b"no audio")}).json()["error"]
    assert "talk.wav" in error["message"] and "/" not in error["message"].split(":")[0]
    reply = post(
        "/v1/audio/transcriptions", files={"file": ("a.wav", wav())}, data={"response_format": "doc"}
    )
    assert reply.json()["error"]["param"] == "response_format"


@pytest.mark.parametrize("style", ["mp3", "opus", "flac", "wav"])
def test_speech_comes_in_every_container(rig: Rig, style: str) -> None:
    reply = rig.client.post(
        "/v1/audio/speech", json={"input": "Hello there.", "voice": "alloy", "response_format": style}
    )
    assert reply.status_code == 200
    samples, rate_hz = soundfile.read(io.BytesIO(reply.content))
    assert rate_hz in (24_000, 48_000) and len(samples) / rate_hz == pytest.approx(0.1, abs=0.08)


def test_bare_pcm_is_24_khz(rig: Rig) -> None:
    reply = rig.client.post("/v1/audio/speech", json={"input": "Hello.", "response_format": "pcm"})
    assert len(reply.content) == 4800


def test_speech_can_come_as_events(rig: Rig) -> None:
    body = {"input": "Hello.", "response_format": "pcm", "stream_format": "sse"}
    events = sse(rig.client.post("/v1/audio/speech", json=body).text)
    assert [event["type"] for event in events][-1] == "speech.audio.done"
    assert len(b"".join(base64.b64decode(event["audio"]) for event in events[:-1])) == 4800


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": "x" * 5000}, "input"),
        ({"input": "x", "response_format": "aac"}, "response_format"),
        ({"input": "x", "speed": 9}, "speed"),
        ({"input": "🎉"}, "input"),
    ],
)
def test_speech_names_the_field_at_fault(rig: Rig, body: dict[str, Any], param: str) -> None:
    reply = rig.client.post("/v1/audio/speech", json=body)
    assert 400 <= reply.status_code < 500 and reply.json()["error"]["param"] == param


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}


def test_chat_answers_whole_and_in_pieces(rig: Rig) -> None:
    whole = rig.client.post("/v1/chat/completions", json=chat()).json()
    assert whole["choices"][0]["message"]["content"] == "Hi there."
    assert whole["usage"]["total_tokens"] == 11
    reply = rig.client.post(
        "/v1/chat/completions", json=chat(stream=True, stream_options={"include_usage": True})
    )
    chunks = sse(reply.text)
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert text == "Hi there." and chunks[-1]["usage"]["completion_tokens"] == 2
    assert reply.text.rstrip().endswith("data: [DONE]")


def test_an_answer_that_was_begun_is_gone_on_with() -> None:
    begun = {"role": "assistant", "content": "I am"}
    messages = [{"role": "user", "content": "How are you?"}]
    request = parse_chat({"messages": [*messages, begun]})
    assert [message.role for message in request.messages] == ["user"]
    assert request.delivered == "I am"
    request = parse_chat({"messages": [*messages, begun, *messages]})
    assert len(request.messages) == 3 and request.delivered == ""


def test_chat_calls_tools(rig: Rig) -> None:
    def answer(request: Request) -> Sequence[Result]:
        assert isinstance(request, LlmRequest) and request.tool_choice == "function:f"
        return [LlmToolCall("f", '{"x": 1}'), LlmDone("tool_calls")]

    rig.links.answer = answer
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    choice = {"type": "function", "function": {"name": "f"}}
    reply = rig.client.post("/v1/chat/completions", json=chat(tools=tools, tool_choice=choice)).json()
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"] == {
        "name": "f",
        "arguments": '{"x": 1}',
    }


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "poet", "content": ""}]}, "messages[0].role"),
        (chat(n=2), "n"),
        (chat(max_tokens="many"), "max_tokens"),
        (chat(tool_choice={"type": "function", "function": {"name": "g"}}), "tool_choice"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]}, "messages[0].content[0].image_url.url"),
    ],
)  # fmt: skip
def test_chat_names_the_field_at_fault(rig: Rig, body: dict[str, Any], param: str) -> None:
    reply = rig.client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == param


def test_a_failing_stage_is_503_with_its_reason(rig: Rig) -> None:
    rig.links.answer = lambda request: [Failed("llm: out of memory")]
    reply = rig.client.post("/v1/chat/completions", json=chat())
    assert reply.status_code == 503 and reply.json()["error"]["message"] == "llm: out of memory"


def test_bodies_are_json_objects_of_bounded_size(rig: Rig) -> None:
    post = rig.client.post
    assert post("/v1/chat/completions", content=b"{").json()["error"]["code"] == "invalid_json"
    assert post("/v1/chat/completions", content=b"[]").status_code == 400
    assert post("/v1/chat/completions", content=b" " * (26 << 20)).status_code == 413


def test_beyond_the_page_a_key_is_needed() -> None:
    rig = Rig(Access(keys=("secret",)))
    for path in ("/v1/models", "/metrics"):
        assert rig.client.get(path).status_code == 401
        assert rig.client.get(path, headers=KEY).status_code == 200
    assert rig.client.get("/health").status_code == 200
    with rig.client.websocket_connect("/v1/realtime") as socket:
        assert socket.receive_json()["error"]["code"] == "invalid_api_key"
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()
    with rig.client.websocket_connect("/v1/realtime", headers=KEY) as socket:
        assert socket.receive_json()["type"] == "session.created"


def test_a_client_secret_opens_the_session_that_it_was_made_for() -> None:
    rig = Rig(Access(keys=("secret",)))
    body = {
        "session": {"type": "realtime", "instructions": "be brief"},
        "expires_after": {"anchor": "created_at", "seconds": 60},
    }
    made = rig.client.post("/v1/realtime/client_secrets", json=body, headers=KEY).json()
    assert made["session"]["instructions"] == "be brief"
    protocols = ["realtime", f"openai-insecure-api-key.{made['value']}"]
    with rig.client.websocket_connect("/v1/realtime", subprotocols=protocols) as socket:
        assert socket.accepted_subprotocol == "realtime"
        assert socket.receive_json()["session"]["instructions"] == "be brief"
    headers = {"Authorization": f"Bearer {made['value']}"}
    assert rig.client.get("/v1/models", headers=headers).status_code == 401


def test_what_a_client_secret_leaves_open_is_as_the_server_says() -> None:
    rig = Rig()
    semantic = {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}}
    rig.sessions.defaults = SessionDefaults(session=semantic)
    session = {"type": "realtime", "audio": {"output": {"voice": "nova"}}}
    made = rig.client.post("/v1/realtime/client_secrets", json={"session": session}).json()
    headers = {"Authorization": f"Bearer {made['value']}"}
    with rig.client.websocket_connect("/v1/realtime", headers=headers) as socket:
        opened = socket.receive_json()["session"]
    for audio in (made["session"]["audio"], opened["audio"]):
        assert audio["output"]["voice"] == "nova"
        assert audio["input"]["turn_detection"]["type"] == "semantic_vad"


@pytest.mark.parametrize(
    "body",
    [
        {"expires_after": {"seconds": 5}},
        {"expires_after": {"seconds": "long"}},
        {"expires_after": {"anchor": "never"}},
        {"session": "x"},
        {"session": {"type": "realtime", "audio": {"output": {"speed": 99}}}},
    ],
)
def test_a_client_secret_is_checked_when_it_is_made(rig: Rig, body: dict[str, Any]) -> None:
    assert rig.client.post("/v1/realtime/client_secrets", json=body).status_code == 400


def test_other_peoples_pages_are_refused(rig: Rig) -> None:
    headers = {"Origin": "https://evil.example"}
    assert rig.client.get("/v1/models", headers=headers).status_code == 401
    with rig.client.websocket_connect("/v1/realtime", headers=headers) as socket:
        assert "--allow_origin" in socket.receive_json()["error"]["message"]


def text_turn(socket: Any) -> list[dict[str, Any]]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    socket.send_json({"type": "conversation.item.create", "item": item})
    socket.send_json({"type": "response.create"})
    events = []
    while not events or events[-1]["type"] != "response.done":
        events.append(socket.receive_json())
    return events


def test_a_text_turn_over_the_socket_is_answered_in_speech(rig: Rig) -> None:
    with rig.client.websocket_connect("/v1/realtime?model=gpt-realtime") as socket:
        events = text_turn(socket)
    assert events[0]["type"] == "session.created" and events[0]["session"]["model"] == "gpt-realtime"
    audio = b"".join(
        base64.b64decode(e["delta"]) for e in events if e["type"] == "response.output_audio.delta"
    )
    assert len(audio) == 4800 and events[-1]["response"]["status"] == "completed"


def test_a_stage_that_does_not_run_here_fails_the_answer_not_the_session(rig: Rig) -> None:
    llm = rig.links.pop("llm")
    with rig.client.websocket_connect("/v1/realtime") as socket:
        response = text_turn(socket)[-1]["response"]
        assert response["status"] == "failed"
        assert "llm: this server runs no such stage" in response["status_details"]["error"]["message"]
        rig.links["llm"] = llm
        assert text_turn(socket)[-1]["response"]["status"] == "completed"


def test_a_bad_event_is_an_error_and_the_session_goes_on(rig: Rig) -> None:
    with rig.client.websocket_connect("/v1/realtime") as socket:
        socket.receive_json()
        socket.send_text("{")
        assert socket.receive_json()["error"]["code"] == "invalid_json"
        socket.send_json({"type": "nonsense", "event_id": "e9"})
        assert socket.receive_json()["error"]["event_id"] == "e9"
        assert text_turn(socket)[-1]["response"]["status"] == "completed"


def test_transcription_sessions_are_asked_for_by_intent(rig: Rig) -> None:
    with rig.client.websocket_connect("/v1/realtime?intent=transcription") as socket:
        assert socket.receive_json()["session"]["type"] == "transcription"


def test_a_session_over_capacity_is_refused_at_connect() -> None:
    rig = Rig(max_sessions=1)
    with rig.client, rig.client.websocket_connect("/v1/realtime") as first:
        first.receive_json()
        with rig.client.websocket_connect("/v1/realtime") as second:
            assert second.receive_json()["error"]["code"] == "session_limit_reached"
            with pytest.raises(WebSocketDisconnect) as closed:
                second.receive_json()
            assert closed.value.code == 1013


def test_a_disconnect_frees_the_place_and_the_work(rig: Rig) -> None:
    with rig.client.websocket_connect("/v1/realtime") as socket:
        session = socket.receive_json()["session"]["id"]
        assert session in rig.sessions.drivers
    assert rig.client.get("/health").status_code == 200
    assert not rig.sessions.drivers and session in rig.links.closed


def test_events_beyond_the_rate_are_refused_with_an_error(rig: Rig) -> None:
    rig.server.socket_limits = type(rig.server.socket_limits)(events_per_second=1.0)
    with rig.client.websocket_connect("/v1/realtime") as socket:
        socket.receive_json()
        for _ in range(4):
            socket.send_json({"type": "input_audio_buffer.clear"})
        codes = [socket.receive_json() for _ in range(4)]
    assert any(event.get("error", {}).get("code") == "rate_limit_exceeded" for event in codes)


def test_turns_of_an_open_session_are_shown(rig: Rig) -> None:
    with rig.client.websocket_connect("/v1/realtime") as socket:
        events = text_turn(socket)
        session = events[0]["session"]["id"]
        reply = rig.client.get(f"/v1/sessions/{session}/turns").json()
        (turn,) = reply["data"]
        assert reply["speculation"]["answers"] == {"used": 0, "thrown_away": 0}
        assert turn["answer"] == "Hi there." and turn["first_audio_sent"] is not None
    assert rig.client.get("/v1/sessions/nobody/turns").status_code == 404


def test_the_page_and_its_parts_are_served(rig: Rig) -> None:
    page = rig.client.get("/").text
    for path in ("web/app.js", "web/style.css"):
        assert path in page and rig.client.get(f"/{path}").status_code == 200
    assert rig.client.get("/sample.wav").status_code == 404
