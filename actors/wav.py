"""Sound as the bytes of a wav file."""

from __future__ import annotations

import io
import wave


def wav(pcm: bytes, rate_hz: int) -> bytes:
    """A wav file of `pcm`: int16, little endian, mono, at `rate_hz`."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(pcm)
    return file.getvalue()
