"""Pocket TTS by Kyutai: small, made for CPUs, streamed frame by frame, voices named or cloned."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from actors import languages, torch_device
from actors.messages import TtsRequest
from actors.tts.speaking import Sound, Speaker, Stop, Unspeakable

_VOICES = (
    "alba anna azelma bill_boerst caro_davy charles cosette daan eponine estelle eve fantine george giovanni jane "
    "javert jean juergen lola marius mary michael paul peter_yearsley rafael stuart_bell vera"
)
KEPT_VOICES = 8
MEMORY_BYTES = 900_000_000


@dataclass(frozen=True)
class PocketOptions:
    """Options of `Pocket`."""

    voice: str = "jean"
    """A voice of the package, or a recording to clone: a path, or hf://owner/repository/file."""
    language: str = "english"
    """The model: a language, one of its variants such as german_24l, or an ISO 639-1 code."""
    model_name: str | None = None
    """Instead of `language`: a configuration of the package's kind (a .yaml file, https:// or hf://)."""
    max_tokens: int = 50
    """Text tokens spoken in one go; longer clauses are cut at sentences."""
    temperature: float | None = None
    """Of sampling; None: the model's own."""
    eos_threshold: float | None = None
    """How sure the model must be that it is done; None: its own."""
    blocksize: int = 0
    """Samples of a piece of sound; 0: as it comes."""


class Pocket(Speaker):
    """Speech while it is made, in frames of 80 ms."""

    name: ClassVar[str] = "pocket"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda", "mps")
    streams: ClassVar[bool] = True
    resume: ClassVar[Literal["exact", "clause"]] = "clause"
    """A thread of its own decodes as many frames at once as are there: samples differ in their last bit."""
    rate_hz = 24_000

    def __init__(self, options: PocketOptions | None = None) -> None:
        super().__init__(options or PocketOptions())
        self._model: Any = None
        self._states: dict[str, Any] = {}

    @property
    def voices(self) -> tuple[str, ...]:
        return tuple(_VOICES.split())

    @property
    def languages(self) -> tuple[str, ...] | None:
        if self._options.model_name is not None:
            return None
        return (languages.code(self._options.language.partition("_")[0]),)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The model computes in float32."""
        torch_device.require_own("tts pocket", dtype, "float32")
        from pocket_tts import TTSModel

        torch_device.set_threads(threads)
        options = self._options
        model = TTSModel.load_model(
            language=None if options.model_name else languages.name(options.language).lower(),
            config=options.model_name,
            temp=options.temperature,
            eos_threshold=options.eos_threshold,
        )
        self.install(model.to(device), device)
        self._state(options.voice)

    def install(self, model: Any, device: str) -> None:
        """Use a loaded `TTSModel` on `device`."""
        self._model, self._device = model, device
        self.rate_hz = model.sample_rate

    def memory_bytes(self, dtype: str) -> int:
        return MEMORY_BYTES

    def find_voice(self, asked: str | None) -> str | None:
        """Also a path or an address of a recording, where the operator named it."""
        own: str = self._options.voice
        wanted = asked or own
        if wanted == own and ("/" in own or "." in own):
            return own
        return super().find_voice(asked)

    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        end = threading.Event()
        frames = self._model.generate_audio_stream(
            self._state(voice or self._options.voice),
            request.text,
            max_tokens=self._options.max_tokens,
            stop=end,
        )
        try:
            for frame in frames:
                if stopped():
                    return
                yield frame.detach().float().cpu().numpy().astype(np.float32)
        except ValueError as error:
            raise Unspeakable(f"{error}") from error
        finally:
            end.set()
            for _ in frames:  # until the package's threads have ended: they work on what is queued
                pass

    def _default_language(self) -> str | None:
        return None

    def _state(self, voice: str) -> Any:
        """The model's state after having heard `voice`."""
        if voice not in self._states:
            if len(self._states) >= KEPT_VOICES:
                del self._states[next(iter(self._states))]
            self._states[voice] = self._model.get_state_for_audio_prompt(voice)
        return self._states[voice]
