"""What every backend is: a model behind `load`, `warmup` and one verb.

A backend knows its model and nothing of sessions, Ray or sockets.  Its module imports nothing heavy; `load` does.
All methods but the constructor run in one thread, the model's.  The verb is a generator over a `Batch`: it yields
`(key, result)` as results come, each request's last one satisfying `messages.is_final`.  A request that fails alone
gets a `Failed`; an exception fails every request of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from actors.batch import Batch, Key


@dataclass(frozen=True)
class Capabilities:
    """What a loaded or unloaded backend can do."""

    devices: tuple[str, ...] = ("cpu",)
    """Device types it runs on: cpu, cuda, mps."""
    languages: tuple[str, ...] | None = None
    """ISO 639-1 codes; None: any that the model knows."""
    streams: bool = False
    """Whether results come before the work is done."""
    continuous: bool = False
    """Whether requests may join a running batch."""
    max_batch: int = 1
    """Requests worked on at once, at most."""
    resume: Literal["exact", "clause", "none"] = "exact"
    """What a replacement replica does with half-delivered work: go on at the very sample or token, or start the
    clause again."""
    rate_hz: int | None = None
    """TTS: the voice's own rate, once known."""
    voices: tuple[str, ...] = ()
    tools: bool = False
    audio_input: bool = False


class Backend(Protocol):
    """A model."""

    def __init__(self, options: Any) -> None: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load onto `device` ("cpu", "cuda:0", "mps"), in `dtype` ("auto" or torch's name), on `threads` threads."""

    def warmup(self) -> None:
        """Run every path once with dummy input, so that the first request costs what any other does."""

    def memory_bytes(self, dtype: str) -> int:
        """Estimated memory for weights and work, known without loading (0: unknown)."""


Results = Iterator[tuple[Key, Any]]

__all__ = ["Backend", "Batch", "Capabilities", "Key", "Results"]
