"""mlx-whisper: the library's real Whisper with tiny random weights, on MLX's CPU build."""

import json
from typing import Any

import numpy as np
import pytest

from actors.batch import run
from actors.messages import SttRequest, SttResult
from actors.stt.whisper_mlx import WhisperMlx, WhisperMlxOptions

RATE_HZ = 16_000


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> WhisperMlx:
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_whisper.whisper import ModelDimensions, Whisper

    folder = tmp_path_factory.mktemp("whisper")
    config = {
        "n_mels": 80,
        "n_audio_ctx": 1500,
        "n_audio_state": 32,
        "n_audio_head": 2,
        "n_audio_layer": 1,
        "n_vocab": 51865,
        "n_text_ctx": 448,
        "n_text_state": 32,
        "n_text_head": 2,
        "n_text_layer": 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    mx.random.seed(0)
    model = Whisper(ModelDimensions(**config), mx.float32)
    weights = {
        name: value if name == "alignment_heads" else mx.random.normal(value.shape) * 0.2
        for name, value in tree_flatten(model.parameters())
    }
    mx.save_safetensors(str(folder / "weights.safetensors"), weights)
    made = WhisperMlx(WhisperMlxOptions(str(folder), gen={"sample_len": 6}))
    made.load("cpu", "float32", 1)
    return made


def request(seconds: float, **fields: Any) -> SttRequest:
    audio = np.random.default_rng(0).normal(0, 3000, int(seconds * RATE_HZ)).astype("<i2")
    return SttRequest(audio.tobytes(), **fields)


def test_every_argument_is_known_to_the_library_and_the_language_is_told(backend: WhisperMlx) -> None:
    backend.warmup()
    ((given,), (told,)) = run(
        backend.transcribe, [request(2, language="de", prompt="names"), request(2, word_times=True)]
    )
    assert isinstance(given, SttResult) and given.final and given.language == "de"
    assert isinstance(told, SttResult) and told.language is not None
    assert told.logprob is not None
    assert backend.memory_bytes("auto") > 0


def test_an_unknown_argument_is_the_librarys_error(backend: WhisperMlx) -> None:
    odd = WhisperMlx(WhisperMlxOptions(backend._options.model_name, gen={"beams": 4}))
    odd.load("cpu", "float32", 1)
    with pytest.raises(TypeError, match="beams"):
        run(odd.transcribe, [request(2)])
