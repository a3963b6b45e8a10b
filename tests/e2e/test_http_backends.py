"""The backends that ask over HTTP, as plain objects against this project's own server and llama.cpp's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jiwer
import numpy as np
import pytest
import soxr

from actors.assets import resolve, samples
from actors.batch import Batch, run
from actors.llm.chat_completions import ChatCompletions, ChatCompletionsOptions
from actors.messages import (
    STT_RATE_HZ,
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    Message,
    SttRequest,
    TextPart,
    Tool,
    TtsAudio,
    TtsDone,
    TtsRequest,
)
from actors.stt.openai_stt import OpenaiStt, OpenaiSttOptions
from actors.tts.openai_tts import OpenaiTts, OpenaiTtsOptions

pytestmark = pytest.mark.e2e

WEATHER = Tool(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def asked(text: str) -> list[Message]:
    return [Message("system", [TextPart("You are a helpful assistant.")]), Message("user", [TextPart(text)])]


CAPITAL = asked("What is the capital of France?")


def loaded(backend: Any) -> Iterator[Any]:
    backend.load("cpu", "auto", 1)
    backend.warmup()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """The address of llama.cpp's own server, as xllamacpp starts it."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(resolve("smollm2-135m-instruct-gguf"))
    parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 2048, 2, 2
    parameters.hostnames, parameters.port, parameters.verbosity = ["127.0.0.1"], 0, -1
    running = xllamacpp.Server(parameters)
    yield str(running.listening_address)
    del running


@pytest.fixture(scope="module")
def ours(server: str) -> Iterator[ChatCompletions]:
    yield from loaded(ChatCompletions(ChatCompletionsOptions(base_url=f"{server}/v1", temperature=0.0)))


@pytest.fixture(scope="module")
def theirs(llama: str) -> Iterator[ChatCompletions]:
    yield from loaded(ChatCompletions(ChatCompletionsOptions(base_url=f"{llama}/v1", temperature=0.0)))


@pytest.fixture(scope="module")
def ear(server: str) -> Iterator[OpenaiStt]:
    yield from loaded(OpenaiStt(OpenaiSttOptions(base_url=f"{server}/v1", model="whisper")))


@pytest.fixture(params=["ours", "theirs"])
def llm(request: pytest.FixtureRequest) -> ChatCompletions:
    backend: ChatCompletions = request.getfixturevalue(request.param)
    return backend


def text_of(results: list[Any]) -> str:
    return "".join(each.text for each in results if isinstance(each, LlmText))


def test_an_answer_comes_in_pieces_with_what_it_cost(llm: ChatCompletions) -> None:
    ((*pieces, done),) = run(llm.generate, [LlmRequest(CAPITAL, max_tokens=12)])
    assert len(pieces) > 3 and all(isinstance(each, LlmText) for each in pieces)
    assert isinstance(done, LlmDone) and done.input_tokens > 5 and 0 < done.output_tokens <= 12


def test_an_answer_goes_on_behind_its_beginning(llm: ChatCompletions) -> None:
    beginning = LlmRequest(CAPITAL, max_tokens=24, delivered="The capital of France is", delivered_tokens=5)
    ((*pieces, done),) = run(llm.generate, [beginning])
    assert text_of(pieces).startswith(" Paris")
    assert isinstance(done, LlmDone) and done.output_tokens > 5


def test_a_cancelled_answer_ends_and_one_beside_it_does_not(llm: ChatCompletions) -> None:
    story = LlmRequest(asked("Tell me a very long story."), max_tokens=400)
    batch: Batch[LlmRequest] = Batch([("long", story), ("short", LlmRequest(CAPITAL, max_tokens=8))])
    last: dict[Any, Any] = {}
    for key, result in llm.generate(batch):
        last[key] = result
        batch.cancel("long")
    assert isinstance(last["short"], LlmDone)
    assert not isinstance(last.get("long"), LlmDone)


def test_a_function_is_called_where_it_must_be(ours: ChatCompletions) -> None:
    request = LlmRequest(asked("Weather in Oslo?"), tools=[WEATHER], tool_choice="required", max_tokens=64)
    ((*_, call, done),) = run(ours.generate, [request])
    assert isinstance(call, LlmToolCall) and call.name == "get_weather" and '"city"' in call.arguments
    assert isinstance(done, LlmDone) and done.finish_reason == "tool_calls"


def test_transcriptions_of_recordings_with_word_times(ear: OpenaiStt) -> None:
    spoken = samples()[3:6]
    requests = [SttRequest(each.path.read_bytes()[44:], word_times=True) for each in spoken]
    results: list[Any] = [result for (result,) in run(ear.transcribe, requests)]
    assert jiwer.wer([plain(each.text) for each in spoken], [plain(each.text) for each in results]) < 0.15
    assert all(result.language == "en" and result.words[-1].end_ms > 1_000 for result in results)


def test_what_is_spoken_over_http_is_understood_over_http(server: str, ear: OpenaiStt) -> None:
    options = OpenaiTtsOptions(base_url=f"{server}/v1", model="kokoro", voice="af_heart")
    for voice in loaded(OpenaiTts(options)):
        ((*sound, done),) = run(voice.synthesize, [TtsRequest("The weather is nice today.")])
    assert all(isinstance(each, TtsAudio) and each.rate_hz == 24_000 for each in sound)
    pcm = np.frombuffer(b"".join(each.pcm for each in sound), "<i2")
    assert done == TtsDone(len(pcm))
    heard = soxr.resample(pcm.astype(np.float32) / 32_768, 24_000, STT_RATE_HZ)
    ((result,),) = run(ear.transcribe, [SttRequest((heard * 32_767).astype("<i2").tobytes())])
    assert plain(result.text) == "the weather is nice today"


def plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum() or char == " ").strip()
