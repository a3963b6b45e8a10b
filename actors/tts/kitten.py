"""KittenTTS: tiny English ONNX voices for CPUs, by the `kittenml` package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from actors import torch_device
from actors.messages import TtsRequest
from actors.tts.speaking import Sound, Speaker, Stop, Unspeakable

VOICES = ("Bella", "Jasper", "Luna", "Bruno", "Rosie", "Hugo", "Kiki", "Leo")
MIN_SPEED, MAX_SPEED = 0.5, 2.0
MEMORY_BYTES = 500_000_000


@dataclass(frozen=True)
class KittenOptions:
    """Options of `Kitten`."""

    model_name: str = "KittenML/kitten-tts-mini-0.8"
    """Hub id or folder of an ONNX model of the 0.8 series or before."""
    voice: str = "Bruno"
    """Voice of requests that name none."""
    blocksize: int = 0
    """Samples of a piece of sound; 0: 200 ms first, then 1 s."""


class Kitten(Speaker):
    """Speech at 24 kHz, sentence by sentence."""

    name: ClassVar[str] = "kitten"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    streams: ClassVar[bool] = True
    rate_hz = 24_000

    def __init__(self, options: KittenOptions | None = None) -> None:
        super().__init__(options or KittenOptions())
        self._model: Any = None

    @property
    def voices(self) -> tuple[str, ...]:
        return VOICES if self._model is None else tuple(self._model.available_voices)

    @property
    def languages(self) -> tuple[str, ...]:
        return ("en",)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The number format is that of the files: `dtype` must be auto.  ONNX Runtime is left to choose its threads:
        the package has no way to say how many."""
        torch_device.require_own("tts kitten", dtype)
        from kittenml import KittenTTSOnnx

        from actors import assets

        self.install(KittenTTSOnnx(str(assets.resolve(self._options.model_name)), backend="cpu"))

    def install(self, model: Any) -> None:
        """Use a loaded `KittenTTSOnnx`."""
        self._model = model

    def memory_bytes(self, dtype: str) -> int:
        return MEMORY_BYTES

    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        speed = min(max(request.speed, MIN_SPEED), MAX_SPEED)
        try:
            for part in self._model.generate_stream(request.text, voice=voice, speed=speed, clean_text=True):
                if stopped():
                    return
                yield np.asarray(part, np.float32).reshape(-1)
        except ValueError as error:
            raise Unspeakable(f"{error}") from error
