"""Pocket TTS: the package's real classes with tiny random weights, and its own signatures."""

import threading
from typing import Any

import numpy as np
import pytest

from actors import languages
from actors.batch import Batch, run
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest
from actors.tts.pocket import _VOICES, Pocket, PocketOptions


def test_the_packages_voices_and_languages_are_the_ones_we_name() -> None:
    from pocket_tts.models.tts_model import CONFIGS_DIR
    from pocket_tts.utils.utils import _ORIGINS_OF_PREDEFINED_VOICES

    assert set(_VOICES.split()) == set(_ORIGINS_OF_PREDEFINED_VOICES)
    for code in ("en", "fr", "de", "pt", "it", "es", "nl"):
        assert (CONFIGS_DIR / f"{languages.name(code).lower()}.yaml").exists(), code


class Scripted:
    """Stands in for the weights: the real signatures, frames of noise from torch's generator."""

    sample_rate = 24_000

    def __init__(self) -> None:
        self.calls: list[tuple[Any, str, int]] = []
        self.stop: threading.Event | None = None

    def get_state_for_audio_prompt(self, audio_conditioning: Any, truncate: bool = False) -> Any:
        return {"voice": audio_conditioning}

    def generate_audio_stream(
        self,
        model_state: Any,
        text_to_generate: str,
        max_tokens: int = 50,
        frames_after_eos: int | None = None,
        copy_state: bool = True,
        stop: threading.Event | None = None,
    ) -> Any:
        import torch

        self.calls.append((model_state, text_to_generate, max_tokens))
        self.stop = stop
        for _ in range(6):
            yield torch.rand(1_920) - 0.5


def test_the_stand_in_has_the_packages_signatures() -> None:
    import inspect

    from pocket_tts import TTSModel

    for name in ("get_state_for_audio_prompt", "generate_audio_stream"):
        ours, theirs = (inspect.signature(getattr(cls, name)) for cls in (Scripted, TTSModel))
        assert list(ours.parameters) == list(theirs.parameters), name
    load = inspect.signature(TTSModel.load_model)
    load.bind(language="english", config=None, temp=0.3, eos_threshold=None)
    assert isinstance(TTSModel.sample_rate, property)


@pytest.fixture
def pocket() -> tuple[Pocket, Scripted]:
    backend, model = Pocket(PocketOptions(voice="alba")), Scripted()
    backend.install(model, "cpu")
    return backend, model


def test_a_clause_is_streamed_in_the_voice_asked_for(pocket: tuple[Pocket, Scripted]) -> None:
    backend, model = pocket
    (results,) = run(backend.synthesize, [TtsRequest("Hello.", voice="jean")])
    assert model.calls == [({"voice": "jean"}, "Hello.", 50)]
    assert isinstance(results[-1], TtsDone)
    pieces = [len(result.pcm) // 2 for result in results if isinstance(result, TtsAudio)]
    assert len(pieces) >= 6 and sum(pieces) == results[-1].samples


def test_a_cancel_ends_the_stream_and_tells_the_package(pocket: tuple[Pocket, Scripted]) -> None:
    backend, model = pocket
    batch = Batch([(1, TtsRequest("Hello."))])
    results = backend.synthesize(batch)
    next(results)
    batch.cancel(1)
    assert list(results) == []
    assert model.stop is not None and model.stop.is_set()


def test_languages_are_the_models(pocket: tuple[Pocket, Scripted]) -> None:
    backend, _ = pocket
    ((failed,),) = run(backend.synthesize, [TtsRequest("Bonjour.", language="fr")])
    assert isinstance(failed, Failed) and "speaks en only" in failed.message
    assert Pocket(PocketOptions(language="german_24l")).languages == ("de",)
    assert Pocket(PocketOptions(language="fr")).languages == ("fr",)


def test_an_operators_recording_is_a_voice_and_a_clients_is_not() -> None:
    backend, model = Pocket(PocketOptions(voice="/voices/me.wav")), Scripted()
    backend.install(model, "cpu")
    (spoken,), (refused,) = (
        run(backend.synthesize, [request])[0][-1:]
        for request in (TtsRequest("Hi."), TtsRequest("Hi.", voice="/etc/passwd.wav"))
    )
    assert isinstance(spoken, TtsDone) and model.calls[0][0] == {"voice": "/voices/me.wav"}
    assert isinstance(refused, Failed) and "not known" in refused.message
    assert np.isfinite(spoken.samples)


CONFIG = """
flow_lm:
  insert_bos_before_voice: true
  dtype: float32
  flow: {depth: 1, dim: 32}
  transformer: {d_model: 32, hidden_scale: 2, max_period: 10000, num_heads: 2, num_layers: 1}
  lookup_table: {dim: 32, n_bins: %(bins)d, tokenizer: tokenizers, tokenizer_path: %(tokenizer)s}
mimi:
  dtype: float32
  sample_rate: 24000
  inner_dim: 8
  outer_dim: 32
  channels: 1
  frame_rate: 12.5
  seanet: {dimension: 32, channels: 1, n_filters: 4, n_residual_layers: 1, ratios: [6, 5, 4], kernel_size: 7,
    residual_kernel_size: 3, last_kernel_size: 3, dilation_base: 2, pad_mode: constant, compress: 2}
  transformer: {d_model: 32, num_heads: 2, num_layers: 1, layer_scale: 0.01, context: 250, dim_feedforward: 64,
    input_dimension: 32, output_dimensions: [32]}
  quantizer: {dimension: 8, output_dimension: 32}
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Pocket:
    import soundfile
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("pocket")
    letters = ["<unk>", "\u2581", *map(chr, range(33, 127))]
    built = Tokenizer(models.BPE({letter: at for at, letter in enumerate(letters)}, [], unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.Metaspace()
    built.decoder = decoders.Metaspace()
    built.save(str(folder / "tokenizer.json"))
    config = folder / "tiny.yaml"
    config.write_text(CONFIG % {"bins": len(letters), "tokenizer": folder / "tokenizer.json"})
    voice = folder / "me.wav"
    soundfile.write(voice, np.random.default_rng(0).normal(0, 0.1, 24_000), 24_000)
    torch.manual_seed(0)
    backend = Pocket(PocketOptions(model_name=str(config), voice=str(voice), temperature=0.7))
    backend.load("cpu", "auto", 1)
    for parameter in backend._model.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.3)
    backend._states.clear()
    return backend


def sound(results: list[Any]) -> Any:
    pcm = b"".join(result.pcm for result in results if isinstance(result, TtsAudio))
    return np.frombuffer(pcm, "<i2").astype(int)


def test_the_real_model_speaks_in_a_cloned_voice_by_seed(real: Pocket) -> None:
    real.warmup()
    first, again, other = run(
        real.synthesize, [TtsRequest("Hello."), TtsRequest("Hello."), TtsRequest("Hello.", seed=1)]
    )
    assert isinstance(first[-1], TtsDone) and first[-1].samples > 1_920
    assert np.abs(sound(first) - sound(again)).max() <= 2
    assert len(sound(first)) != len(sound(other)) or np.abs(sound(first) - sound(other)).max() > 50


def test_the_real_model_stops_when_the_clause_is_cancelled(real: Pocket) -> None:
    (whole,) = run(real.synthesize, [TtsRequest("Hello there, how are you?")])
    batch = Batch([(1, TtsRequest("Hello there, how are you?"))])
    before = set(threading.enumerate())
    heard: list[Any] = []
    for _, result in real.synthesize(batch):
        heard.append(result)
        batch.cancel(1)
    assert len(heard) == 1 and len(sound(heard)) < len(sound(whole))
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive(), "the package still works on the clause"
