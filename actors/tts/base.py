"""The protocol of Tts backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from actors.backend import Backend
from actors.batch import Batch, Key
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest


class TtsBackend(Backend, Protocol):
    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone | Failed]]:
        """Yield the sound of each clause, in pieces."""
