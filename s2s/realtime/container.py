"""Speech in a file format, written piece by piece."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

CONTENT_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
_SOUNDFILE = {"mp3": ("MP3", "MPEG_LAYER_III"), "opus": ("OGG", "OPUS"), "flac": ("FLAC", "PCM_16")}
PCM_RATE_HZ = 24_000
"""Rate of the bare `pcm` format, which has no header to say so."""


class SpeechWriter:
    """int16 mono at `rate_hz` in, the bytes of a file out as they are ready."""

    def __init__(self, style: str, rate_hz: int) -> None:
        from s2s.audio import AudioFormat, Encoder

        self._style = style
        self._buffer = io.BytesIO()
        self._sent = 0
        self._file: Any = None
        self._pcm: Encoder | None = None
        if style in _SOUNDFILE:
            import soundfile

            container, subtype = _SOUNDFILE[style]
            self._file = soundfile.SoundFile(self._buffer, "w", rate_hz, 1, subtype, format=container)
        elif style == "wav":
            self._buffer.write(_wav_header(rate_hz))
        else:
            self._pcm = Encoder(AudioFormat("audio/pcm", PCM_RATE_HZ))
        self._rate_hz = rate_hz

    def write(self, pcm: bytes) -> bytes:
        """The bytes that are ready; may be none."""
        if self._pcm is not None:
            return self._pcm.feed(pcm, self._rate_hz)
        if self._file is None:
            self._buffer.write(pcm)
            return self._drain()
        self._file.write(np.frombuffer(pcm, "<i2"))
        return self._drain() if self._style != "flac" else b""

    def finish(self) -> bytes:
        """The rest."""
        if self._pcm is not None:
            return self._pcm.finish()
        if self._file is not None:
            self._file.close()
        return self._drain()

    def _drain(self) -> bytes:
        """What has been written since the last call; positions go on, for the library seeks in its file."""
        data = self._buffer.getvalue()[self._sent :]
        self._sent += len(data)
        return data


def _wav_header(rate_hz: int) -> bytes:
    """Of a stream whose length nobody knows yet."""
    unknown = 0xFFFFFFFF
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate_hz, rate_hz * 2, 2, 16)
    return b"RIFF" + struct.pack("<I", unknown) + b"WAVE" + form + b"data" + struct.pack("<I", unknown)
