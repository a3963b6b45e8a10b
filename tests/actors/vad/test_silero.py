from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.batch import run
from actors.messages import Failed, VadRequest, VadResult
from actors.vad.silero import Silero


class SummingSession:
    """Stands in for the ONNX model: the state counts frames, the probability is the state plus the loudest sample."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def run(self, names: list[str], inputs: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        frames, state = inputs["input"], inputs["state"]
        assert frames.dtype == state.dtype == np.float32
        self.batches.append(len(frames))
        state = state + 1
        return state[0, :, :1] + np.abs(frames).max(axis=1, keepdims=True), state


@pytest.fixture
def silero() -> Silero:
    backend = Silero()
    backend._session = SummingSession()
    return backend


def request(audio: NDArray[np.int16], after: VadResult | None = None) -> VadRequest:
    return VadRequest(after.state if after else b"", after.context if after else b"", audio.tobytes())


def frames(count: int, level: int = 0) -> NDArray[np.int16]:
    return np.full(count * 512, level, np.int16)


def test_sessions_with_different_frame_counts_share_each_forward(silero: Silero) -> None:
    results = run(silero.score, [request(frames(count)) for count in (1, 3, 2)])
    assert [[round(p) for p in result[0].probabilities] for result in results] == [[1], [1, 2, 3], [1, 2]]
    assert silero._session.batches == [3, 2, 1]


def test_the_context_is_the_end_of_the_last_frame(silero: Silero) -> None:
    audio = np.arange(1024, dtype=np.int16)
    ((result,),) = run(silero.score, [request(audio)])
    assert result.context == audio[-64:].tobytes()
    loud_context = VadResult([], b"", np.full(64, 16384, np.int16).tobytes())
    ((after,),) = run(silero.score, [request(frames(1), loud_context)])
    assert after.probabilities == [1.5]


def test_a_malformed_request_fails_alone(silero: Silero) -> None:
    bad = [
        VadRequest(b"", b"", b""),
        VadRequest(b"", b"", bytes(100)),
        VadRequest(bytes(8), b"", bytes(1024)),
        VadRequest(b"", bytes(8), bytes(1024)),
    ]
    *failed, (good,) = run(silero.score, [*bad, request(frames(1))])
    assert all(isinstance(result, Failed) for (result,) in failed)
    assert isinstance(good, VadResult)


def test_a_batch_whose_requests_were_all_cancelled_yields_nothing(silero: Silero) -> None:
    assert run(silero.score, []) == []


@pytest.mark.e2e
def test_batched_one_by_one_and_in_pieces_score_the_same() -> None:
    from actors.assets import samples

    silero = Silero()
    silero.load("cpu", "auto", 1)
    silero.warmup()
    speech = []
    for sample in samples()[:5]:
        speech.append(np.frombuffer(sample.path.read_bytes()[44:], "<i2")[: 40 * 512])
    speech = [audio[: len(audio) // 512 * 512] for audio in speech]
    together = [result for (result,) in run(silero.score, [request(audio) for audio in speech])]
    for audio, batched in zip(speech, together, strict=True):
        ((alone,),) = run(silero.score, [request(audio)])
        ((first,),) = run(silero.score, [request(audio[: 10 * 512])])
        assert isinstance(first, VadResult)
        ((rest,),) = run(silero.score, [request(audio[10 * 512 :], first)])
        np.testing.assert_allclose(batched.probabilities, alone.probabilities, atol=1e-4)
        np.testing.assert_allclose(first.probabilities + rest.probabilities, alone.probabilities, atol=1e-4)
        np.testing.assert_allclose(
            np.frombuffer(batched.state, "<f4"), np.frombuffer(alone.state, "<f4"), atol=1e-3
        )
        assert max(alone.probabilities) > 0.9


@pytest.mark.e2e
def test_silence_and_a_hum_are_not_speech() -> None:
    silero = Silero()
    silero.load("cpu", "auto", 1)
    hum = (2000 * np.sin(2 * np.pi * 100 * np.arange(30 * 512) / 16_000)).astype(np.int16)
    for (result,) in run(silero.score, [request(frames(30)), request(hum)]):
        assert max(result.probabilities) < 0.5
