"""Whisper on Apple silicon by `mlx-whisper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from actors import mlx
from actors.stt.mlx_listening import MlxWhisper, MlxWhisperOptions, Segments


@dataclass(frozen=True)
class WhisperMlxOptions(MlxWhisperOptions):
    """Options of `WhisperMlx`."""

    model_name: str = "mlx-community/whisper-large-v3-turbo"
    """Hub id or folder of a Whisper in MLX's format."""


class WhisperMlx(MlxWhisper):
    name: ClassVar[str] = "whisper-mlx"

    def __init__(self, options: WhisperMlxOptions | None = None) -> None:
        super().__init__(options or WhisperMlxOptions())
        self._folder = ""
        self._half = True

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

    def run(self, audio: Any, **arguments: Any) -> tuple[str, str | None, Segments]:
        import mlx_whisper

        found = mlx_whisper.transcribe(audio, path_or_hf_repo=self._folder, fp16=self._half, **arguments)
        return found["text"], found.get("language"), found.get("segments")
