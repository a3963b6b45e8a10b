"""Qwen3-TTS by the `qwen_tts` package: ten languages, named speakers, described or cloned voices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from actors import languages, pretrained, torch_device
from actors.messages import TtsRequest
from actors.tts.speaking import Sound, Speaker, Stop

PUBLISHED = {"0.6B": 0.9e9, "1.7B": 1.9e9}
LANGUAGES = ("zh", "en", "ja", "ko", "de", "fr", "ru", "pt", "es", "it")
SPEAKERS = ("Vivian", "Serena", "Uncle_Fu", "Dylan", "Eric", "Ryan", "Aiden", "Ono_Anna", "Sohee")
"""Of the CustomVoice checkpoints, as published; a loaded checkpoint's own list counts."""
TOKENS_PER_CHARACTER, SPARE_TOKENS = 6, 60


@dataclass(frozen=True)
class Qwen3Options:
    """Options of `Qwen3`."""

    model_name: str = "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"
    """Hub id or folder: a CustomVoice, VoiceDesign or Base checkpoint."""
    speaker: str = "Aiden"
    """CustomVoice: speaker of requests that name none."""
    instruct: str | None = None
    """How to speak, in words; VoiceDesign: what the voice is like."""
    ref_audio: str | None = None
    """Base: a recording of the voice to clone."""
    ref_text: str | None = None
    """Base: what is said in it."""
    xvec_only: bool = False
    """Base: take the speaker's vector alone, without the recording's words."""
    language: str = "auto"
    """ISO 639-1 code of clauses that name none; auto: the model's guess."""
    attn_implementation: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    """Attention kernel."""
    max_new_tokens: int = 1536
    """Longest clause, in codec tokens (12 a second); the text's length bounds it too."""
    blocksize: int = 0
    """Samples of a piece of sound; 0: 200 ms first, then 1 s."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of the model's `generate()`: temperature, top_k, subtalker_temperature, …"""

    @property
    def voice(self) -> str:
        return self.speaker


class Qwen3(Speaker):
    """Speech at 24 kHz, a clause at a time."""

    name: ClassVar[str] = "qwen3"
    rate_hz = 24_000

    def __init__(self, options: Qwen3Options | None = None) -> None:
        super().__init__(options or Qwen3Options())
        self._model: Any = None
        self._interruptible: pretrained.Interruptible
        self._clone: Any = None

    @property
    def voices(self) -> tuple[str, ...]:
        if self._model is None:
            return SPEAKERS
        return tuple(self._model.get_supported_speakers() or ()) if self._kind == "custom_voice" else ()

    @property
    def languages(self) -> tuple[str, ...]:
        return LANGUAGES

    @property
    def _kind(self) -> str:
        return str(self._model.model.tts_model_type)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """`dtype` auto is bfloat16 on cuda and mps, as the checkpoints are."""
        import torch
        from qwen_tts import Qwen3TTSModel

        from actors import assets

        resolved = torch_device.resolve_dtype(device, pretrained.bfloat16_dtype(device, dtype))
        torch_device.set_threads(threads)
        folder = assets.resolve(self._options.model_name)
        model = Qwen3TTSModel.from_pretrained(
            str(folder),
            device_map=device,
            dtype=getattr(torch, resolved),
            attn_implementation=self._options.attn_implementation,
        )
        self.install(model, device)

    def install(self, model: Any, device: str) -> None:
        """Use a loaded `Qwen3TTSModel` on `device`.  Raises `ValueError` where its kind lacks an option."""
        self._model, self._device = model, device
        self._interruptible = pretrained.Interruptible(pretrained.layers(model.model.talker))
        options = self._options
        if self._kind == "voice_design" and not options.instruct:
            raise ValueError(
                "tts qwen3: a VoiceDesign checkpoint needs --tts_instruct: what the voice is like."
            )
        if self._kind == "base":
            if not options.ref_audio:
                raise ValueError("tts qwen3: a Base checkpoint needs --tts_ref_audio, a recording to clone.")
            self._clone = model.create_voice_clone_prompt(
                ref_audio=options.ref_audio, ref_text=options.ref_text, x_vector_only_mode=options.xvec_only
            )

    def memory_bytes(self, dtype: str) -> int:
        return pretrained.memory_bytes(self._options.model_name, dtype, PUBLISHED)

    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        options = self._options
        limit = SPARE_TOKENS + TOKENS_PER_CHARACTER * len(request.text)
        arguments: dict[str, Any] = {
            "text": request.text,
            "language": languages.name(language) if language else "Auto",
            "max_new_tokens": min(options.max_new_tokens, limit),
            **options.gen,
        }
        with self._interruptible.until(stopped):
            if self._kind == "custom_voice":
                sounds, rate_hz = self._model.generate_custom_voice(
                    speaker=voice, instruct=options.instruct, **arguments
                )
            elif self._kind == "voice_design":
                sounds, rate_hz = self._model.generate_voice_design(instruct=options.instruct, **arguments)
            else:
                sounds, rate_hz = self._model.generate_voice_clone(
                    voice_clone_prompt=self._clone, **arguments
                )
        if rate_hz != self.rate_hz:
            raise RuntimeError(f"the checkpoint speaks at {rate_hz} Hz; {self.rate_hz} Hz was expected.")
        yield np.asarray(sounds[0], np.float32)
