"""What both MLX Whisper backends share: options, size, and what they make of the segments that their libraries give."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors import mlx, pretrained
from actors.messages import Word
from actors.stt.listening import Heard, Listener, Stop
from actors.stt.utterance import Window
from actors.stt.whisper import PUBLISHED

Segments = Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True)
class MlxWhisperOptions:
    """Options of every Whisper on MLX."""

    model_name: str
    language: str = "auto"
    """ISO 639-1 code, or auto: detected for each utterance."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of the library's own transcription: task, temperature, …"""
    max_batch: int = 4
    """Utterances taken at once; they are heard one after the other."""


class MlxWhisper(Listener):
    """Transcripts with language, probability and word times."""

    devices: ClassVar[tuple[str, ...]] = ("mps", "cpu")

    @property
    def languages(self) -> tuple[str, ...] | None:
        return ("en",) if ".en" in self._options.model_name else None

    @abstractmethod
    def run(self, audio: Any, **arguments: Any) -> tuple[str, str | None, Segments]:
        """The library's text, language and segments of `audio` (float32 at 16 kHz).

        Segments have `avg_logprob`, `no_speech_prob` and, if asked for, `words` with `word`, `start`, `end` (s)."""

    def memory_bytes(self, dtype: str) -> int:
        name = self._options.model_name
        weights = mlx.weight_bytes(name) or int(2 * pretrained.named(name, PUBLISHED))
        return weights + pretrained.WORK_BYTES if weights else 0

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> list[Heard]:
        """One window after the other; a cancel waits for the one in hand."""
        return [
            Heard("") if stop() else self._hear(window) for window, stop in zip(windows, stops, strict=True)
        ]

    def _hear(self, window: Window) -> Heard:
        request = window.utterance.request
        arguments = {"temperature": 0.0, "condition_on_previous_text": False, **self._options.gen}
        text, language, segments = self.run(
            window.audio,
            language=window.utterance.language,
            initial_prompt=request.prompt,
            word_timestamps=request.word_times,
            **arguments,
        )
        return _heard(text, language, segments)


def _heard(text: str, language: str | None, segments: Segments) -> Heard:
    from actors.stt import gates

    segments = segments or []
    logprobs = [float(segment["avg_logprob"]) for segment in segments if "avg_logprob" in segment]
    logprob = sum(logprobs) / len(logprobs) if logprobs else None
    no_speech = max((float(segment.get("no_speech_prob", 0.0)) for segment in segments), default=0.0)
    if gates.rejection(text, logprob if logprob is not None else 0.0, no_speech) is not None:
        return Heard("", language, logprob)
    words = [
        Word(word["word"].strip(), round(word["start"] * 1000), round(word["end"] * 1000))
        for segment in segments
        for word in segment.get("words") or ()
    ]
    return Heard(text, language, logprob, words)
