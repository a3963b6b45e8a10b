"""Paraformer by FunASR: one forward an utterance, Chinese or English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from actors import pretrained, torch_device
from actors.messages import STT_RATE_HZ
from actors.stt.listening import Heard, Listener, Stop
from actors.stt.utterance import Window

PARAMETERS = {"paraformer": 220e6}
UNSPACED = ("zh", "ja", "yue")
_SPACE = re.compile(r"(?<![!-~]) +| +(?![!-~])")
"""Not between two words in Latin letters."""


@dataclass(frozen=True)
class ParaformerOptions:
    """Options of `Paraformer`."""

    model_name: str = "paraformer-zh"
    """A model as FunASR names it (paraformer-zh, paraformer-en, owner/name), or a folder."""
    hub: Literal["ms", "hf"] = "ms"
    """Where FunASR gets it: ModelScope or the Hugging Face hub."""
    language: str = "auto"
    """ISO 639-1 code of what is spoken; auto: the one in the model's name, else zh."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of FunASR's `generate()`: hotword, …"""
    max_batch: int = 4
    """Utterances taken at once; they are heard one after the other."""


class Paraformer(Listener):
    """Transcripts without word times."""

    name: ClassVar[str] = "paraformer"
    longest_s: ClassVar[float] = 60.0

    def __init__(self, options: ParaformerOptions | None = None) -> None:
        super().__init__(options or ParaformerOptions())
        self._model: Any = None
        self._interruptible: pretrained.Interruptible

    @property
    def languages(self) -> tuple[str, ...]:
        if self._options.language != "auto":
            return (self._options.language,)
        parts = self._options.model_name.rpartition("/")[2].split("-")
        return ("en",) if "en" in parts[1:] else ("zh",)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The model computes in float32."""
        torch_device.require_own("stt paraformer", dtype, "float32")
        from funasr import AutoModel

        model = AutoModel(
            model=self._options.model_name,
            hub=self._options.hub,
            device=device,
            ncpu=threads,
            disable_update=True,
            disable_pbar=True,
            log_level="ERROR",
        )
        torch_device.set_threads(threads)
        self.install(model, device)

    def install(self, model: Any, device: str) -> None:
        """Use a loaded `funasr.AutoModel` on `device`."""
        self._model, self._device = model, device
        self._interruptible = pretrained.Interruptible(pretrained.layers(model.model))

    def memory_bytes(self, dtype: str) -> int:
        return pretrained.memory_bytes(self._options.model_name, "float32", PARAMETERS)

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> list[Heard]:
        return [self._hear(window, stop) for window, stop in zip(windows, stops, strict=True)]

    def _hear(self, window: Window, stop: Stop) -> Heard:
        language = window.utterance.language
        try:
            with self._interruptible.until(stop):
                (answer,) = self._model.generate(input=window.audio, fs=STT_RATE_HZ, **self._options.gen)
        except pretrained.Stopped:
            return Heard("")
        text = str(answer.get("text", ""))
        return Heard(_SPACE.sub("", text) if language in UNSPACED else text, language)
