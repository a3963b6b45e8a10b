"""Whisper on Apple silicon by `mlx-audio`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors import mlx
from actors.stt.listening import Heard, Listener, Stop
from actors.stt.mlx_whisper_text import PUBLISHED, heard
from actors.stt.utterance import Window

WORK_BYTES = 300_000_000


@dataclass(frozen=True)
class MlxAudioWhisperOptions:
    """Options of `MlxAudioWhisper`."""

    model_name: str = "mlx-community/whisper-large-v3-turbo-asr-fp16"
    """Hub id or folder of a Whisper in mlx-audio's format, with its tokenizer beside the weights."""
    language: str = "auto"
    """ISO 639-1 code, or auto: detected for each utterance."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of the model's `generate()`: task, temperature, …"""
    max_batch: int = 4
    """Utterances taken at once; they are heard one after the other."""


class MlxAudioWhisper(Listener):
    """Transcripts with language, probability and word times."""

    name: ClassVar[str] = "mlx-audio-whisper"
    devices: ClassVar[tuple[str, ...]] = ("mps", "cpu")

    def __init__(self, options: MlxAudioWhisperOptions | None = None) -> None:
        super().__init__(options or MlxAudioWhisperOptions())
        self._model: Any = None

    @property
    def languages(self) -> tuple[str, ...] | None:
        return ("en",) if ".en" in self._options.model_name else None

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The number format is that of the files: `dtype` must be auto.  MLX chooses its threads itself."""
        from mlx_audio.stt.utils import load_model

        if dtype != "auto":
            raise ValueError(
                f"stt {self.name} was asked for dtype {dtype!r}; it is that of the files: use auto."
            )
        mlx.use(device)
        self._model = load_model(mlx.folder(self._options.model_name))

    def memory_bytes(self, dtype: str) -> int:
        count = next((size for name, size in PUBLISHED.items() if name in self._options.model_name), 0.0)
        weights = mlx.weight_bytes(self._options.model_name) or int(2 * count)
        return weights + WORK_BYTES if weights else 0

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> list[Heard]:
        """One window after the other; a cancel waits for the one in hand."""
        return [
            Heard("") if stop() else self._hear(window) for window, stop in zip(windows, stops, strict=True)
        ]

    def _hear(self, window: Window) -> Heard:
        request = window.utterance.request
        arguments = {"temperature": 0.0, "condition_on_previous_text": False, **self._options.gen}
        found = self._model.generate(
            window.audio,
            language=window.utterance.language,
            initial_prompt=request.prompt,
            word_timestamps=request.word_times,
            **arguments,
        )
        return heard(found.text, found.language, found.segments)
