"""Supertonic against the package's own signatures."""

import inspect
from typing import Any

import numpy as np
import pytest

from actors.batch import run
from actors.messages import Failed, TtsDone, TtsRequest
from actors.tts import supertonic as ours
from actors.tts.supertonic import Supertonic, SupertonicOptions
from tests.backends.stand_in import StandIn


def test_the_packages_languages_and_arguments_are_the_ones_we_name() -> None:
    from supertonic import TTS
    from supertonic.config import AVAILABLE_MODELS, SUPPORTED_LANGUAGES

    assert set(ours._LANGUAGES.split()) == set(SUPPORTED_LANGUAGES)
    assert SupertonicOptions().model_name in AVAILABLE_MODELS and "supertonic" in AVAILABLE_MODELS
    inspect.signature(TTS).bind(
        model="x", model_dir=None, auto_download=True, intra_op_num_threads=1, inter_op_num_threads=1
    )


@pytest.fixture
def backend() -> tuple[Supertonic, Any]:
    from supertonic import TTS

    def synthesize(text: str, **more: Any) -> Any:
        if "☃" in text:
            raise ValueError("Found 1 unsupported character(s): ['☃']")
        return np.full((1, 44_100), 0.3, np.float32), np.array([1.0])

    model: Any = StandIn(TTS, synthesize=synthesize, get_voice_style=lambda voice_name: voice_name)
    model.sample_rate = 44_100
    made = Supertonic()
    made.install(model)
    return made, model


def test_voice_language_and_speed_reach_the_package(backend: tuple[Supertonic, Any]) -> None:
    made, model = backend
    results = run(made.synthesize, [TtsRequest("Hallo.", "f2", "de", speed=3.0), TtsRequest("Hi.")])
    assert [each[-1].samples > 44_000 for each in results] == [True, True]
    spoken = [call for name, call in model.calls if name == "synthesize"]
    assert [(call["voice_style"], call["lang"], call["speed"]) for call in spoken] == [
        ("F2", "de", 2.0),
        ("M1", "na", 1.0),
    ]


def test_what_the_package_cannot_say_fails_alone(backend: tuple[Supertonic, Any]) -> None:
    (odd,), good = run(backend[0].synthesize, [TtsRequest("a ☃."), TtsRequest("Hi.")])
    assert isinstance(odd, Failed) and "unsupported character" in odd.message
    assert isinstance(good[-1], TtsDone)
