"""mlx-audio's Whisper against the library's own signatures."""

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np

from actors.batch import run
from actors.messages import SttRequest, Word
from actors.stt.mlx_audio_whisper import MlxAudioWhisper, MlxAudioWhisperOptions
from tests.backends.stand_in import StandIn


def test_the_librarys_answer_has_text_language_and_segments() -> None:
    from mlx_audio.stt.models.whisper.whisper import STTOutput
    from mlx_audio.stt.utils import load_model

    assert {"text", "language", "segments"} <= set(inspect.signature(STTOutput).parameters)
    inspect.signature(load_model).bind("folder")


def test_language_prompt_and_word_times_reach_the_library() -> None:
    from mlx_audio.stt.models.whisper.whisper import Model

    segment = {
        "avg_logprob": -0.2,
        "no_speech_prob": 0.0,
        "words": [{"word": " hello", "start": 0.1, "end": 0.4}],
    }
    model: Any = StandIn(
        Model,
        generate=lambda audio, **more: SimpleNamespace(text=" hello", language="en", segments=[segment]),
    )
    backend = MlxAudioWhisper(MlxAudioWhisperOptions(gen={"task": "translate"}))
    backend._model = model
    audio = np.random.default_rng(0).normal(0, 3000, 32_000).astype("<i2").tobytes()
    ((heard,),) = run(backend.transcribe, [SttRequest(audio, "de", prompt="names", word_times=True)])
    assert (heard.text, heard.language, heard.logprob) == ("hello", "de", -0.2)
    assert heard.words == [Word("hello", 100, 400)]
    ((_, call),) = model.calls
    assert (call["language"], call["initial_prompt"], call["word_timestamps"]) == ("de", "names", True)
    assert call["task"] == "translate"
