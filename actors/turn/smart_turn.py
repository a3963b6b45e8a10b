"""Smart Turn v3.2 on ONNX Runtime: has the person finished, or only paused?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from actors import onnx_session
from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import STT_RATE_HZ, Failed, TurnRequest, TurnResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_SAMPLES = 8 * STT_RATE_HZ
INT16_SCALE = 32_768.0
WORKING_BYTES = 90_000_000
"""ONNX Runtime's session over the 8.7 MB model, and a batch of features."""


@dataclass(frozen=True)
class SmartTurnOptions:
    """Options of `SmartTurn`."""

    model: str = "smart-turn-v3"
    """Asset name, or path of the ONNX file (input `input_features` [B, 80, 800], output a probability)."""
    max_batch: int = 8
    """Pauses judged in one forward, at most."""


class SmartTurn:
    """Probability that the speaker of a paused turn has finished.

    Good on conversational speech, overconfident on read speech: keep a silence fallback beside it.
    """

    def __init__(self, options: SmartTurnOptions | None = None) -> None:
        self._options = options or SmartTurnOptions()
        self._session: Any = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(devices=("cpu",), max_batch=self._options.max_batch)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load the model; its number format is the file's (int8 weights) whatever `dtype` says."""
        from actors import assets

        self._session = onnx_session.open_model(assets.resolve(self._options.model), device, threads)

    def warmup(self) -> None:
        silence = TurnRequest(audio=bytes(2 * STT_RATE_HZ))
        list(self.complete(Batch([(0, silence), (1, silence)])))

    def memory_bytes(self, dtype: str) -> int:
        return WORKING_BYTES

    def complete(self, batch: Batch[TurnRequest]) -> Iterator[tuple[Key, TurnResult | Failed]]:
        """Yield the probability of each request; audio before the last 8 s is not looked at."""
        import numpy as np

        from actors.turn.log_mel import log_mel

        taken = batch.take()
        whole = [
            (key, request.audio) for key, request in taken if request.audio and len(request.audio) % 2 == 0
        ]
        if whole:
            features = log_mel(np.stack([_window(audio) for _, audio in whole]))
            (probabilities,) = self._session.run(None, {"input_features": features})
            for (key, _), probability in zip(whole, probabilities, strict=True):
                yield key, TurnResult(float(probability[0]))
        for key, request in taken:
            if not request.audio or len(request.audio) % 2:
                yield key, Failed(f"turn: {len(request.audio)} bytes of audio; expected int16 samples.")


def _window(audio: bytes) -> NDArray[np.float32]:
    """The last 8 s as float32[128000], silence in front, with zero mean and unit variance."""
    import numpy as np

    samples = np.frombuffer(audio, "<i2")[-WINDOW_SAMPLES:].astype(np.float32) / INT16_SCALE
    window = np.zeros(WINDOW_SAMPLES, np.float32)
    window[-len(samples) :] = samples
    normalised: NDArray[np.float32] = (window - window.mean()) / np.sqrt(window.var() + 1e-7)
    return normalised
