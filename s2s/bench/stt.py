"""`bench stt`: errors and time of Whisper by transformers and by CTranslate2, on the packaged recordings."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, field
from typing import Any

from actors import batch, registry
from actors.assets import Sample, samples
from actors.messages import STT_RATE_HZ, SttRequest, SttResult
from actors.stage import build_options
from s2s.bench import bounds
from s2s.bench.hearing import align
from s2s.config import Config

RUNS = 3
"""Of each recording; the quickest counts, as others may have the cores in between."""
BYTES_PER_S = 2 * STT_RATE_HZ
CHECKPOINTS = {
    "tiny_en": {"whisper": "whisper-tiny.en", "faster-whisper": "whisper-tiny.en-ct2"},
    "base": {"whisper": "whisper-base", "faster-whisper": "whisper-base-ct2"},
}
"""The same weights, by backend."""


@dataclass
class _Tally:
    """What one backend did with the recordings."""

    backend: Any
    errors: int = 0
    seconds: list[float] = field(default_factory=list)


def run(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Transcribe each recording by each backend in turn, on all cores of this machine, one utterance at a time.

    `<checkpoint>_<backend>_wer`: word errors per word said; `..._rtf`: time per second of sound;
    `<checkpoint>_time_ratio`: time of faster-whisper per time of whisper.  Raises `MissingLibrary`, `AssetError`.
    """
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    normalize = EnglishTextNormalizer({})
    spoken = [
        (sample.path.read_bytes()[44:], normalize(sample.text).split()) for sample in _chosen(args.quick)
    ]
    words = sum(len(said) for _, said in spoken)
    sound_s = sum(len(pcm) for pcm, _ in spoken) / BYTES_PER_S
    figures: dict[str, float] = {"recordings": len(spoken), "words": words, "sound_s": sound_s}
    for checkpoint, models in CHECKPOINTS.items():
        tallies = {name: _Tally(_loaded(name, model)) for name, model in models.items()}
        for pcm, said in spoken:
            for tally in tallies.values():
                heard, seconds = _transcribed(tally.backend, pcm)
                tally.errors += word_errors(said, normalize(heard).split())
                tally.seconds.append(seconds)
        for name, tally in tallies.items():
            key = f"{checkpoint}_{name.replace('-', '_')}"
            figures |= {f"{key}_wer": tally.errors / words, f"{key}_rtf": sum(tally.seconds) / sound_s}
        faster, whisper = (sum(tallies[name].seconds) for name in ("faster-whisper", "whisper"))
        figures[f"{checkpoint}_time_ratio"] = faster / whisper
    return {"bench": "stt", "figures": figures, "broken": bounds.broken(figures, bounds.STT)}


def word_errors(said: list[str], heard: list[str]) -> int:
    """Words that were replaced, left out or put in."""
    return sum(
        mine is None or other is None or said[mine] != heard[other] for mine, other in align(said, heard)
    )


def _chosen(quick: bool) -> list[Sample]:
    return samples()[: 4 if quick else None]


def _loaded(name: str, model: str) -> Any:
    entry = registry.find("stt", name)
    backend = entry.backend_class()(build_options(entry, {"model_name": model, "language": "en"}))
    try:
        backend.load("cpu", "auto", os.cpu_count() or 1)
    except ImportError as error:
        raise entry.missing(error) from error
    backend.warmup()
    return backend


def _transcribed(backend: Any, pcm: bytes) -> tuple[str, float]:
    """What was heard, and the seconds that it took."""
    quickest = float("inf")
    for _ in range(RUNS):
        began = time.monotonic()
        ((*_, result),) = batch.run(backend.transcribe, [SttRequest(pcm)])
        quickest = min(quickest, time.monotonic() - began)
    assert isinstance(result, SttResult), result
    return result.text, quickest
