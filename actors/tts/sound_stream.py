"""The sound of a clause as its samples come: trimmed, faded, in pieces, without what has been delivered before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from actors.messages import TtsAudio
from actors.tts.clause_sound import Samples, Shape, fade_in, limited

STEP_MS = 5
SILENCE = 0.003
"""-50 dBFS; what is softer before and behind the speech is left out."""
BELOW_LOUDEST = 0.005
"""-46 dB: the same, measured from the loudest 5 ms so far."""
PIECE_SAMPLES = 24_000
"""48 KB of int16."""
FIRST_PIECE_MS = 200
SENTENCE_MARKS = ".!?…。！？"
COMMA_MARKS = ",;:—–、，；："
SENTENCE_PAUSE_MS, COMMA_PAUSE_MS = 280, 120


def pause_ms(text: str) -> int:
    """Silence behind a clause of `text`, ms."""
    last = text.rstrip(" \n)\"'”’»」』")[-1:]
    if not last:
        return 0
    return SENTENCE_PAUSE_MS if last in SENTENCE_MARKS else COMMA_PAUSE_MS if last in COMMA_MARKS else 0


class SoundStream:
    """Samples of one clause in, pieces of int16 out."""

    def __init__(
        self, rate_hz: int, skip_samples: int = 0, blocksize: int = 0, shape: Shape | None = None
    ) -> None:
        """`blocksize`: samples of a piece; 0: 200 ms first, then at most 48 KB.  Raises `ValueError` below 0."""
        if blocksize < 0:
            raise ValueError(f"pieces of {blocksize} samples were asked for; choose 0 or more.")
        shape = shape or Shape()
        self.rate_hz = rate_hz
        self.samples = 0
        """What the clause has so far, skipped samples included."""
        self.trimmed = 0
        """What was left out ahead of it."""
        self._skip = skip_samples
        self._blocksize = min(blocksize, PIECE_SAMPLES)
        self._step = rate_hz * STEP_MS // 1000
        self._lead, self._tail, self._fade = (
            rate_hz * ms // 1000 for ms in (shape.lead_ms, shape.tail_ms, shape.fade_ms)
        )
        self._held: Samples = np.zeros(0, np.float32)
        """Not sent yet: silence that may be the end, and the last speech, which may have to fade out."""
        self._searched = 0
        self._speech_end = 0
        self._begun = False
        self._loudest = 0.0

    def feed(self, samples: npt.NDArray[np.floating]) -> Iterator[TtsAudio]:
        """Take float samples, -1..1."""
        self._held = np.concatenate([self._held, np.asarray(samples, np.float32).reshape(-1)])
        first = self._search()
        if first is not None and not self._begun:
            self._begun = True
            self._trim(max(0, first - self._lead))
            rise = fade_in(min(self._fade, len(self._held)))
            self._held[: len(rise)] *= rise
        if not self._begun:
            self._trim(max(0, self._searched - self._lead) // self._step * self._step)
            return
        yield from self._send(max(0, self._speech_end - self._fade))

    def finish(self, pause_ms: int) -> Iterator[TtsAudio]:
        """The end of the clause, and silence behind it; nothing where no speech came."""
        if not self._begun:
            return
        self._held = self._held[: self._speech_end + self._tail]
        rise = fade_in(min(self._fade, len(self._held)))
        self._held[len(self._held) - len(rise) :] *= rise[::-1]
        pause = np.zeros(self.rate_hz * pause_ms // 1000, np.float32)
        self._held = np.concatenate([self._held, pause])
        yield from self._send(len(self._held))

    def _search(self) -> int | None:
        """Look at the whole steps that are new; where the first one with speech begins."""
        count = (len(self._held) - self._searched) // self._step
        if not count:
            return None
        new = self._held[self._searched : self._searched + count * self._step].reshape(count, self._step)
        level = np.sqrt(np.square(new).mean(axis=1))
        self._loudest = max(self._loudest, float(level.max()))
        loud = np.flatnonzero(level > max(SILENCE, self._loudest * BELOW_LOUDEST))
        begin = self._searched
        self._searched += count * self._step
        if not len(loud):
            return None
        self._speech_end = begin + int(loud[-1] + 1) * self._step
        return begin + int(loud[0]) * self._step

    def _trim(self, count: int) -> None:
        self.trimmed += count
        self._drop(count)

    def _drop(self, count: int) -> None:
        self._held = self._held[count:].copy()
        self._searched = max(0, self._searched - count)
        self._speech_end = max(0, self._speech_end - count)

    def _send(self, count: int) -> Iterator[TtsAudio]:
        """Send the first `count` held samples."""
        ready = np.round(limited(self._held[:count]) * 32_767).astype("<i2")
        self._drop(count)
        begins = self.samples == 0
        self.samples += count
        skipped = min(self._skip, count)
        self._skip -= skipped
        start = skipped
        while start < count:
            size = self._blocksize or PIECE_SAMPLES
            if begins and start == 0 and not self._blocksize:
                size = self.rate_hz * FIRST_PIECE_MS // 1000
            yield TtsAudio(ready[start : start + size].tobytes(), self.rate_hz)
            start += size
