"""KittenTTS against the package's own signatures."""

import inspect
from typing import Any

import numpy as np

from actors.batch import Batch, run
from actors.messages import TtsDone, TtsRequest
from actors.tts.kitten import VOICES, Kitten
from tests.backends.stand_in import StandIn


def test_the_packages_voices_are_the_ones_we_name() -> None:
    from kittenml import KittenTTSOnnx
    from kittenml.kittentts_legacy import onnx_model

    source = inspect.getsource(onnx_model.KittenTTS_1_Onnx.__init__)
    assert str(list(VOICES)) in source
    inspect.signature(KittenTTSOnnx).bind("folder", backend="cpu")


def loaded() -> tuple[Kitten, Any]:
    from kittenml import KittenTTSOnnx

    def generate_stream(text: str, **more: Any) -> Any:
        for _ in range(3):
            yield np.full(12_000, 0.3, np.float32)

    model: Any = StandIn(KittenTTSOnnx, generate_stream=generate_stream)
    model.available_voices = list(VOICES)
    backend = Kitten()
    backend.install(model)
    return backend, model


def test_sentences_are_streamed_in_the_voice_asked_for() -> None:
    backend, model = loaded()
    (results,) = run(backend.synthesize, [TtsRequest("One. Two. Three.", voice="leo", speed=9.0)])
    assert isinstance(results[-1], TtsDone) and results[-1].samples > 36_000
    ((_, call),) = model.calls
    assert (call["voice"], call["speed"], call["clean_text"]) == ("Leo", 2.0, True)


def test_a_cancel_stops_before_the_next_sentence() -> None:
    backend, _ = loaded()
    batch = Batch([(1, TtsRequest("One. Two. Three."))])
    results = backend.synthesize(batch)
    next(results)
    batch.cancel(1)
    assert list(results) == []
