"""What both MLX Whisper backends make of the segments that their libraries give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.messages import Word
from actors.stt.listening import Heard

PUBLISHED = {"tiny": 39e6, "base": 74e6, "small": 244e6, "medium": 769e6, "turbo": 809e6, "large": 1550e6}


def heard(text: str, language: str | None, segments: Sequence[Mapping[str, Any]] | None) -> Heard:
    """Segments have `avg_logprob`, `no_speech_prob` and, if asked for, `words` with `word`, `start`, `end` (s)."""
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
