"""Qwen3-ASR through transformers: 30 languages, told with each transcript, biased by a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors import pretrained
from actors.messages import STT_RATE_HZ
from actors.stt.listening import Heard, Stop
from actors.stt.transformers_listening import TransformersListener
from actors.stt.utterance import Window

LANGUAGES = "ar yue zh cs da nl en fil fi fr de el hi hu id it ja ko mk ms fa pl pt ro ru es sv th tr vi"
TOKENS_PER_S = 16
SPARE_TOKENS = 24


@dataclass(frozen=True)
class Qwen3AsrOptions:
    """Options of `Qwen3Asr`."""

    model_name: str = "Qwen/Qwen3-ASR-0.6B-hf"
    """Asset, hub id or folder of a checkpoint in transformers' format (`…-hf`)."""
    language: str = "auto"
    """ISO 639-1 code, or auto: told by the model for each utterance."""
    prompt: str | None = None
    """Context or rare words that may come up; a request's own prompt goes first."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of transformers' `generate()`."""
    max_batch: int = 8
    """Windows heard together on a GPU, at most."""


class Qwen3Asr(TransformersListener):
    """Transcripts with their language."""

    name: ClassVar[str] = "qwen3-asr"
    kinds: ClassVar[Mapping[str, str]] = {"qwen3_asr": "Qwen3ASRForConditionalGeneration"}
    published: ClassVar[Mapping[str, float]] = {"0.6B": 0.94e9, "1.7B": 2.35e9}

    def __init__(self, options: Qwen3AsrOptions | None = None) -> None:
        super().__init__(options or Qwen3AsrOptions())
        self._codes: dict[str, str] = {}

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(LANGUAGES.split())

    def load(self, device: str, dtype: str, threads: int) -> None:
        super().load(device, pretrained.bfloat16_dtype(device, dtype), threads)

    def install(self, model: Any, processor: Any, device: str) -> None:
        from transformers.models.qwen3_asr.processing_qwen3_asr import LANGUAGE_CODE_TO_NAME

        super().install(model, processor, device)
        self._codes = {name: code for code, name in LANGUAGE_CODE_TO_NAME.items()}

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> list[Heard]:
        import torch

        asked = [window.utterance.language for window in windows]
        inputs = self._processor.apply_transcription_request(
            audio=[window.audio for window in windows],
            language=None if asked[0] is None else asked,
            prompt=[window.utterance.request.prompt or self._options.prompt for window in windows],
        ).to(self._device, self._model.dtype)
        limits = [SPARE_TOKENS + int(len(window.audio) / STT_RATE_HZ * TOKENS_PER_S) for window in windows]
        arguments = {"max_new_tokens": max(limits), "do_sample": False, **self._options.gen}
        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs, stopping_criteria=pretrained.stopping(stops, limits), **arguments
            )
        answers = self._processor.decode(tokens[:, inputs["input_ids"].shape[1] :], return_format="parsed")
        return [
            Heard(answer["transcription"], self._codes.get(answer["language"] or "")) for answer in answers
        ]
