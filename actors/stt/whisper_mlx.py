"""Whisper on Apple silicon by `mlx-whisper`."""

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
class WhisperMlxOptions:
    """Options of `WhisperMlx`."""

    model_name: str = "mlx-community/whisper-large-v3-turbo"
    """Hub id or folder of a Whisper in MLX's format."""
    language: str = "auto"
    """ISO 639-1 code, or auto: detected for each utterance."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of mlx_whisper's `transcribe()`: task, temperature, beam_size, …"""
    max_batch: int = 4
    """Utterances taken at once; they are heard one after the other."""


class WhisperMlx(Listener):
    """Transcripts with language, probability and word times."""

    name: ClassVar[str] = "whisper-mlx"
    devices: ClassVar[tuple[str, ...]] = ("mps", "cpu")

    def __init__(self, options: WhisperMlxOptions | None = None) -> None:
        super().__init__(options or WhisperMlxOptions())
        self._folder = ""
        self._half = True

    @property
    def languages(self) -> tuple[str, ...] | None:
        return ("en",) if ".en" in self._options.model_name else None

    def load(self, device: str, dtype: str, threads: int) -> None:
        """`dtype` auto is float16.  MLX chooses its threads itself."""
        if dtype not in ("auto", "float16", "float32"):
            raise ValueError(
                f"stt {self.name} was asked for dtype {dtype!r}; choose auto, float16 or float32."
            )
        import mlx.core as mx
        from mlx_whisper.transcribe import ModelHolder

        mlx.use(device)
        self._half = dtype != "float32"
        self._folder = str(mlx.folder(self._options.model_name))
        ModelHolder.get_model(self._folder, mx.float16 if self._half else mx.float32)

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
        import mlx_whisper

        request = window.utterance.request
        arguments = {"temperature": 0.0, "condition_on_previous_text": False, **self._options.gen}
        found = mlx_whisper.transcribe(
            window.audio,
            path_or_hf_repo=self._folder,
            language=window.utterance.language,
            initial_prompt=request.prompt,
            word_timestamps=request.word_times,
            fp16=self._half,
            **arguments,
        )
        return heard(found["text"], found.get("language"), found.get("segments"))
