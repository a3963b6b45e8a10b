"""Speech behind HTTP: what is sent, sound as it comes, cancels, and clauses that go on."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from typing import Any

import pytest

from actors.batch import Batch, run
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest
from actors.tts.openai_tts import OpenaiTts, OpenaiTtsOptions
from tests.actors.scripted_server import BREAK_OFF, WAIT, Scripted, error, scripted_server, streamed

PCM = bytes(range(250)) * 100
"""12,500 samples."""


@pytest.fixture(scope="module")
def running() -> Iterator[Scripted]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def server(running: Scripted) -> Scripted:
    running.steps.clear()
    running.received.clear()
    running.left.clear()
    return running


def backend(server: Scripted, **options: Any) -> OpenaiTts:
    made = OpenaiTts(OpenaiTtsOptions(base_url=server.base_url, model="m", retry_delay=0.001, **options))
    made.load("cpu", "auto", 1)
    return made


def spoken(server: Scripted, request: TtsRequest, **options: Any) -> list[Any]:
    made = backend(server, **options)
    ((*results,),) = run(made.synthesize, [request])
    made.close()
    return results


def pcm(results: list[Any]) -> bytes:
    return b"".join(each.pcm for each in results if isinstance(each, TtsAudio))


def test_sound_comes_in_whole_samples_however_it_was_cut(server: Scripted) -> None:
    server.says(streamed([PCM[:3], PCM[3:10_001], PCM[10_001:]]))
    *audio, done = spoken(server, TtsRequest("Hello."))
    assert pcm(audio) == PCM and done == TtsDone(12_500)
    assert len(audio) > 1 and all(len(each.pcm) % 2 == 0 and each.rate_hz == 24_000 for each in audio)
    assert server.received[0].path == "/v1/audio/speech"


def test_voice_speed_and_the_servers_own_fields_are_sent(server: Scripted) -> None:
    server.says(streamed([PCM]), streamed([PCM]))
    spoken(server, TtsRequest("Hello.", voice="nova", speed=1.5, language="fr"), speed=2.0, language="auto")
    wanted = {"input": "Hello.", "model": "m", "voice": "nova", "speed": 3.0, "response_format": "pcm"}
    assert server.received[0].json == wanted | {"language": "fr"}
    spoken(server, TtsRequest("Hello."), stream=True, task_type="Base", instructions="Whisper.")
    wanted = {"voice": "aiden", "stream": True, "task_type": "Base", "instructions": "Whisper."}
    assert wanted.items() <= server.received[1].json.items()
    assert "language" not in server.received[1].json


def test_a_wav_says_its_own_rate(server: Scripted) -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, 16_000, 0, "NONE", ""))
        writer.writeframes(PCM)
    data = file.getvalue()
    server.says(streamed([data[:5], data[5:30], data[30:], b"LIST\4\0\0\0Ann."]))
    results = spoken(server, TtsRequest("Hello."), response_format="wav")
    assert pcm(results) == PCM and results[0].rate_hz == 16_000
    server.says(streamed([data[:40] + b"\xff" * 4 + PCM]))
    assert pcm(spoken(server, TtsRequest("Hello."), response_format="wav")) == PCM, "its length was not known"
    server.says(streamed([data]))
    (failed,) = spoken(server, TtsRequest("Hello."), retries=0)
    assert isinstance(failed, Failed) and "a wav came" in failed.message


def test_what_is_no_wav_of_mono_int16_fails(server: Scripted) -> None:
    server.says(streamed([PCM]))
    (failed,) = spoken(server, TtsRequest("Hello."), response_format="wav", retries=0)
    assert isinstance(failed, Failed) and "wav was asked for" in failed.message


@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8"])
def test_what_is_no_sound_is_not_played(server: Scripted, kind: str) -> None:
    server.says(streamed([b'{"error": "busy"}'], kind))
    (failed,) = spoken(server, TtsRequest("Hello."), retries=0)
    assert isinstance(failed, Failed) and "instead of sound" in failed.message


def test_samples_that_were_delivered_are_not_sent_again(server: Scripted) -> None:
    server.says(streamed([PCM]))
    results = spoken(server, TtsRequest("Hello.", skip_samples=5_000))
    assert pcm(results) == PCM[10_000:] and results[-1] == TtsDone(12_500)


def test_a_clause_that_breaks_off_goes_on_where_it_was(server: Scripted) -> None:
    server.says(streamed([PCM[:19_200], BREAK_OFF]), streamed([PCM]))
    results = spoken(server, TtsRequest("Hello."))
    assert pcm(results) == PCM and results[-1] == TtsDone(12_500)


def test_no_sound_is_a_failure_and_so_is_a_refusal(server: Scripted) -> None:
    server.says(streamed([]), error(400, "no such voice"))
    for problem in ("no sound came", "no such voice"):
        (failed,) = spoken(server, TtsRequest("Hello."), retries=0)
        assert isinstance(failed, Failed) and problem in failed.message


def test_a_cancel_closes_the_connection_at_once(server: Scripted) -> None:
    server.says(streamed([PCM, WAIT]))
    made = backend(server)
    batch: Batch[TtsRequest] = Batch([("a", TtsRequest("Hello."))])
    for _ in made.synthesize(batch):
        batch.cancel("a")
    made.close()
    assert server.left.wait(10)
