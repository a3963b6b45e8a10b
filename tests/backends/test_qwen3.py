"""Qwen3-TTS against the package's own signatures."""

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stand_in import StandIn

from actors.batch import run
from actors.messages import Failed, TtsRequest
from actors.tts.qwen3 import Qwen3, Qwen3Options


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
