"""ChatTTS: conversational English and Chinese, by the `ChatTTS` package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from actors import pretrained, torch_device
from actors.messages import TtsRequest
from actors.tts.speaking import Sound, Speaker, Stop

MEMORY_BYTES = 1_900_000_000
"""Weights of 1.2 GB in float32, and work."""


@dataclass(frozen=True)
class ChatTTSOptions:
    """Options of `ChatTTS`."""

    stream: bool = True
    """Give sound while the clause is still made."""
    chunk_size: int = 0
    """Samples of a piece of sound; 0: 200 ms first, then 1 s."""
    speaker_seed: int = 2
    """The model has no named voices: this number draws one."""
    refine_text: bool = False
    """Let the model put pauses and laughter into the text before it speaks: slower, and no longer word for word."""
    speed: int = 5
    """Of the speaker, 0..9."""
    language: str = "auto"
    """en or zh for clauses that name none; auto: the package's guess."""
    model_path: str | None = None
    """Folder with the published weights; None: the hub's 2Noise/ChatTTS."""

    @property
    def blocksize(self) -> int:
        return self.chunk_size


class ChatTTS(Speaker):
    """Speech at 24 kHz, while it is made."""

    name: ClassVar[str] = "chatTTS"
    devices: ClassVar[tuple[str, ...]] = ("cuda", "mps", "cpu")
    streams: ClassVar[bool] = True
    rate_hz = 24_000

    def __init__(self, options: ChatTTSOptions | None = None) -> None:
        super().__init__(options or ChatTTSOptions())
        self._chat: Any = None
        self._speaker = ""
        self._interruptible: pretrained.Interruptible

    @property
    def languages(self) -> tuple[str, ...]:
        return ("en", "zh")

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The model computes in float32.  Raises `RuntimeError` where the weights could not be had."""
        torch_device.require_own("tts chatTTS", dtype, "float32")
        import ChatTTS
        import torch

        torch_device.set_threads(threads)
        chat = ChatTTS.Chat()
        path = self._options.model_path
        if not chat.load(
            source="custom" if path else "huggingface",
            custom_path=path,
            compile=False,
            device=torch.device(device),
        ):
            raise RuntimeError(
                f"ChatTTS could not load its weights from {path or '2Noise/ChatTTS on the hub'}."
            )
        self.install(chat, device)

    def install(self, chat: Any, device: str) -> None:
        """Use a loaded `ChatTTS.Chat` on `device`."""
        import torch

        self._chat, self._device = chat, device
        torch.manual_seed(self._options.speaker_seed)
        self._speaker = chat.sample_random_speaker()
        self._interruptible = pretrained.Interruptible(pretrained.layers(chat.gpt))

    def memory_bytes(self, dtype: str) -> int:
        return MEMORY_BYTES

    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        from ChatTTS import Chat

        options = self._options
        parts = self._chat.infer(
            request.text,
            stream=options.stream,
            lang=language,
            skip_refine_text=not options.refine_text,
            params_refine_text=Chat.RefineTextParams(manual_seed=request.seed, show_tqdm=False),
            params_infer_code=Chat.InferCodeParams(
                prompt=f"[speed_{options.speed}]",
                spk_emb=self._speaker,
                manual_seed=request.seed,
                show_tqdm=False,
            ),
        )
        with self._interruptible.until(stopped):
            for part in parts:
                if part is not None and len(part) and part[0] is not None:
                    yield np.asarray(part if np.ndim(part) == 1 else part[0], np.float32).reshape(-1)
