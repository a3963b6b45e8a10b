"""Sound at the edge: the wire's formats to and from 16-bit PCM, streaming resampling, and audio files.

Inside the system sound is mono int16, little endian: 16 kHz towards the stages, from TTS at the voice's rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from actors.messages import STT_RATE_HZ

Pcm16 = npt.NDArray[np.int16]


@dataclass(frozen=True)
class AudioFormat:
    """On the wire: `audio/pcm` (int16, little endian), or G.711 `audio/pcmu` / `audio/pcma` at 8 kHz."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"] = "audio/pcm"
    rate_hz: int = 24_000

    @property
    def sample_bytes(self) -> int:
        return 2 if self.type == "audio/pcm" else 1


class Resampler:
    """Mono int16 from one rate to another, chunk after chunk, without a click at the borders (soxr)."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self.from_hz = from_hz
        self.to_hz = to_hz
        self._stream = None
        if from_hz != to_hz:
            import soxr

            self._stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")

    def feed(self, samples: Pcm16, last: bool = False) -> Pcm16:
        """The samples that are ready; `last` also brings those still inside and starts afresh."""
        if self._stream is None:
            return samples
        # In float: soxr dithers int16, and then the same sound in other chunks would not be the same.
        out = self._stream.resample_chunk(samples.astype(np.float32), last=last)
        if last:
            self._stream.clear()
        rounded: Pcm16 = np.clip(np.rint(out), -32768, 32767).astype(np.int16)
        return rounded


class Decoder:
    """A client's audio bytes to int16 at 16 kHz; odd bytes and the resampler's state carry over."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self.format = audio_format
        self._resampler = Resampler(audio_format.rate_hz, STT_RATE_HZ)
        self._odd = b""

    def feed(self, data: bytes, last: bool = False) -> bytes:
        """int16 bytes at 16 kHz; `last` (a commit) flushes the resampler's tail."""
        data = self._odd + data
        whole = len(data) - len(data) % self.format.sample_bytes
        self._odd = b"" if last else data[whole:]
        return self._resampler.feed(_to_pcm16(data[:whole], self.format.type), last).tobytes()

    def clear(self) -> None:
        """Forget what is carried over."""
        self._odd = b""
        self._resampler.feed(np.empty(0, np.int16), last=True)


class Encoder:
    """int16 at the voice's rate to a client's format."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self.format = audio_format
        self._resampler: Resampler | None = None

    def feed(self, pcm: bytes, rate_hz: int, last: bool = False) -> bytes:
        """Bytes in the client's format; `last` brings the resampler's tail."""
        if self._resampler is None or self._resampler.from_hz != rate_hz:
            self._resampler = Resampler(rate_hz, self.format.rate_hz)
        return _from_pcm16(self._resampler.feed(np.frombuffer(pcm, "<i2"), last), self.format.type)

    def finish(self) -> bytes:
        """The tail of what was fed; the next `feed` starts afresh."""
        if self._resampler is None:
            return b""
        return self.feed(b"", self._resampler.from_hz, last=True)


def _ulaw_table() -> Pcm16:
    """ITU-T G.711 µ-law: byte to linear."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (code >> 4) & 7, code & 0x0F
    magnitude = (((mantissa.astype(np.int32) << 3) + 0x84) << exponent) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw_table() -> Pcm16:
    """ITU-T G.711 A-law: byte to linear."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4) & 7, (code & 0x0F).astype(np.int32)
    magnitude = np.where(
        exponent == 0,
        (mantissa << 4) + 8,
        ((mantissa << 4) + 0x108) << np.maximum(exponent.astype(np.int32) - 1, 0),
    )
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


def _nearest(table: Pcm16) -> npt.NDArray[np.uint8]:
    """For every int16 value (indexed by value + 32768) the code whose linear value is nearest."""
    order = np.argsort(table, kind="stable").astype(np.uint8)
    levels = table[order].astype(np.int32)
    borders = (levels[:-1] + levels[1:] + 1) // 2
    return order[np.searchsorted(borders, np.arange(-32768, 32768), side="right")]


_DECODE = {"audio/pcmu": _ulaw_table(), "audio/pcma": _alaw_table()}
_ENCODE = {name: _nearest(table) for name, table in _DECODE.items()}


def _to_pcm16(data: bytes, kind: str) -> Pcm16:
    if kind == "audio/pcm":
        return np.frombuffer(data, "<i2")
    return _DECODE[kind][np.frombuffer(data, np.uint8)]


def _from_pcm16(samples: Pcm16, kind: str) -> bytes:
    if kind == "audio/pcm":
        return samples.astype("<i2", copy=False).tobytes()
    return _ENCODE[kind][samples.astype(np.int32) + 32768].tobytes()


class AudioFileError(ValueError):
    """A file that holds no audio, or that cannot be read or written."""


@dataclass(frozen=True)
class Clip:
    """A mono recording: int16 bytes at `rate_hz`."""

    pcm: bytes
    rate_hz: int

    @property
    def duration_s(self) -> float:
        return len(self.pcm) / 2 / self.rate_hz


def read_audio(path: Path, rate_hz: int = STT_RATE_HZ) -> Clip:
    """A wav, flac, ogg or mp3 file of any rate and number of channels, mixed to mono at `rate_hz`.

    Raises `AudioFileError` naming the file and what is wrong with it.
    """
    import soundfile
    import soxr

    if not path.exists():
        raise AudioFileError(f"{path}: no such file.")
    if path.is_dir():
        raise AudioFileError(f"{path}: is a folder, not an audio file.")
    try:
        if path.stat().st_size == 0:
            raise AudioFileError(f"{path}: is empty (0 bytes).")
        samples, found_hz = soundfile.read(str(path), dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioFileError(
            f"{path}: is not audio that can be read ({error}); wav, flac, ogg, mp3 can."
        ) from error
    except OSError as error:
        raise AudioFileError(f"{path}: cannot be read ({error.strerror}).") from error
    if len(samples) == 0:
        raise AudioFileError(f"{path}: holds no audio (0 samples).")
    mono = np.nan_to_num(samples.mean(axis=1), posinf=1.0, neginf=-1.0)
    resampled = soxr.resample(mono, found_hz, rate_hz)
    pcm = (np.clip(resampled, -1.0, 1.0) * 32767.0).round().astype("<i2")
    return Clip(pcm.tobytes(), rate_hz)


def write_wav(path: Path, clip: Clip) -> None:
    """Write a 16-bit mono wav; raises `AudioFileError` if that is not possible (full disk, no permission)."""
    import soundfile

    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            soundfile.write(file, np.frombuffer(clip.pcm, "<i2"), clip.rate_hz, "PCM_16", format="WAV")
        temporary.replace(path)
    except (OSError, soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioFileError(f"{path}: cannot be written ({error}).") from error
    finally:
        temporary.unlink(missing_ok=True) if temporary.parent.is_dir() else None
