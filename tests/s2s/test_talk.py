"""`talk` as a whole, with files in place of sound devices and a scripted server on a real socket."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from s2s.client import connection, script
from s2s.client.connection import UrlError, address, delay_s
from s2s.run import main

RATE_HZ = 24_000
ANSWER_S = 0.2
TOOLS = '''
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number
'''
Json = dict[str, Any]


class FakeServer:
    """Takes loud sound for a turn when 100 ms of it came, and answers with `reply`."""

    def __init__(self) -> None:
        self.received: list[Json] = []
        self.sessions = 0
        self.greets: list[Json] = []
        """What is sent in place of `session.created`, session by session."""
        self.hangs_up_after = 0
        """Answers after which the first session ends; 0: never."""
        self.calls_first = False
        self.status: HTTPStatus | None = None
        self.restarts = False
        """Whether the second attempt to connect fails: with `trouble`, or (None) without any answer."""
        self.trouble: HTTPStatus | None = None
        self.keys: list[str | None] = []

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        self.keys.append(request.headers.get("Authorization"))
        if self.restarts and len(self.keys) == 2:
            if self.trouble is None:
                connection.socket.shutdown(socket.SHUT_RDWR)
                return None
            return connection.respond(self.trouble, "")
        return None if self.status is None else connection.respond(self.status, "")

    def talk(self, connection: ServerConnection) -> None:
        self.sessions += 1
        if self.greets:
            connection.send(json.dumps(self.greets.pop(0)))
            return
        connection.send(json.dumps({"type": "session.created", "session": {"audio": {"input": {}}}}))
        loud = answers = 0
        try:
            for message in connection:
                event = json.loads(message)
                self.received.append(event)
                if event["type"] == "input_audio_buffer.append":
                    loud += any(base64.b64decode(event["audio"]))
                    if loud < 5:
                        continue
                    loud = -1_000_000
                    for made in self.turn(self.call() if self.calls_first else self.answer()):
                        connection.send(json.dumps(made))
                elif event["type"] == "response.create":
                    for made in self.answer():
                        connection.send(json.dumps(made))
                answers += 1
                if self.sessions == 1 and answers == self.hangs_up_after:
                    connection.close(1001, "maintenance")
        except ConnectionClosed:
            return

    def turn(self, reply: list[Json]) -> list[Json]:
        item = {"item_id": "u", "content_index": 0}
        heard = "conversation.item.input_audio_transcription.completed"
        return [
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "u"},
            {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 100, "item_id": "u"},
            {"type": heard, "transcript": "Hello?", **item},
            *reply,
        ]

    def answer(self) -> list[Json]:
        names = {"response_id": "r", "item_id": "a", "content_index": 0}
        sound = base64.b64encode(np.full(round(ANSWER_S * RATE_HZ), 9000, "<i2").tobytes()).decode()
        item = {"type": "message", "id": "a", "status": "completed"}
        return [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_audio_transcript.delta", "delta": "Hi there.", **names},
            {"type": "response.output_audio.delta", "delta": sound, **names},
            {"type": "response.output_audio.done", **names},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.done", "response": {"id": "r", "status": "completed", "output": [item]}},
        ]

    def call(self) -> list[Json]:
        item = {"type": "function_call", "id": "c", "status": "completed", "call_id": "c1"}
        item |= {"name": "double", "arguments": '{"number": 21}'}
        return [
            {"type": "response.created", "response": {"id": "r0"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.done", "response": {"id": "r0", "status": "completed", "output": [item]}},
        ]

    def of(self, kind: str) -> list[Json]:
        return [event for event in self.received if event["type"] == kind]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FakeServer, str]]:
    """It, and its address."""
    monkeypatch.setattr(script, "LAG_S", 0.1)
    monkeypatch.setattr(script, "SETTLED_S", 0.1)
    monkeypatch.setattr(script, "NO_SPEECH_S", 0.3)
    monkeypatch.setattr(connection, "FIRST_DELAY_S", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    fake = FakeServer()
    with serve(fake.talk, "127.0.0.1", 0, process_request=fake.check) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield fake, f"ws://127.0.0.1:{running.socket.getsockname()[1]}/v1/realtime"
        running.shutdown()
        thread.join()


@pytest.fixture
def recording(tmp_path: Path) -> Callable[..., str]:
    def make(name: str = "hello.wav", level: int = 8000) -> str:
        soundfile.write(tmp_path / name, np.full(3200, level, np.int16), 16_000)
        return str(tmp_path / name)

    return make


def test_a_recording_is_answered_into_a_file(
    server: tuple[FakeServer, str], recording: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, url = server
    saved = tmp_path / "out.wav"
    words = ["--voice", "af_sky", "--instructions", "Be brief.", "--api-key", "secret"]
    assert main(["talk", "--url", url, "--wav", recording(), "--save", str(saved), *words]) == 0
    said = capsys.readouterr().out
    assert "you:   Hello?" in said
    assert "agent: Hi there.  (" in said
    assert "1 answer; " in said
    sound, rate_hz = soundfile.read(saved, dtype="int16")
    assert rate_hz == RATE_HZ
    (spoken,) = np.nonzero(sound)
    assert len(spoken) == round(ANSWER_S * RATE_HZ)
    assert spoken[0] >= 5 * 480, "it is in time: the first 100 ms were listening"
    assert len(sound) > spoken[-1] + 1, "and so is the silence after it"
    session = fake.of("session.update")[0]["session"]
    assert (session["instructions"], session["audio"]["output"]["voice"]) == ("Be brief.", "af_sky")
    assert fake.keys == ["Bearer secret"]


def test_a_tool_is_called_and_its_result_answered(
    server: tuple[FakeServer, str], recording: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, url = server
    fake.calls_first = True
    (tmp_path / "tools.py").write_text(TOOLS)
    files = ["--wav", recording(), "--save", str(tmp_path / "out.wav"), "--tools", str(tmp_path / "tools.py")]
    assert main(["talk", "--url", url, *files]) == 0
    assert fake.of("conversation.item.create")[0]["item"]["output"] == "42"
    assert fake.of("session.update")[0]["session"]["tools"][0]["name"] == "double"
    assert 'double({"number": 21})' in capsys.readouterr().out


def test_a_lost_connection_is_made_again_and_the_loss_told(
    server: tuple[FakeServer, str], recording: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, url = server
    fake.hangs_up_after = 1
    assert main(["talk", "--url", url, "--wav", recording(), "--save", str(tmp_path / "out.wav")]) == 0
    said = capsys.readouterr().out
    assert fake.sessions == 2
    assert "the connection was lost (maintenance); trying again in 0.0 s" in said
    assert "the server remembers nothing of what was said before" in said


def test_a_proxy_is_not_asked_for_this_machine_and_one_that_is_none_is_told(
    server: tuple[FakeServer, str],
    recording: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "ftp://nowhere")
    monkeypatch.setenv("https_proxy", "ftp://nowhere")
    words = ["--wav", recording(), "--save", str(tmp_path / "out.wav")]
    assert main(["talk", "--url", server[1], *words]) == 0
    assert main(["talk", "--url", "ws://elsewhere.invalid", *words]) == 1
    assert "proxy that the environment names cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("status", [HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, None])
def test_a_server_that_restarts_is_waited_for(
    server: tuple[FakeServer, str],
    recording: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: HTTPStatus | None,
) -> None:
    """A status: its proxy tells of it; None: it hangs up before there is a session."""
    fake, url = server
    fake.hangs_up_after = 1
    fake.restarts, fake.trouble = True, status
    assert main(["talk", "--url", url, "--wav", recording(), "--save", str(tmp_path / "out.wav")]) == 0
    assert fake.sessions == 2
    assert capsys.readouterr().out.count("trying again") == 2


def test_a_recording_without_an_answer_is_a_failure(
    server: tuple[FakeServer, str], recording: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, url = server
    silence = recording("silence.wav", level=0)
    assert main(["talk", "--url", url, "--wav", silence, "--save", str(tmp_path / "out.wav")]) == 1
    assert f"no answer came to {silence}" in capsys.readouterr().out


class TestNoSession:
    @pytest.fixture
    def tell(
        self, recording: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> Callable[[str], Any]:
        """The exit code and the words of `talk` with a server."""

        def tell(url: str) -> tuple[int, str]:
            code = main(["talk", "--url", url, "--wav", recording(), "--save", str(tmp_path / "out.wav")])
            return code, capsys.readouterr().err

        return tell

    def test_no_server(self, tell: Any) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            code, words = tell(f"ws://127.0.0.1:{free.getsockname()[1]}/v1/realtime")
        assert code == 1
        assert "No server can be reached" in words
        assert "connection refused" in words
        assert "s2s.run serve" in words

    @pytest.mark.parametrize(
        ("refusal", "code", "says"),
        [
            ("invalid_api_key", 2, "refuses the key"),
            ("session_limit_reached", 1, "is full: Not you."),
            ("server_shutting_down", 1, "opens no session: Not you."),
        ],
    )
    def test_a_refusal_by_event(
        self, server: tuple[FakeServer, str], tell: Any, refusal: str, code: int, says: str
    ) -> None:
        fake, url = server
        fake.greets = [{"type": "error", "error": {"code": refusal, "message": "Not you."}}]
        got, words = tell(url)
        assert (got, says in words) == (code, True), words

    @pytest.mark.parametrize(
        ("status", "code", "says"),
        [
            (HTTPStatus.UNAUTHORIZED, 2, "refuses the key"),
            (HTTPStatus.TOO_MANY_REQUESTS, 1, "is full"),
            (HTTPStatus.NOT_FOUND, 2, "no Realtime endpoint"),
            (HTTPStatus.BAD_GATEWAY, 1, "is out of order (HTTP 502)"),
        ],
    )
    def test_a_refusal_by_status(
        self, server: tuple[FakeServer, str], tell: Any, status: HTTPStatus, code: int, says: str
    ) -> None:
        fake, url = server
        fake.status = status
        got, words = tell(url)
        assert (got, says in words) == (code, True), words

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--url", "ftp://x"], "--url ftp://x is no address"),
            (["--tools", "nowhere.py"], "nowhere.py: no such file"),
            (["--wav", "nowhere.wav"], "nowhere.wav: no such file"),
            (["--save", "."], "--save .: cannot be written"),
            (["--stt", "whisper"], "talk has no --stt"),
            (["--output-devise", "x"], "Did you mean --output-device?"),
        ],
    )
    def test_a_mistake_is_told_before_anything_is_connected(
        self, words: list[str], says: str, recording: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        defaults = {"--wav": recording(), "--save": str(tmp_path / "out.wav")}
        rest = [word for name, value in defaults.items() if name not in words for word in (name, value)]
        assert main(["talk", *words, *rest]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "result"),
    [
        ("ws://h:1/v1/realtime", "ws://h:1/v1/realtime?model=local"),
        ("http://h:1/", "ws://h:1/v1/realtime?model=local"),
        ("https://h", "wss://h/v1/realtime?model=local"),
        ("h:8765", "ws://h:8765/v1/realtime?model=local"),
        ("wss://h/openai/realtime?model=gpt-realtime&x=1", "wss://h/openai/realtime?model=gpt-realtime&x=1"),
    ],
)
def test_addresses(url: str, result: str) -> None:
    assert address(url, "local") == result


@pytest.mark.parametrize("url", ["", "ws://", "ws://h:port", "ws://h:99999", "ws://[::1"])
def test_no_addresses(url: str) -> None:
    with pytest.raises(UrlError):
        address(url, "local")


def test_the_waits_grow_to_a_bound() -> None:
    assert [delay_s(attempt, 0.5) for attempt in (0, 1, 2, 9)] == [0.5, 1.0, 2.0, 15.0]
    assert delay_s(0, 0.0) < delay_s(0, 1.0)
