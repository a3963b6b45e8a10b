"""Supertonic: small ONNX voices in 31 languages, for CPUs, by the `supertonic` package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from actors import torch_device
from actors.messages import TtsRequest
from actors.tts.speaking import Sound, Speaker, Stop, Unspeakable

_LANGUAGES = "en ko ja ar bg cs da de el es et fi fr hi hr hu id it lt lv nl pl pt ro ru sk sl sv tr uk vi"
_VOICES = "M1 M2 M3 M4 M5 F1 F2 F3 F4 F5"
MIN_SPEED, MAX_SPEED = 0.7, 2.0
MEMORY_BYTES = 900_000_000


@dataclass(frozen=True)
class SupertonicOptions:
    """Options of `Supertonic`."""

    model_name: str = "supertonic-3"
    """A model of the package: supertonic (English), supertonic-2 or supertonic-3."""
    model_dir: str | None = None
    """Folder with its files; None: the package's cache, filled from the hub."""
    voice: str = "M1"
    """M1 to M5, F1 to F5."""
    lang: str = "na"
    """ISO 639-1 code of clauses that name none; na: not told."""
    speed: float = 1.0
    """Times the request's own, 0.7..2.0."""
    total_steps: int = 8
    """Of denoising: more is better and slower."""
    blocksize: int = 0
    """Samples of a piece of sound; 0: 200 ms first, then 0.5 s."""


class Supertonic(Speaker):
    """Speech at 44.1 kHz, a clause at a time."""

    name: ClassVar[str] = "supertonic"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    rate_hz = 44_100

    def __init__(self, options: SupertonicOptions | None = None) -> None:
        super().__init__(options or SupertonicOptions())
        self._model: Any = None

    @property
    def voices(self) -> tuple[str, ...]:
        return tuple(_VOICES.split())

    @property
    def languages(self) -> tuple[str, ...]:
        return ("en",) if self._options.model_name == "supertonic" else tuple(_LANGUAGES.split())

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The model computes in float32."""
        torch_device.require_own("tts supertonic", dtype, "float32")
        from supertonic import TTS

        options = self._options
        self.install(
            TTS(
                model=options.model_name,
                model_dir=options.model_dir,
                auto_download=options.model_dir is None,
                intra_op_num_threads=threads,
                inter_op_num_threads=1,
            )
        )

    def install(self, model: Any) -> None:
        """Use a loaded `supertonic.TTS`."""
        self._model = model
        self.rate_hz = model.sample_rate

    def memory_bytes(self, dtype: str) -> int:
        return MEMORY_BYTES

    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        options = self._options
        speed = min(max(options.speed * request.speed, MIN_SPEED), MAX_SPEED)
        try:
            sound, _ = self._model.synthesize(
                request.text,
                voice_style=self._model.get_voice_style(voice),
                total_steps=options.total_steps,
                speed=speed,
                lang=language or options.lang,
            )
        except ValueError as error:
            raise Unspeakable(f"{error}") from error
        yield np.asarray(sound, np.float32).reshape(-1)
