"""Moonshine, Parakeet and Qwen3-ASR: transformers' real classes with tiny random weights, loaded from a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.batch import Batch, run
from actors.messages import SttRequest, Word
from actors.stt.listening import Listener
from actors.stt.moonshine import Moonshine, MoonshineOptions
from actors.stt.parakeet_tdt import ParakeetTdt, ParakeetTdtOptions, words
from actors.stt.qwen3_asr import Qwen3Asr, Qwen3AsrOptions
from tests.actors.stt.tiny_checkpoints import moonshine, parakeet, qwen3_asr

RATE_HZ = 16_000
Make = Callable[[Path], Listener]


def request(seconds: float, seed: int = 0, **fields: Any) -> SttRequest:
    audio = np.random.default_rng(seed).normal(0, 3000, int(seconds * RATE_HZ)).astype("<i2")
    return SttRequest(audio.tobytes(), language="en", **fields)


def loaded(backend: Any) -> Any:
    backend.load("cpu", "float32", 1)
    return backend


MAKERS: dict[str, Make] = {
    "moonshine": lambda folder: loaded(Moonshine(MoonshineOptions(str(moonshine(folder))))),
    "parakeet-tdt": lambda folder: loaded(ParakeetTdt(ParakeetTdtOptions(str(parakeet(folder))))),
    "parakeet-ctc": lambda folder: loaded(ParakeetTdt(ParakeetTdtOptions(str(parakeet(folder, "ctc"))))),
    "qwen3-asr": lambda folder: loaded(Qwen3Asr(Qwen3AsrOptions(str(qwen3_asr(folder))))),
}


@pytest.fixture(params=MAKERS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Listener:
    made: Listener = MAKERS[request.param](tmp_path)
    return made


def test_a_checkpoint_is_loaded_warmed_up_and_heard(backend: Any) -> None:
    backend.warmup()
    ((first,), (second,)) = run(backend.transcribe, [request(2), request(2, seed=1)])
    assert first.text and first.final and first.text != second.text
    assert backend.memory_bytes("float32") > backend.memory_bytes("bfloat16") > 0


def test_a_moment_of_sound_is_heard_too(backend: Any) -> None:
    ((result,),) = run(backend.transcribe, [request(0.02)])
    assert result.final


def test_what_is_heard_together_is_what_is_heard_alone(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The features of Moonshine and Qwen3-ASR are another shade where padding follows: equal lengths for an equal text.
    requests = [request(2), request(1.5 if isinstance(backend, ParakeetTdt) else 2, seed=1)]
    alone = run(backend.transcribe, requests)
    monkeypatch.setattr(type(backend), "together", 2)
    assert run(backend.transcribe, requests) == alone


@pytest.mark.parametrize("name", ["moonshine", "parakeet-tdt", "qwen3-asr"])
def test_decoding_stops_at_the_next_token_of_a_cancelled_utterance(name: str, tmp_path: Path) -> None:
    backend: Any = MAKERS[name](tmp_path)
    batch = Batch([(1, request(20))])
    steps: list[int] = []

    def before_a_step(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 3:
            batch.cancel(1)

    backend._model.register_forward_pre_hook(before_a_step)
    assert list(backend.transcribe(batch)) == []
    assert len(steps) == 3


def test_a_checkpoint_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a 'moonshine' model; choose a checkpoint of parakeet_tdt"):
        loaded(ParakeetTdt(ParakeetTdtOptions(str(moonshine(tmp_path)))))


def test_qwen3_asr_tells_the_language_that_the_model_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    backend: Any = MAKERS["qwen3-asr"](tmp_path)
    asked: list[str] = []

    def generate(input_ids: Any, **more: Any) -> Any:
        asked.append(backend._processor.tokenizer.decode(input_ids[0]))
        written = backend._processor.tokenizer.encode("language German<asr_text>guten Tag")
        return torch.cat([input_ids, torch.tensor([written])], dim=1)

    monkeypatch.setattr(backend._model, "generate", generate)
    unknown = SttRequest(request(2).audio, prompt="names")
    ((told,), (given,)) = run(backend.transcribe, [unknown, request(2)])
    assert (told.text, told.language) == ("guten Tag", "de")
    assert given.language == "en"
    assert "names" in asked[0] and "names" not in asked[1]
    assert "English" in asked[1] and "English" not in asked[0]


def test_parakeet_joins_tokens_to_words() -> None:
    tokens = [
        {"token": " he", "start": 0.08, "end": 0.16},
        {"token": "llo", "start": 0.16, "end": 0.32},
        {"token": ".", "start": 0.32, "end": 0.32},
        {"token": " you", "start": 0.4, "end": 0.48},
    ]
    assert words(tokens) == [Word("hello.", 80, 320), Word("you", 400, 480)]


def test_sizes_and_languages_are_known_before_the_weights_are_here() -> None:
    languages = ParakeetTdt().languages
    assert languages is not None and len(languages) == 25
    assert ParakeetTdt(ParakeetTdtOptions("nvidia/parakeet-tdt-0.6b-v2")).languages == ("en",)
    assert Moonshine(MoonshineOptions("UsefulSensors/moonshine-tiny-ja")).languages == ("ja",)
    assert Qwen3Asr().memory_bytes("float16") > 1e9
