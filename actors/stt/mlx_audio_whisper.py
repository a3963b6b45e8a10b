"""Whisper on Apple silicon by `mlx-audio`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from actors import mlx, torch_device
from actors.stt.mlx_listening import MlxWhisper, MlxWhisperOptions, Segments


@dataclass(frozen=True)
class MlxAudioWhisperOptions(MlxWhisperOptions):
    """Options of `MlxAudioWhisper`."""

    model_name: str = "mlx-community/whisper-large-v3-turbo-asr-fp16"
    """Hub id or folder of a Whisper in mlx-audio's format, with its tokenizer beside the weights."""


class MlxAudioWhisper(MlxWhisper):
    name: ClassVar[str] = "mlx-audio-whisper"

    def __init__(self, options: MlxAudioWhisperOptions | None = None) -> None:
        super().__init__(options or MlxAudioWhisperOptions())
        self._model: Any = None

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The number format is that of the files: `dtype` must be auto.  MLX chooses its threads itself."""
        torch_device.require_own(f"stt {self.name}", dtype)
        from mlx_audio.stt.utils import load_model

        mlx.use(device)
        self._model = load_model(mlx.folder(self._options.model_name))

    def run(self, audio: Any, **arguments: Any) -> tuple[str, str | None, Segments]:
        found = self._model.generate(audio, **arguments)
        return found.text, found.language, found.segments
