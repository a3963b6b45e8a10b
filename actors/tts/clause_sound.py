"""The shape of one clause's sound: how it begins, ends and pauses, so that clauses join without clicks or gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

_STEP_MS = 5
"""Resolution at which silence is told from sound."""
_SILENCE_DB = -46.0
"""Below the loudest 5 ms of the clause: what lies outside is the model's silence, not a soft consonant."""
_KNEE = 0.85
"""Samples above this part of full scale are bent so that none reaches it."""


@dataclass(frozen=True)
class Shape:
    """Times in ms, all at the voice's own rate."""

    lead_ms: int = 20
    tail_ms: int = 40
    fade_ms: int = 5


def sound_bounds(samples: Samples, rate_hz: int) -> tuple[int, int]:
    """First and last-but-one sample of what can be heard, to 5 ms; (0, 0) when all is silence."""
    step = rate_hz * _STEP_MS // 1000
    count = len(samples) // step
    if count == 0:
        return 0, 0
    power = np.square(samples[: count * step].reshape(count, step)).mean(axis=1)
    loudest = float(power.max())
    if loudest < 1e-8:
        return 0, 0
    heard = np.flatnonzero(power > loudest * 10 ** (_SILENCE_DB / 10))
    return int(heard[0]) * step, int(heard[-1] + 1) * step


def shaped(samples: Samples, rate_hz: int, shape: Shape, pause_ms: int) -> tuple[npt.NDArray[np.int16], int]:
    """int16 samples trimmed to `shape`, faded at both ends, peaks bent below full scale, followed by `pause_ms` of
    silence; and how many samples were cut off the front.  Silence gives nothing.
    """
    first, end = sound_bounds(samples, rate_hz)
    if end == first:
        return np.zeros(0, np.int16), 0
    first = max(0, first - rate_hz * shape.lead_ms // 1000)
    end = min(len(samples), end + rate_hz * shape.tail_ms // 1000)
    kept = limited(samples[first:end])
    fade = min(rate_hz * shape.fade_ms // 1000, len(kept) // 2)
    if fade:
        ramp = np.sin(np.linspace(0, np.pi / 2, fade, dtype=np.float32)) ** 2
        kept[:fade] *= ramp
        kept[-fade:] *= ramp[::-1]
    pause = np.zeros(rate_hz * pause_ms // 1000, np.int16)
    return np.concatenate([np.round(kept * 32767).astype(np.int16), pause]), first


def limited(samples: Samples) -> Samples:
    """A copy with |x| > 0.85 bent smoothly towards 1, which it never passes."""
    size = np.abs(samples)
    bent = _KNEE + (1 - _KNEE) * np.tanh((size - _KNEE) / (1 - _KNEE))
    return np.where(size > _KNEE, np.sign(samples) * bent, samples).astype(np.float32)
