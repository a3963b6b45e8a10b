"""Qwen3-TTS: the package's real language model with tiny random weights (not its codec), and its own signatures."""

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.batch import Batch, run
from actors.messages import Failed, TtsRequest
from actors.tts.qwen3 import Qwen3, Qwen3Options
from tests.backends.stand_in import StandIn


def model(kind: str) -> Any:
    import torch
    from qwen_tts import Qwen3TTSModel

    def speak(**more: Any) -> Any:
        return [np.random.uniform(-0.3, 0.3, 24_000).astype(np.float32)], 24_000

    made: Any = StandIn(
        Qwen3TTSModel,
        generate_custom_voice=speak,
        generate_voice_design=speak,
        generate_voice_clone=speak,
        create_voice_clone_prompt=lambda **more: "clone",
        get_supported_speakers=lambda: ["aiden", "serena"],
    )
    made.model = SimpleNamespace(tts_model_type=kind, talker=torch.nn.Linear(1, 1))
    return made


def loaded(kind: str, **options: Any) -> tuple[Qwen3, Any]:
    backend, stand_in = Qwen3(Qwen3Options(**options)), model(kind)
    backend.install(stand_in, "cpu")
    return backend, stand_in


def test_loading_is_by_the_packages_own_arguments() -> None:
    from qwen_tts import Qwen3TTSModel

    source = inspect.getsource(Qwen3TTSModel.from_pretrained)
    assert "AutoModel.from_pretrained(pretrained_model_name_or_path, **kwargs)" in source


def test_a_named_speaker_with_language_seed_and_limit() -> None:
    backend, stand_in = loaded("custom_voice", instruct="Calm.", gen={"temperature": 0.7})
    requests = [TtsRequest("Guten Tag.", "Serena", "de"), TtsRequest("Guten Tag."), TtsRequest("x" * 400)]
    first, again, _ = run(backend.synthesize, requests)
    assert [piece.pcm for piece in first[:-1]] == [piece.pcm for piece in again[:-1]]
    calls = [call for name, call in stand_in.calls if name == "generate_custom_voice"]
    assert [(call["speaker"], call["language"]) for call in calls[:2]] == [
        ("serena", "German"),
        ("aiden", "Auto"),
    ]
    assert (calls[0]["instruct"], calls[0]["temperature"]) == ("Calm.", 0.7)
    assert [call["max_new_tokens"] for call in calls] == [120, 120, 1536]


def test_a_described_voice_and_a_cloned_one() -> None:
    backend, stand_in = loaded("voice_design", instruct="An old man.")
    run(backend.synthesize, [TtsRequest("Hello.", voice="anything")])
    assert stand_in.calls[-1][1]["instruct"] == "An old man."
    backend, stand_in = loaded("base", ref_audio="me.wav", ref_text="It is me.")
    run(backend.synthesize, [TtsRequest("Hello.")])
    assert [name for name, _ in stand_in.calls] == ["create_voice_clone_prompt", "generate_voice_clone"]
    assert stand_in.calls[1][1]["voice_clone_prompt"] == "clone"
    assert backend.voices == ()


@pytest.mark.parametrize(("kind", "flag"), [("voice_design", "--tts_instruct"), ("base", "--tts_ref_audio")])
def test_a_checkpoint_without_what_it_needs_names_the_flag(kind: str, flag: str) -> None:
    with pytest.raises(ValueError, match=flag):
        loaded(kind)


def test_unknown_voices_and_languages_fail_in_words() -> None:
    backend, _ = loaded("custom_voice")
    (voice,), (language,) = run(
        backend.synthesize, [TtsRequest("a", voice="Ryan"), TtsRequest("a", language="sw")]
    )
    assert isinstance(voice, Failed) and "Voices: aiden, serena" in voice.message
    assert isinstance(language, Failed) and "'sw'" in language.message


@pytest.fixture(scope="module")
def real() -> Qwen3:
    """Text to codec tokens by the real classes; each codec token becomes 80 ms of noise."""
    import torch
    from qwen_tts import Qwen3TTSModel
    from qwen_tts.core.models.configuration_qwen3_tts import Qwen3TTSConfig
    from qwen_tts.core.models.modeling_qwen3_tts import Qwen3TTSForConditionalGeneration

    small = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "num_code_groups": 4,
        "initializer_range": 0.5,
        "pad_token_id": None,
    }
    rope = {"rope_type": "default", "mrope_section": [4, 2, 2], "interleaved": True}
    config = Qwen3TTSConfig(
        talker_config={
            **small,
            "rope_scaling": rope,
            "vocab_size": 64 + 1024,
            "text_vocab_size": 300,
            "text_hidden_size": 32,
            "codec_eos_token_id": 70,
            "codec_think_id": 71,
            "codec_nothink_id": 72,
            "codec_think_bos_id": 73,
            "codec_think_eos_id": 74,
            "codec_pad_id": 75,
            "codec_bos_id": 76,
            "spk_id": {"aiden": 77},
            "spk_is_dialect": {"aiden": False},
            "codec_language_id": {"english": 78},
            "code_predictor_config": {**small, "vocab_size": 64},
        },
        tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="1b7",
        tts_model_type="custom_voice",
        im_start_token_id=1,
        im_end_token_id=2,
        tts_pad_token_id=3,
        tts_bos_token_id=4,
        tts_eos_token_id=5,
    )
    torch.manual_seed(0)
    network = Qwen3TTSForConditionalGeneration(config).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.3)

    def decode(encoded: Any) -> Any:
        codes = encoded[0]["audio_codes"]
        return [np.repeat(codes[:, 0].float().numpy() / 80, 1_920) - 0.4], 24_000

    network.speech_tokenizer = SimpleNamespace(decode=decode)

    def tokens(text: str, **more: Any) -> Any:
        return {"input_ids": torch.tensor([[6 + ord(letter) % 250 for letter in text]])}

    backend = Qwen3()
    backend.install(Qwen3TTSModel(network, tokens, {}), "cpu")
    return backend


def test_the_real_language_model_speaks_by_seed(real: Qwen3) -> None:
    real.warmup()
    first, again, other = (
        run(real.synthesize, [TtsRequest("Hello.", language="en", seed=seed)])[0] for seed in (1, 1, 2)
    )
    sounds = [b"".join(piece.pcm for piece in results[:-1]) for results in (first, again, other)]
    assert sounds[0] == sounds[1] != sounds[2] and len(sounds[0]) > 2_000


def test_a_cancel_stops_the_real_language_model_between_two_layers(real: Qwen3) -> None:
    batch = Batch([(1, TtsRequest("Hello.", language="en"))])
    steps: list[int] = []

    def before_a_step(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 3:
            batch.cancel(1)

    handle = real._model.model.talker.register_forward_pre_hook(before_a_step)
    assert list(real.synthesize(batch)) == []
    handle.remove()
    assert len(steps) == 3
