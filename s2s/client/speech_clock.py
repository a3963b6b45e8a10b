"""When was it said?  The moments of what the server counts in milliseconds of sound, and the end of speech."""

from __future__ import annotations

from collections import deque

from s2s.client.player import WIRE_HZ

SPEECH_BELOW_LOUDEST_DB = 28.0
"""Quieter sound of a turn is no speech any more (as in `bench turns`)."""
KEPT_LEVELS = 3_000
"""Levels of frames, from which the end of speech is found: a minute of 20 ms."""
ROUNDING_S = 0.001
"""Of the server's moments: whole milliseconds."""


class SpeechClock:
    """Of one session; moments are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._samples = 0
        self._at = 0.0
        self._levels: deque[tuple[float, float]] = deque(maxlen=KEPT_LEVELS)

    def sent(self, samples: int, level_db: float, at: float) -> None:
        """A frame that the server gets; its last sample was spoken `at`."""
        self._samples += samples
        self._at = at
        self._levels.append((at, level_db))

    def moment(self, audio_ms: float) -> float:
        """When the sample was spoken that the server counts as `audio_ms`."""
        return self._at - self._samples / WIRE_HZ + audio_ms / 1000

    def end_of_speech(self, start: float, end: float, silence_ms: float) -> float:
        """When the turn between two moments was last as loud as speech; the server's end includes `silence_ms`."""
        latest = end - silence_ms / 1000 + ROUNDING_S
        turn = [(at, level) for at, level in self._levels if start < at <= latest]
        loudest = max((level for _, level in turn), default=0.0)
        loud = [at for at, level in turn if level >= loudest - SPEECH_BELOW_LOUDEST_DB]
        return loud[-1] if loud else latest
