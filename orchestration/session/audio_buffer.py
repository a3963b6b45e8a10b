"""The input audio buffer: what has come in since the last commit, by absolute sample of the session."""

from __future__ import annotations

from actors.messages import STT_RATE_HZ

SAMPLE_BYTES = 2


def to_ms(samples: int) -> int:
    return samples * 1000 // STT_RATE_HZ


def to_samples(ms: float) -> int:
    return int(ms * STT_RATE_HZ / 1000)


class AudioBuffer:
    """int16 mono 16 kHz between samples `start` and `end`, both counted from the begin of the session."""

    def __init__(self) -> None:
        self.start = 0
        self._pcm = bytearray()

    @property
    def end(self) -> int:
        return self.start + len(self._pcm) // SAMPLE_BYTES

    def append(self, pcm: bytes) -> None:
        self._pcm += pcm

    def read(self, start: int, end: int) -> bytes:
        """The samples of [start, end) that are still here."""
        first = max(0, start - self.start) * SAMPLE_BYTES
        return bytes(self._pcm[first : max(0, end - self.start) * SAMPLE_BYTES])

    def drop_before(self, sample: int) -> None:
        count = min(max(0, sample - self.start), len(self._pcm) // SAMPLE_BYTES)
        del self._pcm[: count * SAMPLE_BYTES]
        self.start += count
