"""The protocol of Turn backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from actors.backend import Backend
from actors.batch import Batch, Key
from actors.messages import Failed, TurnRequest, TurnResult


class TurnBackend(Backend, Protocol):
    def complete(self, batch: Batch[TurnRequest]) -> Iterator[tuple[Key, TurnResult | Failed]]:
        """Yield the probability that a paused turn is complete."""
