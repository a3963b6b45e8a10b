"""Backends with scripted behaviour, for tests of what hosts them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import (
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsDone,
    TtsRequest,
    VadRequest,
    VadResult,
)


@dataclass(frozen=True)
class CounterOptions:
    step_s: float = 0.0
    max_batch: int = 4
    fail_load: bool = False


class Counter:
    """An LLM that counts: "0 1 2 ... n-1" for `max_tokens` n, going on after what was delivered.

    A last message "raise" raises, "kill" kills the process at the third token.
    """

    def __init__(self, options: CounterOptions) -> None:
        self.options = options

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streams=True, continuous=True, max_batch=self.options.max_batch)

    def load(self, device: str, dtype: str, threads: int) -> None:
        if self.options.fail_load:
            raise OSError("no weights here")

    def warmup(self) -> None:
        pass

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def generate(self, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, LlmText | LlmDone | Failed]]:
        running: dict[Key, tuple[LlmRequest, int]] = {}
        while True:
            for key, request in batch.take():
                running[key] = request, request.delivered_tokens
            running = {key: at for key, at in running.items() if not batch.cancelled(key)}
            if not running:
                return
            time.sleep(self.options.step_s)
            for key, (request, token) in list(running.items()):
                word = request.messages[-1].text if request.messages else ""
                if word == "raise":
                    raise RuntimeError("scripted")
                if word == "kill" and token == 3:
                    os._exit(1)
                if token == request.max_tokens:
                    del running[key]
                    yield key, LlmDone("stop", output_tokens=token)
                else:
                    running[key] = request, token + 1
                    yield key, LlmText(f"{token} ")


@dataclass(frozen=True)
class EchoOptions:
    step_s: float = 0.0
    max_batch: int = 64


class Echo:
    """A VAD, STT and TTS whose answers follow from the request alone.

    VAD: the first sample of each frame / 1000.  STT: the number of samples.  TTS: 1000 samples a character, in
    pieces of 1000, each sample the piece's number.
    """

    def __init__(self, options: EchoOptions) -> None:
        self.options = options

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(streams=True, max_batch=self.options.max_batch, rate_hz=24_000)

    def load(self, device: str, dtype: str, threads: int) -> None:
        pass

    def warmup(self) -> None:
        pass

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def score(self, batch: Batch[VadRequest]) -> Iterator[tuple[Key, VadResult]]:
        taken = batch.take()
        time.sleep(self.options.step_s)
        for key, request in taken:
            frames = [request.frames[start : start + 2] for start in range(0, len(request.frames), 1024)]
            probabilities = [int.from_bytes(frame, "little") / 1000 for frame in frames]
            yield key, VadResult(probabilities, request.state, request.frames[-128:])

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult]]:
        taken = batch.take()
        time.sleep(self.options.step_s)
        for key, request in taken:
            yield key, SttResult(str(len(request.audio) // 2))

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone]]:
        for key, request in batch.take():
            for piece in range(request.skip_samples // 1000, len(request.text)):
                if batch.cancelled(key):
                    break
                time.sleep(self.options.step_s)
                yield key, TtsAudio(piece.to_bytes(2, "little") * 1000, 24_000)
            yield key, TtsDone(1000 * len(request.text))


class ForgetfulOptions(EchoOptions):
    pass


class Forgetful(Echo):
    """Takes requests and says nothing."""

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult]]:
        batch.take()
        return iter(())


class DeafOptions(EchoOptions):
    pass


class Deaf(Echo):
    """Speaks for ever and never asks whether it was cancelled."""

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone]]:
        ((key, _),) = batch.take()
        while True:
            time.sleep(0.001)
            yield key, TtsAudio(b"", 24_000)


class LoudOptions(EchoOptions):
    pass


class Loud(Echo):
    """One long piece."""

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone]]:
        for key, _ in batch.take():
            yield key, TtsAudio(bytes(200_000), 24_000)
            yield key, TtsDone(100_000)
