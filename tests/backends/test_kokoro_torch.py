"""Kokoro on torch: the package's real model with random weights, small, in the published layout."""

import json
from pathlib import Path

import numpy as np
import pytest

from actors.tts.kokoro_model import Run, Stopped, Voice
from actors.tts.kokoro_torch import KokoroTorch

PHONEMES = "hello"
CONFIG = {
    "vocab": {letter: number for number, letter in enumerate(" abcdefghijklmnopqrstuvwxyz", start=1)},
    "n_token": 40,
    "hidden_dim": 512,
    "style_dim": 128,
    "n_layer": 1,
    "max_dur": 8,
    "dropout": 0.0,
    "n_mels": 16,
    "text_encoder_kernel_size": 5,
    "plbert": {
        "hidden_size": 32,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 512,
        "num_hidden_layers": 1,
    },
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5]],
        "resblock_kernel_sizes": [3],
        "upsample_initial_channel": 512,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from kokoro.model import KModel

    made = tmp_path_factory.mktemp("kokoro")
    (made / "config.json").write_text(json.dumps(CONFIG))
    torch.manual_seed(0)
    torch.save({}, made / "kokoro-v1_0.pth")
    model = KModel(repo_id="tiny", config=dict(CONFIG), model=str(made / "kokoro-v1_0.pth"))
    torch.save({name: child.state_dict() for name, child in model.named_children()}, made / "kokoro-v1_0.pth")
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> KokoroTorch:
    return KokoroTorch(str(folder), "cpu", 1, max_gap_ms=100_000)


@pytest.fixture
def voice() -> Voice:
    return Voice(np.random.default_rng(0).normal(0, 0.1, (510, 256)).astype(np.float32))


def test_phonemes_become_samples_and_lengths(model: KokoroTorch, voice: Voice) -> None:
    speech = model.speak(PHONEMES, voice, 1.0, Run())
    assert len(speech.frames) == len(PHONEMES) + 2
    [samples] = speech.sound
    assert samples.dtype == np.float32 and len(samples) == speech.frames.sum() * 600
    assert set(PHONEMES) <= set(model._model.vocab)


def test_a_stopped_run_is_left_between_layers(model: KokoroTorch, voice: Voice) -> None:
    run = Run()
    handle = model._model.bert.register_forward_hook(lambda *_: run.stop())
    with pytest.raises(Stopped):
        model.speak(PHONEMES, voice, 1.0, run)
    handle.remove()
    model.speak(PHONEMES, voice, 1.0, Run())


def test_mps_gets_spectrograms_without_complex_numbers(folder: Path, voice: Voice) -> None:
    from kokoro.custom_stft import CustomSTFT
    from kokoro.model import KModel

    model = KModel(
        repo_id="tiny",
        config=dict(CONFIG),
        model=str(folder / "kokoro-v1_0.pth"),
        disable_complex=True,
    )
    assert any(isinstance(module, CustomSTFT) for module in model.modules())
