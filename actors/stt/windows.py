"""How much Whisper hears at once: long audio is cut at quiet places, short audio is not padded to 30 s."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from actors.messages import STT_RATE_HZ

LENGTHS_S = (10.0, 15.0, 20.0)
"""Lengths that an utterance is padded to, besides the full 30 s: few, so that those of a batch agree and warm-up has
seen them all."""
MARGIN_S = 2.0
"""Silence behind the utterance, at least."""
POSITIONS_PER_S = 50
LONGEST_S = 30.0
EARLIEST_CUT = 2 / 3
"""A cut lies in the last third of its window."""
QUIET_SAMPLES = STT_RATE_HZ // 5
"""A cut is put in the middle of the quietest 200 ms."""
SILENT_RMS = 0.001
"""-60 dBFS: below it in every 100 ms nobody speaks."""


def lengths_s(full_s: float, whole: bool) -> tuple[float, ...]:
    """Window lengths in use, shortest first: those below the `full_s` of the model, or that alone (`whole`)."""
    return (full_s,) if whole else (*(length_s for length_s in LENGTHS_S if length_s < full_s), full_s)


def positions(samples: int, lengths_s: tuple[float, ...]) -> int:
    """Encoder positions of the shortest window in `lengths_s` that leaves a margin behind `samples` at 16 kHz."""
    wanted_s = samples / STT_RATE_HZ + MARGIN_S
    return int(
        POSITIONS_PER_S * next((length_s for length_s in lengths_s if length_s >= wanted_s), lengths_s[-1])
    )


def cuts(audio: NDArray[np.float32], longest_s: float = LONGEST_S) -> list[tuple[int, int]]:
    """(start, stop) samples of the windows of `audio` at 16 kHz, each at most `longest_s`, end to end.

    Each cut lies at the quietest place of the last third of its window.
    """
    longest = int(longest_s * STT_RATE_HZ)
    earliest = int(longest * EARLIEST_CUT)
    found: list[tuple[int, int]] = []
    start = 0
    while len(audio) - start > longest:
        energy = np.concatenate(
            [[0.0], np.cumsum(audio[start + earliest : start + longest].astype(np.float64) ** 2)]
        )
        quiet = int(np.argmin(energy[QUIET_SAMPLES:] - energy[:-QUIET_SAMPLES]))
        stop = start + earliest + quiet + QUIET_SAMPLES // 2
        found.append((start, stop))
        start = stop
    return [*found, (start, len(audio))]


def silent(audio: NDArray[np.float32]) -> bool:
    """Whether no 100 ms of `audio` at 16 kHz is as loud as -60 dBFS."""
    block = STT_RATE_HZ // 10
    padded = np.pad(audio, (0, -len(audio) % block)).reshape(-1, block)
    return bool(np.sqrt((padded.astype(np.float64) ** 2).mean(axis=1)).max(initial=0.0) < SILENT_RMS)
