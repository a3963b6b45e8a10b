"""Feeds the VAD stage: whole frames in order, one request in flight, the model's state going round with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actors.messages import VAD_FRAME_SAMPLES, Result, VadRequest, VadResult
from orchestration.session.audio_buffer import SAMPLE_BYTES
from orchestration.session.outbox import Outbox

MAX_FRAMES = 64
"""Frames a request: 64 KB, which stays below what would go through the object store."""
_FRAME_BYTES = VAD_FRAME_SAMPLES * SAMPLE_BYTES


@dataclass(frozen=True, slots=True)
class Frame:
    start: int
    """Sample of the session."""
    probability: float

    @property
    def end(self) -> int:
        return self.start + VAD_FRAME_SAMPLES


class VadFeed:
    """Calls `scored` with frames in order, each exactly once; `failed` when their scores could not be had, after
    which the model starts afresh behind them."""

    def __init__(
        self,
        outbox: Outbox,
        scored: Callable[[list[Frame], float], None],
        failed: Callable[[list[Frame], str, float], None],
    ) -> None:
        self._outbox = outbox
        self._scored = scored
        self._failed = failed
        self._waiting = bytearray()
        self._state = b""
        self._context = b""
        self._in_flight = 0
        self._attempt = 1
        self.position = 0
        """Every frame before this sample has been scored."""

    def append(self, pcm: bytes, now: float) -> None:
        self._waiting += pcm
        self._pump(now)

    def _pump(self, now: float) -> None:
        frames = min(len(self._waiting) // _FRAME_BYTES, MAX_FRAMES)
        if self._in_flight or not frames:
            return
        pcm = bytes(self._waiting[: frames * _FRAME_BYTES])
        del self._waiting[: len(pcm)]
        self._in_flight = frames
        request = VadRequest(self._state, self._context, pcm)
        self._outbox.submit(request, f"vad-{self._attempt}", self._result, now)

    def _result(self, result: Result, now: float) -> None:
        first, count = self.position, self._in_flight
        self._in_flight = 0
        self.position += count * VAD_FRAME_SAMPLES
        if isinstance(result, VadResult) and len(result.probabilities) == count:
            self._state, self._context = result.state, result.context
            frames = _frames(first, result.probabilities)
        else:
            self._state = self._context = b""
            self._attempt += 1
            frames = _frames(first, [0.0] * count)
            self._failed(frames, getattr(result, "message", f"vad: expected {count} probabilities."), now)
        self._pump(now)
        self._scored(frames, now)


def _frames(first: int, probabilities: list[float]) -> list[Frame]:
    return [
        Frame(first + at * VAD_FRAME_SAMPLES, probability) for at, probability in enumerate(probabilities)
    ]
