from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from actors import int8_linear
from actors.batch import Batch, run
from actors.messages import Failed, SttRequest, SttResult
from actors.stt.network import Hypothesis
from actors.stt.whisper import Whisper, WhisperOptions
from tests.actors.stt.tiny_whisper import DE, EN, PREVIOUS, SOT, VOCABULARY, backend

RATE_HZ = 16_000


def request(seconds: float, **fields: Any) -> SttRequest:
    audio = np.random.default_rng(0).normal(0, 3000, int(seconds * RATE_HZ)).astype("<i2")
    return SttRequest(audio.tobytes(), **fields)


class Script:
    """Takes the place of `Network.greedy`: gives the hypotheses it was told, one a window, and keeps the calls."""

    def __init__(self, whisper: Whisper, *hypotheses: Hypothesis) -> None:
        self.left = list(hypotheses)
        self.windows: list[tuple[int, int]] = []
        self.prompts: list[list[int]] = []
        whisper._network.greedy = self  # type: ignore[assignment]

    def __call__(self, hidden: Any, prompts: Sequence[list[int]], *rest: Any) -> list[Hypothesis]:
        self.windows.append((hidden.shape[0], hidden.shape[1]))
        self.prompts += prompts
        cancelled = rest[-1]
        return [Hypothesis() if cancelled(row) else self.left.pop(0) for row in range(len(prompts))]


def said(*tokens: int, ended: str = "end", logprob: float = -0.1) -> Hypothesis:
    return Hypothesis(list(tokens), logprob, 0.0, ended)


def test_a_silent_utterance_costs_no_forward() -> None:
    whisper = backend()
    script = Script(whisper)
    ((result,),) = run(whisper.transcribe, [SttRequest(bytes(2 * RATE_HZ), language="en")])
    assert result == SttResult("", language="en", rejected="no_speech")
    assert script.windows == []


def test_a_long_utterance_is_heard_in_windows_and_joined() -> None:
    whisper = backend()
    script = Script(whisper, said(1, 2), said(5), said(6))
    ((so_far, long), (short,)) = run(
        whisper.transcribe, [request(50, language="en"), request(3, language="en")]
    )
    assert so_far == SttResult("w1 w2", final=False, language="en")
    assert (long.text, short.text) == ("w1 w2 w5", "w6")
    assert [positions for _, positions in script.windows] == [1500, 1500, 500]


def test_a_window_in_which_nobody_spoke_leaves_the_rest() -> None:
    whisper = backend()
    Script(whisper, said(), said(5))
    ((_, result),) = run(whisper.transcribe, [request(50, language="en")])
    assert (result.text, result.rejected) == ("w5", None)


def test_a_loop_in_a_short_window_is_heard_again_in_the_full_one() -> None:
    whisper = backend()
    script = Script(whisper, said(1, 1, 1, ended="loop"), said(1, 2))
    ((result,),) = run(whisper.transcribe, [request(2, language="en")])
    assert result.text == "w1 w2"
    assert script.windows == [(1, 500), (1, 1500)]


def test_a_loop_in_the_full_window_is_rejected() -> None:
    whisper = backend(WhisperOptions(encoder_window="full"))
    Script(whisper, said(1, 1, 1, ended="loop"))
    ((result,),) = run(whisper.transcribe, [request(2, language="en")])
    assert (result.text, result.rejected) == ("", "repetition")


def test_a_cancelled_utterance_gets_no_result_and_the_others_do() -> None:
    whisper = backend()
    script = Script(whisper, said(1), said(2))
    batch = Batch(enumerate([request(2, language="en")] * 3))
    results = whisper.transcribe(batch)
    assert next(results)[0] == 0
    batch.cancel(1)
    assert [(key, result.text) for key, result in results] == [(2, "w2")]
    assert len(script.windows) == 2


def test_cancelled_while_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    whisper = backend()
    batch = Batch(enumerate([request(2, language="en")]))
    Script(whisper)
    detect = whisper._detect

    def cancelled_first(group: Any, hidden: Any) -> None:
        batch.cancel(0)
        detect(group, hidden)

    monkeypatch.setattr(whisper, "_detect", cancelled_first)
    assert list(whisper.transcribe(batch)) == []


def test_the_language_is_detected_and_reported_for_each_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    whisper = backend()
    script = Script(whisper, said(1), said(2), said(5))
    heard = iter([DE, EN])

    def first_logits(hidden: Any, sot: int) -> Any:
        return torch.nn.functional.one_hot(torch.tensor([next(heard)]), 64).float()

    monkeypatch.setattr(whisper._network, "first_logits", first_logits)
    results = run(whisper.transcribe, [request(2), request(2), request(2, language="de-AT")])
    assert [result.language for (result,) in results] == ["de", "en", "de"]
    assert [prompt[1] for prompt in script.prompts] == [DE, EN, DE]


def test_a_language_the_checkpoint_lacks_fails_alone() -> None:
    whisper = backend()
    Script(whisper, said(1))
    (failed,), (good,), (odd,) = run(
        whisper.transcribe, [request(2, language="xx"), request(2, language="en"), SttRequest(b"abc")]
    )
    assert isinstance(failed, Failed) and "'xx'" in failed.message and "de, en" in failed.message
    assert good.text == "w1"
    assert isinstance(odd, Failed)
    with pytest.raises(ValueError, match="'xx'"):
        backend(WhisperOptions(language="xx"))


def test_what_was_said_before_stands_in_front_of_the_prompt() -> None:
    whisper = backend()
    script = Script(whisper, said(1))
    run(whisper.transcribe, [request(2, language="en", prompt="to be or")])
    assert script.prompts[0][:5] == [PREVIOUS, 2, 2, 2, SOT]


def test_a_gpu_decodes_windows_of_equal_length_together() -> None:
    whisper = backend(WhisperOptions(max_batch=2))
    whisper._device = "cuda"
    windows = [
        window
        for key, seconds in enumerate([2, 12, 3, 4])
        for window in whisper._utterance(key, request(seconds, language="en")).windows
    ]
    assert [[window.utterance.key for window in group] for group in whisper._groups(windows)] == [
        [0, 2],
        [1],
        [3],
    ]


def test_generate_takes_over_where_its_arguments_ask_for_more_than_greedy() -> None:
    whisper = backend(WhisperOptions(gen={"num_beams": 2, "max_new_tokens": 5, "task": "translate"}))
    whisper._network.greedy = None  # type: ignore[assignment,method-assign]
    ((result,),) = run(whisper.transcribe, [request(2, language="en", word_times=True)])
    assert isinstance(result, SttResult)
    assert len(result.text.split()) <= 5


needs_int8 = pytest.mark.skipif(
    not int8_linear.available(), reason="this torch has no int8 kernels for this CPU"
)


@needs_int8
@pytest.mark.parametrize("gen", [{}, {"num_beams": 2}])
def test_a_rounded_decoder_writes_in_every_way(gen: dict[str, Any]) -> None:
    whisper = backend(WhisperOptions(gen={"max_new_tokens": 5, **gen}), int8=True)
    assert not any(
        isinstance(each, torch.nn.Linear) for each in whisper._network.model.model.decoder.modules()
    )
    ((result,),) = run(whisper.transcribe, [request(2, word_times=True)])
    assert isinstance(result, SttResult) and result.words is not None
    assert result.language in ("en", "de")


@needs_int8
@pytest.mark.parametrize(
    ("options", "device", "dtype", "rounded"),
    [
        ({}, "cpu", "auto", True),
        ({}, "cpu", "float32", False),
        ({}, "cuda:0", "auto", False),
        ({"compile_mode": "default"}, "cpu", "auto", False),
        ({"decoder_weights": "own"}, "cpu", "auto", False),
        ({"decoder_weights": "int8"}, "cpu", "bfloat16", True),
    ],
)
def test_a_decoder_is_rounded_on_a_cpu_that_was_not_told_otherwise(
    options: dict[str, Any], device: str, dtype: str, rounded: bool
) -> None:
    assert Whisper(WhisperOptions(**options))._int8(device, dtype) is rounded


@pytest.mark.parametrize(
    ("options", "device", "told"),
    [({}, "cuda:0", "on cuda:0"), ({"compile_mode": "default"}, "cpu", "with a compile_mode")],
)
def test_rounding_that_was_asked_for_in_vain_is_an_error(
    options: dict[str, Any], device: str, told: str
) -> None:
    whisper = Whisper(WhisperOptions(decoder_weights="int8", **options))
    with pytest.raises(ValueError, match=rf"decoder_weights int8 was asked for {told}.*choose auto or own"):
        whisper._int8(device, "auto")


def test_a_cpu_without_the_kernels_keeps_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_linear, "available", lambda: False)
    assert not Whisper()._int8("cpu", "auto")
    with pytest.raises(ValueError, match="no int8 kernels"):
        Whisper(WhisperOptions(decoder_weights="int8"))._int8("cpu", "auto")


def test_unknown_generate_arguments_are_an_error() -> None:
    from actors.stt import generation

    generation.validate({"num_beams": 4, "return_timestamps": True, "repetition_penalty": 1.2})
    with pytest.raises(generation.UnknownGenerationArgument, match=r"'beams'.* Did you mean num_beams\?"):
        generation.validate({"beams": 4})
    with pytest.raises(generation.UnknownGenerationArgument, match="'sing'"):
        generation.validate({"task": "sing"})


def test_warm_up_runs_on_a_tiny_model() -> None:
    backend().warmup()


def test_memory_follows_the_dtype() -> None:
    half, single = (
        Whisper(WhisperOptions("openai/whisper-medium")).memory_bytes(d) for d in ("float16", "float32")
    )
    assert single - half == 2 * 769_000_000
    assert Whisper(WhisperOptions("someone/else")).memory_bytes("auto") == 0


def test_weights_are_counted_where_they_are_and_named_where_a_folder_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import save_file

    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my-tiny").mkdir()
    backend = Whisper(WhisperOptions("~/my-tiny"))
    named = backend.memory_bytes("float32")
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7)}, tmp_path / "my-tiny" / "model.safetensors")
    assert named - backend.memory_bytes("float32") == 4 * (39_000_000 - 22)


def test_an_english_only_vocabulary_has_no_language_in_its_prompt() -> None:
    import dataclasses

    english = dataclasses.replace(VOCABULARY, languages={}, tasks={})
    assert english.prompt("en", "transcribe", None) == [SOT, VOCABULARY.no_timestamps]


def test_each_utterance_has_the_same_static_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """`generate()` would size it by max_new_tokens, which follow the utterance: each size would compile anew."""
    import torch

    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    whisper = backend(WhisperOptions(compile_mode="default"))
    model = whisper._network.model
    make, lengths = model._prepare_static_cache, []

    def made(*args: Any, **fields: Any) -> Any:
        lengths.append(fields["max_cache_len"])
        return make(*args, **fields)

    model._prepare_static_cache = made
    whisper.warmup()
    run(whisper.transcribe, [request(0.5, language="en"), request(4, language="en", prompt="a word")])
    assert set(lengths) == {model.config.max_target_positions}


@pytest.mark.long
def test_warm_up_compiles_all_that_an_utterance_needs() -> None:
    import torch._dynamo

    whisper = backend(WhisperOptions(compile_mode="default", gen={"max_new_tokens": 40}))
    whisper.warmup()
    compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert compiled > 0
    run(
        whisper.transcribe, [request(1, language="en"), request(4, language="en", prompt="some words before")]
    )
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == compiled
