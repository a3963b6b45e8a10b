"""mlx-lm: the library's real Llama with tiny random weights, on MLX's CPU build."""

import json
from pathlib import Path
from typing import Any

import pytest

from actors.batch import Batch, run
from actors.llm.mlx_lm import MlxLm, MlxLmOptions
from actors.messages import LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool

QUESTION = [Message("user", [TextPart("Tell me a long story.")])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.models.llama import Model, ModelArgs
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = tmp_path_factory.mktemp("llama")
    specials = ["<unk>", "<pad>", "<|im_start|>", "<|im_end|>"]
    letters = [*map(chr, range(33, 127)), "Ġ", "Ċ"]
    vocabulary = {token: number for number, token in enumerate([*specials, *letters])}
    built = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens(specials)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=built, unk_token="<unk>", pad_token="<pad>", eos_token="<|im_end|>"
    )
    tokenizer.chat_template = (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer.save_pretrained(made)
    config = {
        "model_type": "llama",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "vocab_size": len(vocabulary),
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
    }
    mx.random.seed(0)
    model = Model(ModelArgs.from_dict(config))
    weights = {
        name: mx.random.normal(value.shape) * (0.3 if value.ndim > 1 else 0.0) + (value.ndim == 1)
        for name, value in tree_flatten(model.parameters())
    }
    mx.save_safetensors(str(made / "model.safetensors"), weights, metadata={"format": "mlx"})
    (made / "config.json").write_text(json.dumps(config))
    return made


@pytest.fixture
def backend(folder: Path) -> MlxLm:
    made = MlxLm(MlxLmOptions(str(folder), temperature=0.8, max_batch=2))
    made.load("cpu", "auto", 1)
    return made


def text(results: list[Any]) -> str:
    return "".join(piece.text for piece in results if isinstance(piece, LlmText))


def test_warm_up_answers_and_calls(backend: MlxLm) -> None:
    backend.warmup()
    assert backend.memory_bytes("auto") > 0


def test_the_seed_decides_and_a_resumed_answer_goes_on_as_it_would_have(backend: MlxLm) -> None:
    request = LlmRequest(QUESTION, max_tokens=24, seed=3)
    (whole,) = run(backend.generate, [request])
    (again,) = run(backend.generate, [request])
    assert text(whole) == text(again) and isinstance(whole[-1], LlmDone)
    (other,) = run(backend.generate, [LlmRequest(QUESTION, max_tokens=24, seed=4)])
    assert text(other) != text(whole)
    delivered = [piece for piece in whole[:8] if isinstance(piece, LlmText)]
    (rest,) = run(backend.generate, [request.resumed(delivered)])
    assert text(delivered) + text(rest) == text(whole)


def test_answers_take_turns_and_one_can_be_cancelled(backend: MlxLm) -> None:
    batch = Batch(enumerate([LlmRequest(QUESTION, max_tokens=30, seed=seed) for seed in (1, 2)]))
    seen: list[Any] = []
    for key, result in backend.generate(batch):
        seen.append((key, result))
        if len(seen) == 6:
            batch.cancel(0)
    assert {key for key, _ in seen[:6]} == {0, 1}
    assert {key for key, _ in seen[6:]} == {1} and isinstance(seen[-1][1], LlmDone)


def test_the_prompt_of_the_next_turn_is_read_from_where_it_differs(backend: MlxLm) -> None:
    (first,) = run(backend.generate, [LlmRequest(QUESTION, max_tokens=8)])
    conversation = [
        *QUESTION,
        Message("assistant", [TextPart(text(first))]),
        Message("user", [TextPart("Go on.")]),
    ]
    (second,) = run(backend.generate, [LlmRequest(conversation, max_tokens=8)])
    fresh = MlxLm(backend._options)
    fresh.load("cpu", "auto", 1)
    (alone,) = run(fresh.generate, [LlmRequest(conversation, max_tokens=8)])
    assert second[-1].cached_tokens > 40 and alone[-1].cached_tokens == 0
    assert text(second) == text(alone)


def test_a_forced_call_follows_its_schema(backend: MlxLm) -> None:
    schema = {"type": "object", "properties": {"loud": {"type": "boolean"}}, "required": ["loud"]}
    request = LlmRequest(
        QUESTION, tools=[Tool("greet", "Greets.", schema)], tool_choice="function:greet", max_tokens=80
    )
    (results,) = run(backend.generate, [request])
    (call,) = [result for result in results if isinstance(result, LlmToolCall)]
    assert call.name == "greet" and set(json.loads(call.arguments)) == {"loud"}


def test_the_files_number_format_is_kept(folder: Path) -> None:
    with pytest.raises(ValueError, match="asked for dtype 'float32'"):
        MlxLm(MlxLmOptions(str(folder))).load("cpu", "float32", 1)
