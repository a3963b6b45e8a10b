from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.batch import run
from actors.messages import Failed, TurnRequest, TurnResult
from actors.turn.log_mel import log_mel
from actors.turn.smart_turn import WINDOW_SAMPLES, SmartTurn


class RecordingSession:
    """Stands in for the ONNX model: keeps the features, answers 0, 0.1, 0.2 ..."""

    def __init__(self) -> None:
        self.features: list[NDArray[Any]] = []

    def run(self, names: None, inputs: dict[str, NDArray[Any]]) -> tuple[NDArray[Any]]:
        self.features.append(inputs["input_features"])
        return (np.arange(len(self.features[-1]))[:, None] / 10,)


@pytest.fixture
def smart_turn() -> SmartTurn:
    backend = SmartTurn()
    backend._session = RecordingSession()
    return backend


def speech(seconds: float) -> NDArray[np.int16]:
    return np.random.default_rng(0).normal(0, 3000, int(seconds * 16_000)).astype(np.int16)


def test_the_log_mel_is_that_of_whisper() -> None:
    from transformers import WhisperFeatureExtractor

    audio = speech(8).astype(np.float32) / np.float32(32_768)
    audio[:40_000] = 0
    expected = WhisperFeatureExtractor(chunk_length=8)(audio, sampling_rate=16_000, return_tensors="np")
    np.testing.assert_allclose(log_mel(audio[None]), expected.input_features, atol=1e-3)


def test_pauses_are_judged_in_one_forward_and_answered_in_order(smart_turn: SmartTurn) -> None:
    requests = [TurnRequest(speech(seconds).tobytes()) for seconds in (1, 2, 3)]
    assert run(smart_turn.complete, requests) == [[TurnResult(0.0)], [TurnResult(0.1)], [TurnResult(0.2)]]
    (features,) = smart_turn._session.features
    assert features.shape == (3, 80, 800) and features.dtype == np.float32


def test_only_the_last_8_seconds_are_heard(smart_turn: SmartTurn) -> None:
    tail = speech(8)
    longer = np.concatenate([np.full(16_000, 9000, np.int16), tail])
    run(smart_turn.complete, [TurnRequest(longer.tobytes()), TurnRequest(tail.tobytes())])
    (features,) = smart_turn._session.features
    np.testing.assert_array_equal(features[0], features[1])
    assert len(tail) == WINDOW_SAMPLES


def test_a_short_turn_has_silence_in_front(smart_turn: SmartTurn) -> None:
    run(smart_turn.complete, [TurnRequest(speech(2).tobytes())])
    (features,) = smart_turn._session.features
    assert features[0, :, :590].max() < features[0, :, 610:].mean()


def test_a_malformed_request_fails_alone(smart_turn: SmartTurn) -> None:
    empty, odd, good = run(
        smart_turn.complete, [TurnRequest(b""), TurnRequest(b"abc"), TurnRequest(speech(1).tobytes())]
    )
    assert isinstance(empty[0], Failed) and isinstance(odd[0], Failed)
    assert good == [TurnResult(0.0)]


@pytest.mark.e2e
def test_a_question_is_complete_and_half_of_it_is_less_so() -> None:
    from actors.assets import question

    backend = SmartTurn()
    backend.load("cpu", "auto", 1)
    backend.warmup()
    audio = np.frombuffer(question().read_bytes()[44:], "<i2")
    whole, half = TurnRequest(audio.tobytes()), TurnRequest(audio[: int(len(audio) * 0.4)].tobytes())
    (complete,), (paused,) = run(backend.complete, [whole, half])
    ((alone,),) = run(backend.complete, [whole])
    assert complete.probability > 0.8
    assert paused.probability < complete.probability
    assert alone.probability == pytest.approx(complete.probability, abs=1e-3)
