"""Backends by name.  One line each; a backend's module is imported when it is asked for."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

STAGES = ("vad", "turn", "stt", "llm", "tts")
CPU = ("cpu",)
TORCH = ("cuda", "mps", "cpu")
MLX = ("mps", "cpu")
NONE = "none"
"""In place of an STT backend: the LLM hears the sound itself."""
VERBS = {"vad": "score", "turn": "complete", "stt": "transcribe", "llm": "generate", "tts": "synthesize"}

Tested = Literal["real weights", "tiny weights", "signatures", "scripted server", "not at all"]
"""How a backend has been seen to work: with published weights; with random ones of the real classes; against the
signatures of its library as installed; against a server that says what its protocol's documents say."""
REAL: Tested = "real weights"
TINY: Tested = "tiny weights"
SIGNATURES: Tested = "signatures"
SCRIPTED: Tested = "scripted server"


class MissingLibrary(RuntimeError):
    """The library of a backend is not installed."""


@dataclass(frozen=True)
class Entry:
    """Where a backend lives and what it needs."""

    stage: str
    name: str
    target: str
    """`module:Class`; the options dataclass is `module:ClassOptions`."""
    devices: tuple[str, ...]
    extra: str | None
    """The extra of pyproject that installs its libraries; None: in the core."""
    summary: str
    licence: str = ""
    """Of the library; of the weights."""
    tested: Tested = "not at all"
    remote: bool = False
    """Whether it is a server that is asked: there are no weights to be had here."""
    prefixes: tuple[str, ...] = ()
    """What its flags may begin with besides its name."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Modules of the extra that it needs on a device kind, where it does without on others."""

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    def backend_class(self) -> type[Any]:
        cls: type[Any] = getattr(importlib.import_module(self.module), self.target.partition(":")[2])
        return cls

    def options_class(self) -> type[Any]:
        cls: type[Any] = getattr(
            importlib.import_module(self.module), self.target.partition(":")[2] + "Options"
        )
        return cls

    def lacks(self, kind: str) -> str | None:
        """The module that is not installed here and without which it does not run on device `kind`."""
        module = self.needs.get(kind)
        return module if module is not None and importlib.util.find_spec(module) is None else None

    def missing(self, error: ImportError) -> MissingLibrary:
        """What to install where a library could not be imported."""
        cure = (
            f"install the extra: pip install 's2s[{self.extra}]'"
            if self.extra
            else "install it, or s2s anew with all that it requires"
        )
        return MissingLibrary(f"{error}; {cure}.")


# fmt: off
ENTRIES = (
    Entry("vad", "silero", "actors.vad.silero:Silero", CPU, None,
          "Silero VAD v6, ONNX", "MIT; MIT", REAL),
    Entry("turn", "smart-turn", "actors.turn.smart_turn:SmartTurn", CPU, None,
          "Smart Turn v3.2, ONNX", "MIT; BSD-2-Clause", REAL),
    Entry("stt", "whisper", "actors.stt.whisper:Whisper", TORCH, None,
          "Whisper, transformers", "Apache-2.0; MIT", REAL),
    Entry("stt", "faster-whisper", "actors.stt.faster_whisper:FasterWhisper", ("cuda", "cpu"), "faster-whisper",
          "Whisper, CTranslate2", "MIT; MIT", REAL),
    Entry("stt", "moonshine", "actors.stt.moonshine:Moonshine", TORCH, None,
          "Moonshine, transformers", "Apache-2.0; MIT", TINY),
    Entry("stt", "parakeet-tdt", "actors.stt.parakeet_tdt:ParakeetTdt", TORCH, None,
          "NVIDIA Parakeet, transformers", "Apache-2.0; CC-BY-4.0", TINY),
    Entry("stt", "qwen3-asr", "actors.stt.qwen3_asr:Qwen3Asr", TORCH, None,
          "Qwen3-ASR, transformers", "Apache-2.0; Apache-2.0", TINY),
    Entry("stt", "paraformer", "actors.stt.paraformer:Paraformer", TORCH, "paraformer",
          "Paraformer, FunASR", "MIT; FunASR's model licence", SIGNATURES, prefixes=("paraformer-stt",)),
    Entry("stt", "whisper-mlx", "actors.stt.whisper_mlx:WhisperMlx", MLX, "whisper-mlx",
          "Whisper, mlx-whisper", "MIT; MIT", TINY),
    Entry("stt", "mlx-audio-whisper", "actors.stt.mlx_audio_whisper:MlxAudioWhisper", MLX, "mlx-audio",
          "Whisper, mlx-audio", "MIT; MIT", SIGNATURES),
    Entry("stt", "openai", "actors.stt.openai_stt:OpenaiStt", CPU, "openai",
          "any server with transcriptions", "Apache-2.0; the server's", REAL, remote=True),
    Entry("llm", "llama-cpp", "actors.llm.llama_cpp:LlamaCpp", TORCH, None,
          "GGUF models, llama.cpp", "MIT; the model's", REAL),
    Entry("llm", "transformers", "actors.llm.transformers:Transformers", TORCH, None,
          "causal LMs, transformers", "Apache-2.0; the model's", REAL),
    Entry("llm", "mlx-lm", "actors.llm.mlx_lm:MlxLm", MLX, "mlx-lm",
          "causal LMs, mlx-lm", "MIT; the model's", TINY),
    Entry("llm", "chat-completions", "actors.llm.chat_completions:ChatCompletions", CPU, "openai",
          "any server with chat completions", "Apache-2.0; the server's", REAL, remote=True,
          prefixes=("responses-api",)),
    Entry("llm", "responses-api", "actors.llm.responses_api:ResponsesApi", CPU, "openai",
          "any server with the responses API", "Apache-2.0; the server's", SCRIPTED, remote=True),
    Entry("tts", "kokoro", "actors.tts.kokoro:Kokoro", TORCH, "kokoro",
          "Kokoro-82M, ONNX int8 (CPU), torch (GPU)", "MIT; Apache-2.0", REAL,
          needs={"cuda": "kokoro", "mps": "kokoro"}),
    Entry("tts", "facebookMMS", "actors.tts.facebook_mms:FacebookMMS", TORCH, "facebookMMS",
          "Facebook MMS (VITS), transformers", "Apache-2.0; CC-BY-NC-4.0", TINY, prefixes=("facebook-mms",)),
    Entry("tts", "qwen3", "actors.tts.qwen3:Qwen3", TORCH, "qwen3",
          "Qwen3-TTS, qwen-tts-hf", "Apache-2.0; Apache-2.0", TINY),
    Entry("tts", "chatTTS", "actors.tts.chat_tts:ChatTTS", TORCH, "chatTTS",
          "ChatTTS", "AGPL-3.0; CC-BY-NC-4.0", TINY, prefixes=("chat-tts",)),
    Entry("tts", "pocket", "actors.tts.pocket:Pocket", TORCH, "pocket",
          "Pocket TTS, pocket-tts", "MIT; CC-BY-4.0", TINY),
    Entry("tts", "supertonic", "actors.tts.supertonic:Supertonic", CPU, "supertonic",
          "Supertonic, ONNX", "MIT; OpenRAIL-M", SIGNATURES),
    Entry("tts", "kitten", "actors.tts.kitten:Kitten", CPU, "kitten",
          "KittenTTS, ONNX", "Apache-2.0; Apache-2.0", SIGNATURES),
    Entry("tts", "openai", "actors.tts.openai_tts:OpenaiTts", CPU, "openai",
          "any server with speech", "Apache-2.0; the server's", REAL, remote=True),
)
# fmt: on


class UnknownBackend(ValueError):
    """No backend of that name."""


def find(stage: str, name: str) -> Entry:
    """The entry of backend `name` for `stage`; raises `UnknownBackend` with the names there are.

    `package.module:Class` names a backend of one's own, which need not be listed here.
    """
    if ":" in name:
        return Entry(stage, name, name, TORCH, None, "a backend of one's own")
    wanted = name.replace("_", "-").lower()
    names = {entry.name.lower(): entry for entry in ENTRIES if entry.stage == stage}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownBackend(f"{stage} backend {name!r} is not known.{hint} Known: {', '.join(sorted(names))}.")
