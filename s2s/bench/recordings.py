"""What is said to a server that is measured: packaged recordings, where the speech in them lies, and noise.

Where speech begins and ends is measured: Silero finds it to a frame of 32 ms, and the level of the sound to 10 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from actors import batch
from actors.assets import samples
from actors.messages import STT_RATE_HZ, VAD_FRAME_SAMPLES, VadRequest, VadResult
from actors.vad.silero import Silero
from s2s.audio import Pcm16, Resampler, read_audio

RATE_HZ = 24_000
"""Of everything here, as clients send it."""
SPEECH = 0.5
STEP = RATE_HZ // 100
LEVEL_DB = -28.0
"""Sound this far below the loudest 10 ms of a recording is no speech any more: the rooms of the packaged recordings
are at -34 to -44 dB."""
MARGIN_MS = 200
"""Kept around a recording's speech: the room goes on."""
AFTER_VAD_MS = 160
"""How far beyond the VAD's last frame of speech the end is looked for."""
LONGEST_OWN_PAUSE_MS = 200
"""None that could be an endpoint."""
VAD_FRAME_MS = 32
NOISES = ("white", "pink", "brown", "hum", "clicks", "gusts")


@dataclass(frozen=True)
class Recording:
    """Speech in 24 kHz, and the samples between which it lies."""

    name: str
    pcm: Pcm16
    onset: int
    end: int
    pauses_ms: tuple[int, ...] = ()
    """Pauses within it of at least 100 ms, by VAD."""
    voiced_ms: int = 0
    """Speech in a row from its onset, by VAD."""
    text: str = ""
    """What is said in it, where that is known."""

    @property
    def onset_s(self) -> float:
        return self.onset / RATE_HZ

    @property
    def end_s(self) -> float:
        return self.end / RATE_HZ


class Measure:
    """Finds speech in sound."""

    def __init__(self) -> None:
        self._silero = Silero()
        self._silero.load("cpu", "float32", 1)

    def probabilities(self, pcm: Pcm16) -> list[float]:
        """Of speech, for each 32 ms of 24 kHz `pcm`."""
        heard = Resampler(RATE_HZ, STT_RATE_HZ).feed(pcm, last=True)
        whole = len(heard) // VAD_FRAME_SAMPLES * VAD_FRAME_SAMPLES
        ((result,),) = batch.run(self._silero.score, [VadRequest(b"", b"", heard[:whole].tobytes())])
        assert isinstance(result, VadResult), result
        return result.probabilities

    def recording(self, name: str, pcm: Pcm16, text: str = "") -> Recording:
        """`pcm` with silence cut down to `MARGIN_MS` at both ends.  Raises `ValueError` where nobody speaks."""
        silence = np.zeros(RATE_HZ * MARGIN_MS // 1000, np.int16)
        pcm = np.concatenate([silence, pcm, silence, silence])
        spoken = [probability >= SPEECH for probability in self.probabilities(pcm)]
        if not any(spoken):
            raise ValueError(f"{name}: no speech was found in it.")
        first, last = spoken.index(True), len(spoken) - 1 - spoken[::-1].index(True)
        onset, end = _sounding(pcm, sample_of(first), sample_of(last + 1) + RATE_HZ * AFTER_VAD_MS // 1000)
        start = onset - len(silence)
        stretches = runs(spoken[first : last + 1])
        pauses = tuple(
            length * VAD_FRAME_MS for is_speech, length in stretches if not is_speech and length > 3
        )
        kept = pcm[max(0, start) : end + len(silence)]
        cut = max(0, start)
        return Recording(name, kept, onset - cut, end - cut, pauses, stretches[0][1] * VAD_FRAME_MS, text)


def sample_of(frame: int) -> int:
    """The first sample, in 24 kHz, of a frame of the VAD."""
    return frame * VAD_FRAME_SAMPLES * RATE_HZ // STT_RATE_HZ


def _sounding(pcm: Pcm16, start: int, stop: int) -> tuple[int, int]:
    """First and last-but-one sample of [start, stop), widened to the left by 100 ms, that is as loud as speech."""
    start = max(0, start - RATE_HZ // 10) // STEP * STEP
    power = step_power(pcm[start:stop])
    loud = np.flatnonzero(power >= power.max() * 10 ** (LEVEL_DB / 10))
    return start + int(loud[0]) * STEP, start + (int(loud[-1]) + 1) * STEP


def step_power(pcm: Pcm16) -> NDArray[np.float64]:
    """The mean square of each whole 10 ms of `pcm`."""
    steps = pcm[: len(pcm) // STEP * STEP].astype(np.float64).reshape(-1, STEP)
    power: NDArray[np.float64] = np.square(steps).mean(axis=1)
    return power


def runs(flags: Sequence[bool]) -> list[tuple[bool, int]]:
    """Equal values in a row, and how many."""
    found: list[tuple[bool, int]] = []
    for flag in flags:
        if found and found[-1][0] == flag:
            found[-1] = (flag, found[-1][1] + 1)
        else:
            found.append((flag, 1))
    return found


def packaged(measure: Measure) -> list[Recording]:
    """The packaged recordings of real speech."""
    found = []
    for sample in samples():
        pcm = np.frombuffer(read_audio(sample.path, RATE_HZ).pcm, "<i2")
        found.append(measure.recording(sample.path.stem, pcm, sample.text))
    return found


def steady(recordings: Iterable[Recording], longest_pause_ms: int) -> list[Recording]:
    """Those that hold no longer pause."""
    return [each for each in recordings if max(each.pauses_ms, default=0) <= longest_pause_ms]


def noise(kind: str, seconds: float, rng: np.random.Generator, level_db: float = -30.0) -> Pcm16:
    """Sound without speech; `level_db` is its mean below full scale (of clicks and gusts while they last)."""
    count = int(seconds * RATE_HZ)
    at = np.arange(count) / RATE_HZ
    white = rng.standard_normal(count)
    if kind == "white":
        sound = white
    elif kind == "hum":
        sound = sum(np.sin(2 * np.pi * 50 * part * at) / part for part in (1, 2, 3, 5)) + 0.05 * white
    elif kind == "clicks":
        sound = white * (rng.random(count // 480 + 1) < 0.08).repeat(480)[:count]
    elif kind == "gusts":
        sound = _coloured(white, 2.0) * np.square(np.sin(2 * np.pi * 0.3 * at))
    else:
        sound = _coloured(white, {"pink": 1.0, "brown": 2.0}[kind])
    rms = np.sqrt(np.mean(np.square(sound[sound != 0])))
    scaled: Pcm16 = np.clip(sound * 32768 * 10 ** (level_db / 20) / rms, -32768, 32767).astype(np.int16)
    return scaled


def _coloured(white: np.ndarray, slope: float) -> np.ndarray:
    """White noise whose power falls by f ** -`slope` above 20 Hz."""
    spectrum = np.fft.rfft(white)
    frequency = np.fft.rfftfreq(len(white), 1 / RATE_HZ)
    spectrum *= np.maximum(frequency, 20.0) ** (-slope / 2)
    return np.fft.irfft(spectrum, len(white))


def cough(rng: np.random.Generator) -> Pcm16:
    """Two bursts of noise with a sharp begin, as of a cough: some 250 ms each."""
    bursts = []
    for seconds in (0.22, 0.28):
        at = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
        burst = _coloured(rng.standard_normal(len(at)), 1.0) * np.exp(-at / 0.07) * np.minimum(1, at / 0.005)
        bursts += [burst / np.abs(burst).max() * 12_000, np.zeros(RATE_HZ // 12)]
    return np.concatenate(bursts).astype(np.int16)
