"""Transcriptions behind HTTP: what is sent, and what becomes of the reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.responses import JSONResponse, PlainTextResponse

from actors.batch import Batch, run
from actors.messages import Failed, SttRequest, SttResult, Word
from actors.stt.openai_stt import OpenaiStt, OpenaiSttOptions
from tests.actors.scripted_server import SILENCE, Scripted, error, scripted_server

TONE = (3_000 * np.sin(np.arange(16_000) / 10)).astype("<i2").tobytes()


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


def backend(server: Scripted, **options: Any) -> OpenaiStt:
    made = OpenaiStt(OpenaiSttOptions(base_url=server.base_url, model="m", retry_delay=0.001, **options))
    made.load("cpu", "auto", 1)
    return made


def heard(server: Scripted, request: SttRequest, **options: Any) -> Any:
    made = backend(server, **options)
    ((result,),) = run(made.transcribe, [request])
    made.close()
    return result


def field(server: Scripted, name: str) -> str | None:
    """A text field of the last form that was sent."""
    parts = server.received[-1].body.split(b"\r\n--")
    marked = [part for part in parts if f'name="{name}"'.encode() in part]
    return marked[0].partition(b"\r\n\r\n")[2].decode() if marked else None


def test_the_utterance_is_sent_as_a_wav_with_what_is_known_of_it(server: Scripted) -> None:
    server.says(JSONResponse({"text": " Hello. "}))
    assert heard(server, SttRequest(TONE, language="de-DE", prompt="Names: Ann")) == SttResult(
        "Hello.", language="de"
    )
    assert server.received[0].path == "/v1/audio/transcriptions"
    assert b"RIFF" in server.received[0].body and TONE in server.received[0].body
    fields = [field(server, name) for name in ("model", "language", "prompt", "response_format")]
    assert fields == ["m", "de", "Names: Ann", "json"]


def test_where_the_language_is_to_be_found_none_is_sent(server: Scripted) -> None:
    server.says(JSONResponse({"text": "Bonjour.", "language": "french"}))
    result = heard(server, SttRequest(TONE), response_format="verbose_json")
    assert result == SttResult("Bonjour.", language="fr")
    assert field(server, "language") is None
    server.says(JSONResponse({"text": "Bonjour."}))
    heard(server, SttRequest(TONE), language="fr")
    assert field(server, "language") == "fr"


def test_word_times_are_asked_for_in_the_form_that_has_them(server: Scripted) -> None:
    words = [{"word": " Hello", "start": 0.1, "end": 0.42}]
    server.says(JSONResponse({"text": "Hello", "language": "en", "duration": 1, "words": words}))
    result = heard(server, SttRequest(TONE, word_times=True))
    assert result.words == [Word("Hello", 100, 420)]
    assert field(server, "response_format") == "verbose_json"


def test_a_server_may_answer_with_plain_text(server: Scripted) -> None:
    server.says(PlainTextResponse("Hello.\n"))
    assert heard(server, SttRequest(TONE), response_format="text").text == "Hello."


def test_a_page_is_not_what_somebody_said(server: Scripted) -> None:
    server.says(PlainTextResponse("<html>Welcome</html>", media_type="text/html"))
    failed = heard(server, SttRequest(TONE), retries=0)
    assert isinstance(failed, Failed) and "text came instead of JSON" in failed.message


def test_silence_is_not_sent_and_a_loop_is_no_transcript(server: Scripted) -> None:
    assert heard(server, SttRequest(bytes(16_000))).rejected == "no_speech"
    assert not server.received
    server.says(JSONResponse({"text": "and so on " * 40}))
    assert heard(server, SttRequest(TONE)).rejected == "repetition"


def test_a_refusal_fails_with_what_the_server_said(server: Scripted) -> None:
    server.says(error(400, "no such model"))
    failed = heard(server, SttRequest(TONE))
    assert isinstance(failed, Failed) and "no such model" in failed.message
    assert isinstance(heard(server, SttRequest(b"\1")), Failed)


def test_a_cancel_breaks_the_request_off(server: Scripted) -> None:
    server.says(SILENCE, JSONResponse({"text": "Hello."}))
    made = backend(server)
    unanswered = {"first", "second"}  # which of the two meets the silence is the network's choice
    batch: Batch[SttRequest] = Batch([(key, SttRequest(TONE)) for key in sorted(unanswered)])
    results = []
    for key, result in made.transcribe(batch):
        results.append(result)
        unanswered.discard(key)
        for other in unanswered:
            batch.cancel(other)
    made.close()
    assert server.left.wait(10)
    assert results == [SttResult("Hello.")]
