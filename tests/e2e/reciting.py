"""An LLM that shows its prompt: it answers with all that the user has said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import LlmDone, LlmRequest, LlmText


@dataclass(frozen=True)
class ReciteOptions:
    """None."""


class Recite:
    def __init__(self, options: ReciteOptions) -> None:
        self.capabilities = Capabilities(streams=True)

    def load(self, device: str, dtype: str, threads: int) -> None:
        pass

    def warmup(self) -> None:
        pass

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def generate(self, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, LlmText | LlmDone]]:
        for key, request in batch.take():
            said = [message.text.strip() for message in request.messages if message.role == "user"]
            yield key, LlmText(" ".join(said))
            yield key, LlmDone("stop")
