"""Both LLM backends with the real SmolLM2-135M."""

import json
from typing import Any

import pytest

from actors.backend import Batch, Key
from actors.batch import run
from actors.llm.llama_cpp import LlamaCpp, LlamaCppOptions
from actors.llm.transformers import Transformers, TransformersOptions
from actors.messages import LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool

pytestmark = pytest.mark.e2e

TOOL = Tool(
    "get_weather",
    "Current weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city", "unit"],
    },
)
SYSTEM = Message("system", [TextPart("You are a voice assistant. Answer in one or two short sentences.")])


@pytest.fixture(scope="module", params=["llama-cpp", "transformers"])
def backend(request: pytest.FixtureRequest) -> LlamaCpp | Transformers:
    made: LlamaCpp | Transformers
    if request.param == "llama-cpp":
        made = LlamaCpp(LlamaCppOptions(temperature=0, context_tokens=640))
    else:
        made = Transformers(TransformersOptions(temperature=0, context_tokens=640))
    made.load("cpu", "auto", 1)
    made.warmup()
    return made


def ask(text: str, **fields: Any) -> LlmRequest:
    return LlmRequest(
        [SYSTEM, Message("user", [TextPart(text)])], max_tokens=fields.pop("max_tokens", 24), **fields
    )


def text_of(results: list[Any]) -> str:
    return "".join(result.text for result in results if isinstance(result, LlmText))


def test_an_answer_resumes_where_it_was_cut(backend: LlamaCpp | Transformers) -> None:
    request = ask("What is the capital of France and why is it famous?")
    whole = run(backend.generate, [request])[0]
    assert "Paris" in text_of(whole)
    for delivered in (1, 11):
        again = run(backend.generate, [request.resumed(whole[:delivered])])[0]
        assert text_of(whole[:delivered]) + text_of(again) == text_of(whole)


def test_four_requests_are_answered_at_once(backend: LlamaCpp | Transformers) -> None:
    questions = ["What is the capital of France?", "Name a colour.", "Say hello.", "Count to five."]
    order: list[Key] = []
    for key, _ in backend.generate(Batch(enumerate(map(ask, questions)))):
        order.append(key)
    first_end = min(len(order) - 1 - order[::-1].index(key) for key in range(4))
    assert set(order[:first_end]) == {0, 1, 2, 3}


def test_a_cancelled_answer_stops_and_another_goes_on(backend: LlamaCpp | Transformers) -> None:
    batch: Batch[LlmRequest] = Batch(
        [("a", ask("Tell a long story.", max_tokens=200)), ("b", ask("Say hello."))]
    )
    texts: dict[Key, list[Any]] = {"a": [], "b": []}
    for key, result in backend.generate(batch):
        texts[key].append(result)
        if key == "a" and len(texts["a"]) == 3:
            batch.cancel("a")
    assert len(texts["a"]) == 3
    assert isinstance(texts["b"][-1], LlmDone)


@pytest.mark.parametrize("choice", ["required", "function:get_weather"])
def test_a_forced_call_parses(backend: LlamaCpp | Transformers, choice: str) -> None:
    request = ask("What is the weather in Paris?", tools=[TOOL], tool_choice=choice, max_tokens=60)
    call, done = run(backend.generate, [request])[0]
    assert isinstance(call, LlmToolCall)
    assert isinstance(done, LlmDone)
    assert (call.name, done.finish_reason) == ("get_weather", "tool_calls")
    arguments = json.loads(call.arguments)
    assert arguments["city"] == "Paris"
    assert arguments["unit"] in ("celsius", "fahrenheit")


def test_a_history_beyond_the_context_is_answered(backend: LlamaCpp | Transformers) -> None:
    history = [SYSTEM]
    for index in range(12):
        history += [Message("user", [TextPart(f"Part {index}. " + "More words here. " * 15)])]
        history += [Message("assistant", [TextPart("I see.")])]
    history.append(Message("user", [TextPart("Say hello.")]))
    results = run(backend.generate, [LlmRequest(history, max_tokens=8)])[0]
    assert isinstance(results[-1], LlmDone)
    assert 300 < results[-1].input_tokens < 640


def test_the_next_turn_reads_only_what_is_new(backend: LlamaCpp | Transformers) -> None:
    first = ask("My name is Ada. Remember it.", max_tokens=8)
    run(backend.generate, [first])
    again = LlmRequest(
        [*first.messages, Message("assistant", [TextPart("Yes.")]), Message("user", [TextPart("Who am I?")])],
        max_tokens=4,
    )
    done = run(backend.generate, [again])[0][-1]
    assert isinstance(done, LlmDone)
    assert done.cached_tokens > done.input_tokens // 2


def test_the_memory_estimate_covers_the_weights(backend: LlamaCpp | Transformers) -> None:
    assert 150e6 < backend.memory_bytes("auto") < 3e9
