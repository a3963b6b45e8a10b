"""NVIDIA Parakeet through transformers: TDT and RNN-T transducers and CTC checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors import pretrained
from actors.messages import STT_RATE_HZ, Word
from actors.stt.listening import Heard, Stop
from actors.stt.transformers_listening import TransformersListener
from actors.stt.utterance import Window

EUROPEAN = "bg hr cs da nl en et fi fr de el hu it lv lt mt pl pt ro sk sl es sv ru uk"
"""What tdt-0.6b-v3 was trained on."""
FRAME_SAMPLES = STT_RATE_HZ * 2 // 25
"""One step of the encoder: 80 ms."""


@dataclass(frozen=True)
class ParakeetTdtOptions:
    """Options of `ParakeetTdt`."""

    model_name: str = "nvidia/parakeet-tdt-0.6b-v3"
    """Asset, hub id or folder of a parakeet-tdt, -rnnt or -ctc checkpoint in transformers' format."""
    language: str = "auto"
    """ISO 639-1 code that is reported with the transcript, or auto.  The model always finds the language by itself, and
    does not tell it."""
    max_batch: int = 8
    """Windows heard together on a GPU, at most."""


class ParakeetTdt(TransformersListener):
    """Transcripts with word times (from transducers)."""

    name: ClassVar[str] = "parakeet-tdt"
    longest_s: ClassVar[float] = 60.0
    kinds: ClassVar[Mapping[str, str]] = {
        "parakeet_tdt": "ParakeetForTDT",
        "parakeet_rnnt": "ParakeetForRNNT",
        "parakeet_ctc": "ParakeetForCTC",
    }
    published: ClassVar[Mapping[str, float]] = {"0.6b": 617e6, "1.1b": 1.1e9}

    def __init__(self, options: ParakeetTdtOptions | None = None) -> None:
        super().__init__(options or ParakeetTdtOptions())

    @property
    def languages(self) -> tuple[str, ...] | None:
        name = self._options.model_name
        if "v3" in name:
            return tuple(EUROPEAN.split())
        return ("en",) if name.startswith("nvidia/") else None

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> list[Heard]:
        import torch

        audio = [window.audio for window in windows]
        inputs = self._processor(audio, sampling_rate=STT_RATE_HZ).to(self._device, self._model.dtype)
        with torch.inference_mode():
            if self._model.config.model_type == "parakeet_ctc":
                tokens = self._model.generate(**inputs)
                return [
                    Heard(text) for text in self._processor.batch_decode(tokens, skip_special_tokens=True)
                ]
            steps = self._model.max_symbols_per_step
            limits = [steps * (2 + len(each) // FRAME_SAMPLES) for each in audio]
            criteria = pretrained.stopping(stops, limits)
            output = self._model.generate(**inputs, stopping_criteria=criteria, max_new_tokens=max(limits))
        texts, times = self._processor.decode(
            output.sequences, durations=output.durations, skip_special_tokens=True
        )
        return [Heard(text, words=words(found)) for text, found in zip(texts, times, strict=True)]


def words(tokens: Iterable[Mapping[str, Any]]) -> list[Word]:
    """Tokens with `token`, `start` and `end` (s) as words: a token that begins with a space begins a word."""
    found: list[Word] = []
    for token in tokens:
        text, start_ms, end_ms = token["token"], round(token["start"] * 1000), round(token["end"] * 1000)
        if found and not text.startswith(" "):
            last = found.pop()
            found.append(Word(last.text + text, last.start_ms, max(last.end_ms, end_ms)))
        elif text.strip():
            found.append(Word(text.strip(), start_ms, end_ms))
    return found
