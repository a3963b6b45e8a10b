"""What STT backends on transformers' own classes share: loading and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from actors import pretrained
from actors.stt.listening import Listener


class TransformersListener(Listener):
    """A `Listener` whose model and processor are transformers'."""

    kinds: ClassVar[Mapping[str, str]]
    """transformers' class by the checkpoint's `model_type`."""
    published: ClassVar[Mapping[str, float]]
    """How many numbers a checkpoint has whose name holds the key."""
    _model: Any = None
    _processor: Any = None

    def load(self, device: str, dtype: str, threads: int) -> None:
        from transformers import AutoProcessor

        model, folder = pretrained.load(self._options.model_name, self.kinds, device, dtype, threads)
        self.install(model, AutoProcessor.from_pretrained(folder), device)

    def install(self, model: Any, processor: Any, device: str) -> None:
        """Use a loaded model on `device` and its processor."""
        self._model, self._processor, self._device = model, processor, device

    def memory_bytes(self, dtype: str) -> int:
        return pretrained.memory_bytes(self._options.model_name, dtype, self.published)
