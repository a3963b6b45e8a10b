"""Backends by name.  One line each; a backend's module is imported when it is asked for."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import Any

STAGES = ("vad", "turn", "stt", "llm", "tts")
VERBS = {"vad": "score", "turn": "complete", "stt": "transcribe", "llm": "generate", "tts": "synthesize"}


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


ENTRIES = (
    Entry("vad", "silero", "actors.vad.silero:Silero", ("cpu",), None, "Silero VAD v6, ONNX"),
    Entry("turn", "smart-turn", "actors.turn.smart_turn:SmartTurn", ("cpu",), None, "Smart Turn v3.2, ONNX"),
    Entry(
        "stt", "whisper", "actors.stt.whisper:Whisper", ("cuda", "mps", "cpu"), None, "Whisper, transformers"
    ),
    Entry(
        "llm",
        "llama-cpp",
        "actors.llm.llama_cpp:LlamaCpp",
        ("cuda", "mps", "cpu"),
        None,
        "GGUF models, llama.cpp",
    ),
    Entry(
        "llm",
        "transformers",
        "actors.llm.transformers:Transformers",
        ("cuda", "mps", "cpu"),
        None,
        "causal LMs",
    ),
    Entry("tts", "kokoro", "actors.tts.kokoro:Kokoro", ("cpu",), None, "Kokoro-82M, ONNX int8"),
)


class UnknownBackend(ValueError):
    """No backend of that name."""


def find(stage: str, name: str) -> Entry:
    """The entry of backend `name` for `stage`; raises `UnknownBackend` with the names there are.

    `package.module:Class` names a backend of one's own, which need not be listed here.
    """
    if ":" in name:
        return Entry(stage, name, name, ("cuda", "mps", "cpu"), None, "a backend of one's own")
    wanted = name.replace("_", "-").lower()
    names = {entry.name.lower(): entry for entry in ENTRIES if entry.stage == stage}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownBackend(f"{stage} backend {name!r} is not known.{hint} Known: {', '.join(sorted(names))}.")
