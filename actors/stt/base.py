"""The protocol of Stt backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from actors.backend import Backend
from actors.batch import Batch, Key
from actors.messages import Failed, SttRequest, SttResult


class SttBackend(Backend, Protocol):
    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult | Failed]]:
        """Yield the transcript of each utterance."""
