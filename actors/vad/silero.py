"""Silero VAD v6 on ONNX Runtime: one forward scores a frame of every session at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from actors import onnx_session
from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import (
    STT_RATE_HZ,
    VAD_CONTEXT_SAMPLES,
    VAD_FRAME_SAMPLES,
    Failed,
    VadRequest,
    VadResult,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Audio = NDArray[np.int16]
    State = NDArray[np.float32]

STATE_UNITS = 128
STATE_BYTES = 2 * STATE_UNITS * 4
INT16_SCALE = 32_768.0
WORKING_BYTES = 40_000_000
"""ONNX Runtime's session over the 2.3 MB model."""


@dataclass(frozen=True)
class SileroOptions:
    """Options of `Silero`."""

    model: str = "silero-vad"
    """Asset name, or path of the ONNX file (inputs `input` [B, 576], `state` [2, B, 128], `sr`)."""
    max_batch: int = 256
    """Sessions scored in one forward, at most."""


@dataclass(slots=True)
class _Stream:
    """One request while its frames are scored."""

    key: Key
    frames: Audio
    """int16[k, 576]: each frame behind the 64 samples before it."""
    state: State
    """float32[2, 128]."""
    probabilities: list[float]


class Silero:
    """Speech probability of 32 ms frames at 16 kHz."""

    def __init__(self, options: SileroOptions | None = None) -> None:
        self._options = options or SileroOptions()
        self._session: Any = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(devices=("cpu",), max_batch=self._options.max_batch)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load the model; it is float32 on `device` cpu whatever `dtype` says."""
        from actors import assets

        self._session = onnx_session.open_model(assets.resolve(self._options.model), device, threads)

    def warmup(self) -> None:
        silence = VadRequest(state=b"", context=b"", frames=bytes(2 * VAD_FRAME_SAMPLES))
        for sessions in (1, 8):
            list(self.score(Batch(enumerate([silence] * sessions))))

    def memory_bytes(self, dtype: str) -> int:
        return WORKING_BYTES

    def score(self, batch: Batch[VadRequest]) -> Iterator[tuple[Key, VadResult | Failed]]:
        """Yield the probabilities of each request's frames, with the state and context that follow them."""
        streams: list[_Stream] = []
        for key, request in batch.take():
            problem = _problem(request)
            if problem is None:
                streams.append(_open(key, request))
            else:
                yield key, Failed(problem)
        # Longest first: those that still have a frame i are always the front of the list.
        streams.sort(key=lambda stream: -len(stream.frames))
        for index in range(len(streams[0].frames) if streams else 0):
            self._step([stream for stream in streams if len(stream.frames) > index], index)
        for stream in streams:
            context = stream.frames[-1, -VAD_CONTEXT_SAMPLES:].tobytes()
            yield stream.key, VadResult(stream.probabilities, stream.state.tobytes(), context)

    def _step(self, streams: list[_Stream], index: int) -> None:
        """Score frame `index` of all `streams`."""
        import numpy as np

        frames = np.stack([stream.frames[index] for stream in streams]).astype(np.float32) / INT16_SCALE
        state = np.stack([stream.state for stream in streams], axis=1)
        inputs = {"input": frames, "state": state, "sr": np.array(STT_RATE_HZ, np.int64)}
        probabilities, state = self._session.run(["output", "stateN"], inputs)
        for row, stream in enumerate(streams):
            stream.probabilities.append(float(probabilities[row, 0]))
            stream.state = state[:, row]


def _problem(request: VadRequest) -> str | None:
    """What is wrong with `request`, in words."""
    frame_bytes = 2 * VAD_FRAME_SAMPLES
    if not request.frames or len(request.frames) % frame_bytes:
        return f"vad: {len(request.frames)} bytes of frames; a frame is {frame_bytes} bytes."
    if len(request.state) not in (0, STATE_BYTES):
        return f"vad: a state of {len(request.state)} bytes; it is {STATE_BYTES}, or empty for a new stream."
    if len(request.context) not in (0, 2 * VAD_CONTEXT_SAMPLES):
        return f"vad: a context of {len(request.context)} bytes; it is {2 * VAD_CONTEXT_SAMPLES}, or empty."
    return None


def _open(key: Key, request: VadRequest) -> _Stream:
    import numpy as np

    context = request.context or bytes(2 * VAD_CONTEXT_SAMPLES)
    audio = np.frombuffer(context + request.frames, "<i2")
    frames = np.lib.stride_tricks.sliding_window_view(audio, VAD_CONTEXT_SAMPLES + VAD_FRAME_SAMPLES)
    state = np.frombuffer(request.state or bytes(STATE_BYTES), "<f4").reshape(2, STATE_UNITS)
    return _Stream(key, frames[::VAD_FRAME_SAMPLES], state, [])
