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
_QUIET_DB = -32.0
"""The same for what lies inside: a long stretch below it is a pause, with breath and reverberation in it."""
_KNEE = 0.85
"""Samples above this part of full scale are bent so that none reaches it."""


@dataclass(frozen=True)
class Shape:
    """Times in ms, all at the voice's own rate."""

    lead_ms: int = 20
    tail_ms: int = 40
    fade_ms: int = 5
    max_gap_ms: int = 220
    """Longest pause inside a clause."""


@dataclass(frozen=True)
class ClauseSound:
    """What is heard of a clause, and where the model's samples are in it."""

    pcm: npt.NDArray[np.int16]
    cuts: tuple[tuple[int, int], ...] = ()
    """First sample that was left out and the first that was kept again, in the model's samples, in order."""

    def position(self, sample: int) -> int:
        """Where the model's `sample` is in `pcm`; one that was left out: where it was cut."""
        return sample - sum(min(sample, end) - start for start, end in self.cuts if sample > start)


def sound_bounds(samples: Samples, rate_hz: int) -> tuple[int, int]:
    """First and last-but-one sample of what can be heard, to 5 ms; (0, 0) when all is silence."""
    heard, step = _louder(samples, rate_hz, _SILENCE_DB)
    return (int(heard[0]) * step, int(heard[-1] + 1) * step) if len(heard) else (0, 0)


def _louder(samples: Samples, rate_hz: int, level_db: float) -> tuple[npt.NDArray[np.intp], int]:
    """Which steps of `samples` are louder than `level_db` below the loudest one, and samples in a step."""
    step = rate_hz * _STEP_MS // 1000
    count = len(samples) // step
    power = np.square(samples[: count * step].reshape(count, step)).mean(axis=1)
    loudest = float(power.max(initial=0.0))
    if loudest < 1e-8:
        return np.zeros(0, np.intp), step
    return np.flatnonzero(power > loudest * 10 ** (level_db / 10)), step


def shaped(samples: Samples, rate_hz: int, shape: Shape, pause_ms: int) -> ClauseSound:
    """int16 samples trimmed to `shape`, faded at both ends, long pauses inside shortened, peaks bent below full
    scale, followed by `pause_ms` of silence.  Silence gives nothing.
    """
    first, end = sound_bounds(samples, rate_hz)
    if end == first:
        return ClauseSound(np.zeros(0, np.int16))
    first = max(0, first - rate_hz * shape.lead_ms // 1000)
    end = min(len(samples), end + rate_hz * shape.tail_ms // 1000)
    fade = rate_hz * shape.fade_ms // 1000
    cuts = [(0, first), *_gaps(samples[:end], rate_hz, shape.max_gap_ms)]
    kept: list[Samples] = []
    for (_, start), (stop, resumed) in zip(cuts, [*cuts[1:], (end, end)], strict=True):
        part = samples[start:stop].copy()
        rise = fade_in(min(fade, len(part) // 2))
        if stop < resumed:  # across a cut one side fades into the other
            joint = slice(len(part) - len(rise), len(part))
            part[joint] = part[joint] * rise[::-1] + samples[resumed - len(rise) : resumed] * rise
        kept.append(part)
    sound = limited(np.concatenate(kept))
    rise = fade_in(min(fade, len(sound) // 2))
    sound[: len(rise)] *= rise
    sound[len(sound) - len(rise) :] *= rise[::-1]
    pause = np.zeros(rate_hz * pause_ms // 1000, np.int16)
    return ClauseSound(np.concatenate([np.round(sound * 32767).astype(np.int16), pause]), tuple(cuts))


def fade_in(size: int) -> Samples:
    """A fade-in from 0 to 1; with its reverse it adds up to 1."""
    rise: Samples = np.sin(np.linspace(0, np.pi / 2, size, dtype=np.float32)) ** 2
    return rise


def _gaps(samples: Samples, rate_hz: int, max_gap_ms: int) -> list[tuple[int, int]]:
    """What to leave out of pauses longer than `max_gap_ms`: their middle."""
    loud, step = _louder(samples, rate_hz, _QUIET_DB)
    longest = rate_hz * max_gap_ms // 1000
    found = []
    for before, after in zip((loud[:-1] + 1) * step, loud[1:] * step, strict=True):
        if after - before > longest:
            found.append((int(before) + longest // 2, int(after) - (longest - longest // 2)))
    return found


def limited(samples: Samples) -> Samples:
    """A copy with |x| > 0.85 bent smoothly towards 1, which it never passes."""
    size = np.abs(samples)
    bent = _KNEE + (1 - _KNEE) * np.tanh((size - _KNEE) / (1 - _KNEE))
    return np.where(size > _KNEE, np.sign(samples) * bent, samples).astype(np.float32)
