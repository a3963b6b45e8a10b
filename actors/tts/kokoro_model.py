"""Kokoro-82M as ONNX sessions: phonemes in, sound as it is made and the length of each phoneme out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from actors import onnx_session
from actors.tts import kokoro_graph as graph
from actors.tts.clause_sound import Samples, fade_in

RATE_HZ = 24_000
FRAME_SAMPLES = 600
"""One unit of the model's durations: 25 ms."""
MAX_PHONEMES = 510
"""Positions the text encoder has, less the mark at each end; also the rows of a voice."""
STEP_SAMPLES = FRAME_SAMPLES // 2
"""One step of what is planned: 12.5 ms."""
_SILENT, _QUIET = 12.0, 7.5
"""Planned loudness this much below the clause's loudest: not heard (-46 dB); a pause, if it lasts (-32 dB)."""
_CONTEXT = 6
"""Steps on either side that a stretch of sound depends on."""
_BEFORE, _BEHIND = 2, 4
"""Steps of sound around what is heard."""
_JOINT_SAMPLES = 60
"""Stretches fade into each other: their 8-bit numbers are rounded in different ways."""
_FIRST, _LONGEST = 16, 96
"""Steps of the first stretch, and of a later one: each is a third longer than the one before, which plays meanwhile.
The context makes short ones dear; long ones need memory."""
REFERENCE = "ɪt wʌz ðə bˈɛst ʌv tˈImz."
"""What each voice is measured by.  All of its sound is made in the timbre that the voice has for this length."""

Statistics = Mapping[str, npt.NDArray[np.float32]]


class Stopped(RuntimeError):
    """The run was ended by `Run.stop`."""


@dataclass(frozen=True, eq=False)
class Voice:
    rows: npt.NDArray[np.float32]
    """float32[510, 256]: the style of a text of 1, 2, … phonemes."""


@dataclass(frozen=True)
class Speech:
    frames: npt.NDArray[np.int64]
    """Length of each phoneme in frames of 600 samples, the marks at both ends included: n + 2 values."""
    sound: Iterator[Samples]
    """float32, -1..1, as it is made; raises `Stopped` after `Run.stop`."""
    end: int
    """First sample behind the speech, in the whole that `frames` measure."""
    cuts: tuple[tuple[int, int], ...] = ()
    """What `sound` leaves out of that whole: first sample, and first that is there again."""

    def position(self, sample: int) -> int:
        """Where `sample` of the whole is in `sound`; one that was left out: where it was cut."""
        return sample - sum(min(sample, end) - start for start, end in self.cuts if sample > start)


class Run:
    """The calls of the model for one clause, which another thread may stop."""

    def __init__(self) -> None:
        import onnxruntime

        self.options = onnxruntime.RunOptions()
        self.stopped = False

    def stop(self) -> None:
        """End the run at its next operator; safe from any thread, before, during and after it."""
        self.stopped = True
        self.options.terminate = True


class KokoroModel:
    def __init__(self, folder: Path, threads: int, max_gap_ms: int) -> None:
        """Reads `model.onnx` and `vocab.json` from `folder`; pauses inside a clause last `max_gap_ms` at the most.

        Raises `IncompatibleModel`.
        """
        vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
        self.vocabulary: dict[str, int] = vocabulary.get("vocab", vocabulary)
        self._longest_gap = max_gap_ms * RATE_HZ // 1000 // STEP_SAMPLES
        graphs = graph.cut(folder / "model.onnx")
        self._plan, self._measure, self._sound = (
            onnx_session.open_model(model, "cpu", threads)
            for model in (graphs.plan, graphs.measure, graphs.sound)
        )
        self._names = graphs.statistics
        self._measured: dict[Voice, Statistics] = {}

    def speak(self, phonemes: str, voice: Voice, speed: float, run: Run) -> Speech:
        """`phonemes`: 1 to 510 characters, all in the vocabulary.

        The same input gives the same samples, on any number of threads.  The first time that a voice speaks it is
        measured, which takes as long as two seconds of speech.  Raises `Stopped` after `run.stop()`.
        """
        statistics = self._statistics(voice, run)
        features, source, loudness, frames = self._planned(phonemes, voice, speed, run)
        kept = audible(loudness[0], self._longest_gap)
        start, end = kept[0][0], kept[-1][1]
        lead, trail = min(_CONTEXT, start), min(_CONTEXT, loudness.shape[1] - end)
        heard = [np.arange(*stretch) for stretch in kept]
        steps = np.concatenate([np.arange(start - lead, start), *heard, np.arange(end, end + trail)])
        sound = self._made(
            features[:, :, steps],
            source.reshape(-1, STEP_SAMPLES)[steps].reshape(1, 1, -1),
            range(lead, len(steps) - trail),
            {**statistics, **style(voice)},
            run,
        )
        left = zip([0, *(stop for _, stop in kept)], (taken_up for taken_up, _ in kept), strict=False)
        cuts = tuple((stop * STEP_SAMPLES, taken_up * STEP_SAMPLES) for stop, taken_up in left)
        loud = np.flatnonzero(loudness[0] > loudness[0].max() - _QUIET)
        return Speech(frames[0], sound, int(loud[-1] + 1) * STEP_SAMPLES, cuts)

    def _made(
        self,
        features: npt.NDArray[np.float32],
        source: npt.NDArray[np.float32],
        wanted: range,
        given: Statistics,
        run: Run,
    ) -> Iterator[Samples]:
        """The sound of the steps `wanted`, in stretches that grow."""
        rise = fade_in(_JOINT_SAMPLES)
        done, size = wanted.start, _FIRST
        over: Samples | None = None
        while done < wanted.stop:
            until = min(wanted.stop, done + size)
            begin, end = max(0, done - _CONTEXT), until + _CONTEXT
            feed = {
                graph.FEATURES: features[:, :, begin:end],
                graph.SOURCE: source[:, :, begin * STEP_SAMPLES : end * STEP_SAMPLES],
                **given,
            }
            [made] = _run(self._sound, [graph.AUDIO], feed, run)
            made = made[(done - begin) * STEP_SAMPLES :]
            if over is not None:
                made[:_JOINT_SAMPLES] = made[:_JOINT_SAMPLES] * rise + over * rise[::-1]
            length = (until - done) * STEP_SAMPLES
            over = made[length : length + _JOINT_SAMPLES]
            yield made[:length]
            done, size = until, min(_LONGEST, size * 4 // 3)

    def _statistics(self, voice: Voice, run: Run) -> Statistics:
        if voice not in self._measured:
            features, source, _, _ = self._planned(REFERENCE, voice, 1.0, run)
            feed = {graph.FEATURES: features, graph.SOURCE: source, **style(voice)}
            values = _run(self._measure, list(self._names), feed, run)
            self._measured[voice] = dict(zip(self._names, values, strict=True))
        return self._measured[voice]

    def _planned(self, phonemes: str, voice: Voice, speed: float, run: Run) -> list[Any]:
        ids = [self.vocabulary[phoneme] for phoneme in phonemes]
        feed = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": voice.rows[len(ids) - 1][None],
            "speed": np.array([speed], np.float32),
        }
        return _run(self._plan, [graph.FEATURES, graph.SOURCE, graph.LOUDNESS, graph.DURATIONS], feed, run)


def style(voice: Voice) -> dict[str, npt.NDArray[np.float32]]:
    """What the sound of all clauses is made in."""
    return {"style": voice.rows[len(REFERENCE) - 1][None]}


def audible(loudness: npt.NDArray[np.float32], longest_gap: int) -> list[tuple[int, int]]:
    """First and last-but-one of each stretch of steps to make: what is heard, without the middle of longer gaps."""
    loudest = float(loudness.max())
    heard = np.flatnonzero(loudness > loudest - _SILENT)
    loud = np.flatnonzero(loudness > loudest - _QUIET)
    start = max(0, int(heard[0]) - _BEFORE)
    kept = []
    for before, after in zip(loud[:-1] + 1, loud[1:], strict=True):
        if after - before > longest_gap:
            kept.append((start, int(before) + longest_gap // 2))
            start = int(after) - (longest_gap - longest_gap // 2)
    return [*kept, (start, min(len(loudness), int(heard[-1]) + 1 + _BEHIND))]


def _run(session: Any, outputs: list[str], feed: Mapping[str, Any], run: Run) -> list[Any]:
    try:
        return list(session.run(outputs, feed, run.options))
    except Exception as error:
        if run.stopped:
            raise Stopped from error
        raise
