"""Sound as clients send and get it: 24 kHz mono int16."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from s2s.audio import read_audio

RATE_HZ = 24_000
AUDIBLE_RMS = 300.0
"""Of int16, about -40 dB: speech is well above it, noise of the codec well below."""


def spoken(path: Path, silence_s: float = 1.0) -> bytes:
    """The recording, and enough silence that the turn ends."""
    return read_audio(path, RATE_HZ).pcm + bytes(2 * round(RATE_HZ * silence_s))


def appends(pcm: bytes, chunk_ms: int = 100) -> Iterator[str]:
    """base64 of each piece."""
    step = 2 * RATE_HZ * chunk_ms // 1000
    for start in range(0, len(pcm), step):
        yield base64.b64encode(pcm[start : start + step]).decode()


def seconds(pcm: bytes, rate_hz: int = RATE_HZ) -> float:
    return len(pcm) / 2 / rate_hz


def is_audible(pcm: bytes) -> bool:
    samples = np.frombuffer(pcm, "<i2").astype(np.float64)
    return samples.size > 0 and float(np.sqrt(np.mean(samples**2))) > AUDIBLE_RMS
