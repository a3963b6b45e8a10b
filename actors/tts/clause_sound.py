"""The shape of one clause's sound: how it begins, ends and pauses, so that clauses join without clicks or gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

_STEP_MS = 5
"""Resolution at which silence is told from sound."""
_QUIET_DB = -32.0
"""Below the loudest 5 ms of the clause: a long stretch of it is a pause, with breath and reverberation in it."""
_KNEE = 0.85
"""Samples above this part of full scale are bent so that none reaches it."""


@dataclass(frozen=True)
class Shape:
    """Times in ms, all at the voice's own rate."""

    lead_ms: int = 20
    tail_ms: int = 40
    fade_ms: int = 5


def without_gaps(
    samples: Samples, rate_hz: int, max_gap_ms: int, fade_ms: int = 5
) -> tuple[Samples, tuple[tuple[int, int], ...]]:
    """`samples` without the middle of pauses longer than `max_gap_ms`, and what was left out: first sample, and first
    that was kept again.  Across a cut one side fades into the other.
    """
    step = rate_hz * _STEP_MS // 1000
    count = len(samples) // step
    power = np.square(samples[: count * step].reshape(count, step)).mean(axis=1)
    loud = np.flatnonzero(power > power.max(initial=0.0) * 10 ** (_QUIET_DB / 10))
    longest = rate_hz * max_gap_ms // 1000
    cuts = tuple(
        (int(before) + longest // 2, int(after) - (longest - longest // 2))
        for before, after in zip((loud[:-1] + 1) * step, loud[1:] * step, strict=True)
        if after - before > longest
    )
    rise = fade_in(min(rate_hz * fade_ms // 1000, longest // 2))
    kept: list[Samples] = []
    start = 0
    for stop, taken_up in [*cuts, (len(samples), len(samples))]:
        part = samples[start:stop].copy()
        if stop < taken_up:
            joint = slice(len(part) - len(rise), len(part))
            part[joint] = part[joint] * rise[::-1] + samples[taken_up - len(rise) : taken_up] * rise
        kept.append(part)
        start = taken_up
    return np.concatenate(kept), cuts


def fade_in(size: int) -> Samples:
    """A fade-in from 0 to 1; with its reverse it adds up to 1."""
    rise: Samples = np.sin(np.linspace(0, np.pi / 2, size, dtype=np.float32)) ** 2
    return rise


def limited(samples: Samples) -> Samples:
    """A copy with |x| > 0.85 bent smoothly towards 1, which it never passes."""
    size = np.abs(samples)
    bent = _KNEE + (1 - _KNEE) * np.tanh((size - _KNEE) / (1 - _KNEE))
    return np.where(size > _KNEE, np.sign(samples) * bent, samples).astype(np.float32)
