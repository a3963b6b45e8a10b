"""The protocol of Vad backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from actors.backend import Backend
from actors.batch import Batch, Key
from actors.messages import Failed, VadRequest, VadResult


class VadBackend(Backend, Protocol):
    def score(self, batch: Batch[VadRequest]) -> Iterator[tuple[Key, VadResult | Failed]]:
        """Yield probabilities of speech for each frame."""
