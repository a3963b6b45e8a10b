"""The protocol of Llm backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from actors.backend import Backend
from actors.batch import Batch, Key
from actors.messages import Failed, LlmDone, LlmRequest, LlmText, LlmToolCall


class LlmBackend(Backend, Protocol):
    def generate(
        self, batch: Batch[LlmRequest]
    ) -> Iterator[tuple[Key, LlmText | LlmToolCall | LlmDone | Failed]]:
        """Yield the answer, in pieces."""
