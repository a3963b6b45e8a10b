"""The transformers backend with a model of random weights: who else is in the batch never changes an answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.backend import Batch, Key
from actors.batch import run
from actors.llm.llama_cpp import LlamaCppOptions
from actors.llm.mlx_lm import MlxLm, MlxLmOptions
from actors.llm.transformers import Transformers, TransformersOptions
from actors.messages import Failed, LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool

TOOL = Tool(
    "set_lamp",
    "Sets a lamp.",
    {
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "room": {"enum": ["hall", "attic"]}},
        "required": ["on"],
    },
)


@pytest.fixture(scope="module")
def parts() -> tuple[Any, Any]:
    """A random Llama over printable characters."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(7)
    torch.set_num_threads(1)
    characters = [*map(chr, range(ord("!"), ord("~") + 1)), "Ġ", "Ċ"]
    vocabulary = {character: index for index, character in enumerate(characters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.3,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config), fast


@pytest.fixture
def backend(parts: tuple[Any, Any]) -> Transformers:
    made = Transformers(
        TransformersOptions(context_tokens=2048, max_batch=3, temperature=0, repeat_penalty=1.2)
    )
    made.use(*parts)
    return made


def ask(text: str, **fields: Any) -> LlmRequest:
    return LlmRequest([Message("user", [TextPart(text)])], max_tokens=fields.pop("max_tokens", 24), **fields)


def text_of(results: list[Any]) -> str:
    return "".join(result.text for result in results if isinstance(result, LlmText))


def alone(parts: tuple[Any, Any], request: LlmRequest) -> list[Any]:
    fresh = Transformers(
        TransformersOptions(context_tokens=2048, temperature=0, repeat_penalty=1.2, prefixes=0)
    )
    fresh.use(*parts)
    return run(fresh.generate, [request])[0]


QUESTIONS = (
    "Hello",
    "What is a much longer question than the others?",
    "Why?",
    "And a fifth one.",
    "x" * 150,
)


def test_answers_together_are_the_answers_alone(backend: Transformers, parts: tuple[Any, Any]) -> None:
    requests = [ask(question, max_tokens=12 + 5 * i) for i, question in enumerate(QUESTIONS)]
    together = run(backend.generate, requests)
    assert [text_of(results) for results in together] == [
        text_of(alone(parts, request)) for request in requests
    ]
    assert len({text_of(results) for results in together}) == len(QUESTIONS)


def test_sampled_answers_do_not_depend_on_the_batch(backend: Transformers, parts: tuple[Any, Any]) -> None:
    requests = [ask(question, temperature=1.0, seed=i) for i, question in enumerate(QUESTIONS)]
    together = run(backend.generate, requests)
    assert [text_of(results) for results in together] == [
        text_of(alone(parts, request)) for request in requests
    ]


def steps(backend: Transformers, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, Any]]:
    yield from backend.generate(batch)


def test_a_request_joins_a_running_batch(backend: Transformers, parts: tuple[Any, Any]) -> None:
    first, second = ask("Hello", max_tokens=40), ask("Who are you?", max_tokens=8)
    batch: Batch[LlmRequest] = Batch([("first", first)])
    results: dict[Key, list[Any]] = {"first": [], "second": []}
    order = []
    for key, result in steps(backend, batch):
        results[key].append(result)
        order.append(key)
        if len(order) == 5:
            batch.add("second", second)
    assert order.index("second") < len(order) - 9
    assert text_of(results["first"]) == text_of(alone(parts, first))
    assert text_of(results["second"]) == text_of(alone(parts, second))


def test_a_cancelled_request_says_no_more_and_the_others_go_on(
    backend: Transformers, parts: tuple[Any, Any]
) -> None:
    requests = [ask(question, max_tokens=30) for question in QUESTIONS[:3]]
    batch: Batch[LlmRequest] = Batch(enumerate(requests))
    results: dict[Key, list[Any]] = {0: [], 1: [], 2: []}
    for key, result in steps(backend, batch):
        assert not batch.cancelled(key)
        results[key].append(result)
        if key == 1 and len(results[1]) == 4:
            batch.cancel(1)
    assert len(results[1]) == 4
    for key in (0, 2):
        assert text_of(results[key]) == text_of(alone(parts, requests[int(key)]))


def test_an_answer_resumes_at_the_very_character(backend: Transformers, parts: tuple[Any, Any]) -> None:
    request = ask("Tell me something.", max_tokens=30)
    whole = alone(parts, request)
    for delivered in (1, 7, 20):
        again = run(backend.generate, [request.resumed(whole[:delivered])])[0]
        assert text_of(whole[:delivered]) + text_of(again) == text_of(whole)
        assert again[-1].output_tokens == whole[-1].output_tokens


def test_a_sampled_answer_resumes_as_it_would_have_gone_on(
    backend: Transformers, parts: tuple[Any, Any]
) -> None:
    request = ask("Tell me something.", temperature=0.8, seed=5)
    whole = alone(parts, request)
    again = run(backend.generate, [request.resumed(whole[:9])])[0]
    assert text_of(whole[:9]) + text_of(again) == text_of(whole)


def test_the_next_turn_reads_only_what_is_new(backend: Transformers, parts: tuple[Any, Any]) -> None:
    first = ask("Hello there, this is the first turn.", max_tokens=5)
    said = run(backend.generate, [first])[0]
    assert said[-1].cached_tokens == 0
    second = LlmRequest(
        [*first.messages, Message("assistant", [TextPart("ok")]), *ask("More").messages], max_tokens=9
    )
    results = run(backend.generate, [second])[0]
    assert results[-1].cached_tokens > 50
    assert text_of(results) == text_of(alone(parts, second))


@pytest.mark.parametrize("choice", ["required", "function:set_lamp"])
@pytest.mark.parametrize("seed", range(3))
def test_a_forced_call_always_parses(backend: Transformers, choice: str, seed: int) -> None:
    request = ask("Light!", tools=[TOOL], tool_choice=choice, max_tokens=120, temperature=1.5, seed=seed)
    call, done = run(backend.generate, [request])[0]
    assert isinstance(call, LlmToolCall)
    assert call.name == "set_lamp"
    arguments = json.loads(call.arguments)
    assert isinstance(arguments["on"], bool)
    assert arguments.get("room", "hall") in ("hall", "attic")
    assert done.finish_reason == "tool_calls"


def test_a_bad_request_fails_alone(backend: Transformers) -> None:
    broken = Tool("x", "", {"type": "object", "properties": {"a": {"type": "colour"}}})
    good, empty, unknown, schema = run(
        backend.generate,
        [
            ask("Hello"),
            LlmRequest([]),
            ask("Hello", tool_choice="function:none_such"),
            ask("Hello", tools=[broken], tool_choice="required"),
        ],
    )
    assert isinstance(good[-1], LlmDone)
    for (failure,), says in ((empty, "no messages"), (unknown, "none_such"), (schema, "schema")):
        assert isinstance(failure, Failed)
        assert says in failure.message
        assert not failure.retry


def test_usage_is_counted(backend: Transformers) -> None:
    *_, done = run(backend.generate, [ask("Hello", max_tokens=6)])[0]
    assert done.input_tokens > len("Hello")
    assert (done.finish_reason, done.output_tokens) == ("length", 6)


def test_a_generator_that_is_left_leaves_no_rows_behind(
    backend: Transformers, parts: tuple[Any, Any]
) -> None:
    running = backend.generate(Batch([(0, ask("Hello"))]))
    next(running)
    running.close()  # type: ignore[attr-defined]
    request = ask("Why?")
    assert text_of(run(backend.generate, [request])[0]) == text_of(alone(parts, request))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quantization": "fp3"}, "bnb-4bit"),
        ({"attn_implementation": "magic"}, "sdpa"),
        ({"max_batch": 0}, "at least 1"),
        ({"top_p": 0}, "top_p"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TransformersOptions(**options)


def test_options_of_other_backends_are_refused_alike() -> None:
    refused: list[tuple[type, dict[str, Any], str]] = [
        (MlxLmOptions, {"prefixes": -1}, "prefixes is -1"),
        (MlxLmOptions, {"repeat_penalty": 0}, "repeat_penalty"),
        (LlamaCppOptions, {"slots": 0}, "slots is 0"),
        (LlamaCppOptions, {"gpu_layers": -2}, "at least -1"),
    ]
    for cls, options, says in refused:
        with pytest.raises(ValueError, match=says):
            cls(**options)


def test_memory_counts_keys_and_values_of_the_layers_that_keep_them(tmp_path: Path) -> None:
    config: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    config |= {
        "num_hidden_layers": 3,
        "layer_types": ["full_attention", "linear_attention", "full_attention"],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))
    token_numbers = 2 * 2 * 2 * 16
    few, many = (MlxLm(MlxLmOptions(str(tmp_path), prefixes=count)).memory_bytes("auto") for count in (0, 3))
    assert many - few == 3 * 4096 * token_numbers * 2
    few, many = (
        Transformers(TransformersOptions(str(tmp_path), prefixes=count)).memory_bytes("float32")
        for count in (0, 3)
    )
    assert many - few == 3 * 2048 * token_numbers * 4
    assert MlxLm(MlxLmOptions("someone/else")).memory_bytes("auto") == 0
