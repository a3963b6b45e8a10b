"""A backend that computes nothing, so that what is measured around it is transport."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import (
    LlmDone,
    LlmRequest,
    LlmText,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsDone,
    TtsRequest,
    TurnRequest,
    TurnResult,
    VadRequest,
    VadResult,
)


@dataclass(frozen=True)
class EchoOptions:
    max_batch: int = 64
    """Requests at once."""
    step_s: float = 0.0
    """Seconds from one step of text to the next; the first comes at once."""


class Echo:
    """Every stage at once.  VAD and STT answer with the moment (monotonic, s) at which they had the request."""

    last_step = 0.0
    """When a step was last made, monotonic s."""

    def __init__(self, options: EchoOptions) -> None:
        self._options = options

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streams=True, continuous=True, max_batch=self._options.max_batch, rate_hz=24_000)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Nothing to load."""

    def warmup(self) -> None:
        """Nothing to warm up."""

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def score(self, batch: Batch[VadRequest]) -> Iterator[tuple[Key, VadResult]]:
        for key, request in _joining(batch):
            frames = len(request.frames) // 1024
            yield key, VadResult([time.monotonic()] * frames, request.state, request.frames[-128:])

    def complete(self, batch: Batch[TurnRequest]) -> Iterator[tuple[Key, TurnResult]]:
        for key, _ in _joining(batch):
            yield key, TurnResult(1.0)

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult]]:
        for key, _ in _joining(batch):
            yield key, SttResult("", logprob=time.monotonic())

    def generate(self, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, LlmText | LlmDone]]:
        left: dict[Key, int] = {}
        while True:
            for key, request in batch.take():
                left[key] = request.max_tokens or 1
            left = {key: tokens for key, tokens in left.items() if not batch.cancelled(key)}
            if not left:
                return
            Echo.last_step = time.monotonic()
            for key in list(left):
                left[key] -= 1
                yield key, LlmText("word ")
                if left[key] == 0:
                    del left[key]
                    yield key, LlmDone("stop")
            if left:
                time.sleep(self._options.step_s)

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone]]:
        for key, _ in _joining(batch):
            yield key, TtsAudio(bytes(9600), 24_000)
            yield key, TtsDone(4800)


def _joining(batch: Batch[Any]) -> Iterator[tuple[Key, Any]]:
    while taken := batch.take():
        yield from taken
