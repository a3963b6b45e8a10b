"""Moonshine through transformers: small English models (and ones of a single other language) for the edge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors import pretrained
from actors.messages import STT_RATE_HZ
from actors.stt.listening import Heard, Stop
from actors.stt.transformers_listening import TransformersListener
from actors.stt.utterance import Window

ENGLISH_TOKENS_PER_S = 6.5
"""The model's own bound, which keeps it from going round in circles (generation_config of the checkpoints)."""
OTHER_TOKENS_PER_S = 16
SPARE_TOKENS = 8


@dataclass(frozen=True)
class MoonshineOptions:
    """Options of `Moonshine`."""

    model_name: str = "UsefulSensors/moonshine-base"
    """Asset, hub id or folder; `…-ja`, `-zh`, `-ko`, `-ar`, `-uk`, `-vi`, `-es` hear that language, others English."""
    language: str = "auto"
    """ISO 639-1 code that is assumed, or auto: the checkpoint's own."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of transformers' `generate()`."""
    max_batch: int = 8
    """Windows heard together on a GPU, at most."""


class Moonshine(TransformersListener):
    """Transcripts in the one language of the checkpoint."""

    name: ClassVar[str] = "moonshine"
    like: ClassVar[float] = 1.25
    """Its first layer is normalised over the whole window, padding included."""
    kinds: ClassVar[Mapping[str, str]] = {
        "moonshine": "MoonshineForConditionalGeneration",
        "moonshine_streaming": "MoonshineStreamingForConditionalGeneration",
    }
    published: ClassVar[Mapping[str, float]] = {
        "streaming-small": 123e6,
        "streaming-medium": 245e6,
        "tiny": 27e6,
        "base": 61e6,
    }

    def __init__(self, options: MoonshineOptions | None = None) -> None:
        super().__init__(options or MoonshineOptions())

    @property
    def languages(self) -> tuple[str, ...]:
        found = re.search(r"-([a-z]{2})$", self._options.model_name)
        return (found[1] if found else "en",)

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> list[Heard]:
        import torch

        inputs = self._processor(
            [window.audio for window in windows],
            sampling_rate=STT_RATE_HZ,
            return_tensors="pt",
            padding=True,
            return_attention_mask=True,
        ).to(self._device, self._model.dtype)
        rate = ENGLISH_TOKENS_PER_S if self.languages == ("en",) else OTHER_TOKENS_PER_S
        limits = [SPARE_TOKENS + int(len(window.audio) / STT_RATE_HZ * rate) for window in windows]
        arguments = {"max_new_tokens": max(limits), **self._options.gen}
        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs, stopping_criteria=pretrained.stopping(stops, limits), **arguments
            )
        texts = self._processor.batch_decode(tokens, skip_special_tokens=True)
        return [Heard(text) for text in texts]
