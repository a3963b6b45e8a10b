"""Backends without a model, for tests of everything around them; named `tests.orchestration.fake_backends:Class`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.backend import Batch, Capabilities, Key, Results
from actors.messages import SttResult


@dataclass
class FakeOptions:
    """How the fake behaves."""

    model_name: str = "fake"
    """Nothing is loaded."""
    load_s: float = 0.0
    """Seconds that loading takes."""
    fails: str = ""
    """Loading fails with this message."""
    fails_while: str = ""
    """Loading fails as long as this file exists."""
    memory_mb: int = 0
    """Estimated memory."""
    language: str | None = None
    beams: int = 1
    fast: bool = False
    voices: tuple[str, ...] = ()
    gen: dict[str, Any] = field(default_factory=dict)
    """Passed on to generation."""


class Fake:
    """Answers every STT request with the CUDA_VISIBLE_DEVICES that it sees, others with nothing."""

    def __init__(self, options: FakeOptions) -> None:
        self.options = options
        self.device = ""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(devices=("cpu", "cuda"), max_batch=4)

    def load(self, device: str, dtype: str, threads: int) -> None:
        self.device = device
        time.sleep(self.options.load_s)
        if self.options.fails:
            raise RuntimeError(self.options.fails)
        if self.options.fails_while and Path(self.options.fails_while).exists():
            raise RuntimeError("the file is still there")

    def warmup(self) -> None: ...

    def memory_bytes(self, dtype: str) -> int:
        return self.options.memory_mb * 1_000_000 // (1 if dtype == "float32" else 2)

    def transcribe(self, batch: Batch) -> Results:
        yield from self._answer(batch)

    score = complete = generate = synthesize = transcribe

    def _answer(self, batch: Batch) -> Iterator[tuple[Key, Any]]:
        for key, _ in batch.take():
            seen = os.environ.get("CUDA_VISIBLE_DEVICES", "unset")
            yield key, SttResult(f"{self.device} {seen}")


@dataclass
class InterpreterOptions(FakeOptions):
    pass


class Interpreter(Fake):
    """Needs a module that one interpreter alone has, and tells which interpreter that is."""

    def load(self, device: str, dtype: str, threads: int) -> None:
        import only_here  # type: ignore[import-not-found]

        self.device = f"{only_here.NAME} {sys.prefix}"
