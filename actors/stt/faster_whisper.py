"""Whisper through faster-whisper (CTranslate2): int8 on a CPU, float16 on a GPU."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors import languages
from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import STT_RATE_HZ, Failed, SttRequest, SttResult, Word
from actors.stt.listening import INT16_SCALE

WINDOW_S = 30.0
"""What Whisper hears at once; a cancel waits for the window that is being decoded."""
WORK_BYTES = 300_000_000
DTYPES = ("auto", "float32", "float16", "bfloat16")
_OURS = frozenset({"audio", "language", "initial_prompt", "word_timestamps", "log_progress"})
"""Arguments of `transcribe()` that a request decides."""


@dataclass(frozen=True)
class FasterWhisperOptions:
    """Options of `FasterWhisper`."""

    model_name: str = "whisper-tiny.en-ct2"
    """Asset, folder or hub id of a CTranslate2 checkpoint, or a size that Systran publishes: tiny.en, small, ..."""
    compute_type: str = "auto"
    """CTranslate2's: auto (the fastest that the device has), default (as stored), int8, int8_float32, int8_float16,
    int8_bfloat16, int16, float16, bfloat16, float32.  auto follows the stage's dtype where one is set."""
    language: str = "auto"
    """ISO 639-1 code, or auto: detected for each utterance.  A request's own language goes first."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of faster-whisper's `transcribe()`: beam_size (1: greedy), max_new_tokens (per window), task,
    temperature, return_timestamps, language (over the option of that name), ..."""


class FasterWhisper:
    """Transcripts of utterances of any length, one after the other."""

    def __init__(self, options: FasterWhisperOptions | None = None) -> None:
        self._options = options or FasterWhisperOptions()
        fixed = self._options.gen.get("language", self._options.language)
        self._fixed: str | None = None if fixed == "auto" else fixed
        self._model: Any = None
        self._gen: dict[str, Any] = {}

    @property
    def capabilities(self) -> Capabilities:
        known: tuple[str, ...] | None = None
        if self._model is not None:
            known = tuple(self._model.supported_languages)
        elif self._options.model_name.removesuffix("-ct2").endswith(".en"):
            known = ("en",)
        return Capabilities(devices=("cuda", "cpu"), languages=known)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load onto `device` ("cpu", "cuda:0").

        Raises `ValueError` for a compute type that the device lacks, a name in `gen` that transcribe() does not know,
        a language that the checkpoint lacks, and a folder that holds no CTranslate2 model.
        """
        from faster_whisper import WhisperModel

        options = self._options
        given = {name: value for name, value in options.gen.items() if name != "language"}
        self._gen = _arguments(given, inspect.signature(WhisperModel.transcribe).parameters)
        kind, _, index = device.partition(":")
        if kind not in ("cpu", "cuda"):
            raise ValueError(f"stt faster-whisper was asked to run on {device!r}; it runs on cpu and cuda.")
        folder = _folder(options.model_name)
        self._model = WhisperModel(
            str(folder),
            device=kind,
            device_index=int(index or 0),
            compute_type=dtype if options.compute_type == "auto" else options.compute_type,
            cpu_threads=threads,
        )
        if self._fixed is not None and (problem := self._language_problem(self._fixed)):
            raise ValueError(f"stt faster-whisper: {problem}")

    def warmup(self) -> None:
        """Transcribe a tone."""
        import numpy as np

        tone = (3_000 * np.sin(np.arange(STT_RATE_HZ) / 10)).astype("<i2").tobytes()
        for _ in self._windows(SttRequest(tone, language=self._model.supported_languages[0])):
            pass

    def memory_bytes(self, dtype: str) -> int:
        """The file's size and work space; 0 while the file is not on this machine."""
        from actors import assets

        folder = assets.here(_repository(self._options.model_name))
        file = folder / "model.bin" if folder is not None else None
        return file.stat().st_size + WORK_BYTES if file is not None and file.is_file() else 0

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult | Failed]]:
        """Yield the transcript of each utterance; of a long one, after each window, what has been heard so far."""
        while taken := batch.take(1):
            key, request = taken[0]
            problem = self._problem(request)
            if problem is not None:
                yield key, Failed(f"stt faster-whisper: {problem}")
                continue
            for result in self._windows(request):
                if batch.cancelled(key):
                    break
                yield key, result

    def _windows(self, request: SttRequest) -> Iterator[SttResult]:
        import numpy as np

        from actors.stt import gates, windows

        audio = np.frombuffer(request.audio, "<i2").astype(np.float32) / INT16_SCALE
        if windows.silent(audio):
            yield SttResult("", language=self._language(request), rejected="no_speech")
            return
        # Beyond one window, time stamps say where the next one begins, so that no word is cut.
        one_window = len(audio) <= WINDOW_S * STT_RATE_HZ
        arguments = {"without_timestamps": one_window and not request.word_times} | self._gen
        segments, info = self._model.transcribe(
            audio,
            language=self._language(request),
            initial_prompt=request.prompt,
            word_timestamps=request.word_times,
            **arguments,
        )
        texts: list[str] = []
        words: list[Word] = []
        logprobs: list[float] = []
        rejected: str | None = "no_speech"
        for segment in segments:
            logprobs.append(segment.avg_logprob)
            text = segment.text.strip()
            reason = gates.rejection(text, segment.avg_logprob, segment.no_speech_prob)
            if reason is not None:
                rejected = rejected if texts else reason
                continue
            texts.append(text)
            words += [
                Word(word.word.strip(), round(word.start * 1000), round(word.end * 1000))
                for word in segment.words or ()
            ]
            yield SttResult(" ".join(texts), final=False, language=info.language)
        yield SttResult(
            text=" ".join(texts),
            language=info.language,
            words=words if request.word_times else None,
            rejected=None if texts else rejected,
            logprob=sum(logprobs) / len(logprobs) if logprobs else None,
        )

    def _language(self, request: SttRequest) -> str | None:
        """The code to transcribe in; None: to be detected."""
        asked = request.language or self._fixed
        return languages.code(asked) if asked else None

    def _problem(self, request: SttRequest) -> str | None:
        """What is wrong with `request`, in words."""
        if len(request.audio) % 2:
            return f"{len(request.audio)} bytes of audio; expected int16 samples."
        return self._language_problem(request.language) if request.language else None

    def _language_problem(self, language: str) -> str | None:
        known = self._model.supported_languages
        if languages.code(language) in known:
            return None
        return (
            f"language {language!r} was asked for, which {self._options.model_name} does not know; "
            f"it knows {', '.join(sorted(known))}."
        )


def _arguments(gen: dict[str, Any], known: Any) -> dict[str, Any]:
    """`gen` as arguments of `transcribe()`, over this backend's own defaults: greedy, each window for itself."""
    arguments = {"beam_size": 1, "temperature": 0.0, "condition_on_previous_text": False}
    for name, value in gen.items():
        if name == "return_timestamps":
            arguments["without_timestamps"] = not value
        elif name in known and name not in _OURS and name != "self":
            arguments[name] = value
        else:
            near = difflib.get_close_matches(name, set(known) - _OURS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"gen_{name} is no argument of faster-whisper's transcribe().{hint}")
    return arguments


def _repository(name: str) -> str:
    """`name`, or where Systran publishes the size that it means."""
    sizes = ("tiny", "base", "small", "medium", "large-v1", "large-v2", "large-v3")
    size = "large-v3" if name == "large" else name
    if size.removesuffix(".en") in sizes:
        return f"Systran/faster-whisper-{size}"
    if size.startswith("distil-") and "/" not in size:
        return f"Systran/faster-distil-whisper-{size.removeprefix('distil-')}"
    return name


def _folder(name: str) -> Path:
    from actors import assets

    folder = assets.resolve(_repository(name))
    if not (folder / "model.bin").is_file():
        raise ValueError(
            f"stt faster-whisper: {name} holds no model.bin: choose a CTranslate2 checkpoint, such as tiny.en or "
            "Systran/faster-whisper-small."
        )
    return folder
