"""Recordings with a pause of a given length: between two sentences, as they were read, or inside one, as a person makes
who hesitates.

Inside a sentence there is no pause to lengthen.  The recording is cut behind a word that cannot end a sentence, where
it is quietest, and its own room is heard in between.  Whisper hears when each word begins, to some 100 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from actors.messages import Word
from s2s.audio import Pcm16
from s2s.bench.hearing import Ear, align
from s2s.bench.recordings import (
    LEVEL_DB,
    LONGEST_OWN_PAUSE_MS,
    RATE_HZ,
    SPEECH,
    STEP,
    VAD_FRAME_MS,
    Measure,
    Recording,
    runs,
    sample_of,
    step_power,
)

TRIES = 4
SHORT_PAUSE_MS = 160
"""What a pause between sentences becomes where one inside a sentence is wanted: none that could be an endpoint."""
FADE = RATE_HZ // 200
"""In which speech gives way to the room, and comes back: 5 ms."""
ROOM_STEPS = 5
"""Of 10 ms, from which the sound of the room is taken."""
NEAR_STEPS = 10
"""Of 10 ms: how far from the beginning of a word, as it was heard, the cut may be."""
FEWEST_WORDS = 2
"""On each side of a cut."""
UNFINISHED = frozenset(
    (
        *("a", "an", "the", "my", "your", "our", "their", "its", "his"),
        *("of", "to", "from", "with", "for", "at", "by", "in", "on", "than", "as"),
        *("and", "or", "but", "nor", "if", "because", "unless"),
    )
)
"""Words that end none of the recorded sentences: who stops behind one has more to say."""


@dataclass(frozen=True)
class Said:
    """One word of a recording's text, with the marks behind it."""

    text: str
    start: int | None
    """The sample at which it begins; None where it was heard as something else."""


@dataclass(frozen=True)
class Place:
    """Where a recording can pause: what lies in [start, stop) is replaced."""

    recording: Recording
    start: int
    stop: int
    before: str
    """What has been said until then."""


@dataclass(frozen=True)
class Paused:
    """A recording with a pause that was made in it."""

    recording: Recording
    before: str
    """What is said in front of the pause."""
    pause_ms: int
    """As VAD sees it."""


Find = Callable[[Measure, Ear, Recording], Place | None]


def paused(
    measure: Measure, ear: Ear, find: Find, recordings: Iterable[Recording], pauses_ms: Sequence[int]
) -> Iterator[dict[int, Paused]]:
    """Each of the `recordings` in which `find` finds a place, with a pause of each length there."""
    for recording in recordings:
        if (place := find(measure, ear, recording)) is not None:
            made = {pause_ms: with_pause(measure, place, pause_ms) for pause_ms in pauses_ms}
            whole = {pause_ms: each for pause_ms, each in made.items() if each is not None}
            if len(whole) == len(made):
                yield whole


def between_sentences(measure: Measure, ear: Ear, recording: Recording) -> Place | None:
    """The one pause that `recording` has of itself; None where it has none, or several."""
    found = _own_pause(measure, recording)
    if found is None:
        return None
    return Place(recording, *found, said_before(said(ear, recording), found[0]))


def inside_sentence(measure: Measure, ear: Ear, recording: Recording) -> Place | None:
    """Where a person who hesitates would pause in `recording`, whose own pause is shortened."""
    if max(recording.pauses_ms, default=0) > LONGEST_OWN_PAUSE_MS:
        found = _own_pause(measure, recording)
        shorter = found and with_pause(measure, Place(recording, *found, ""), SHORT_PAUSE_MS)
        if not shorter:
            return None
        recording = replace(shorter.recording, name=recording.name)
    return hesitation(recording, said(ear, recording))


def with_pause(measure: Measure, place: Place, pause_ms: int) -> Paused | None:
    """The recording with a pause of `pause_ms` there, as VAD sees it; None where that does not come about."""
    whole = place.recording
    before, after = whole.pcm[: place.start], whole.pcm[place.stop :]
    room_ms = pause_ms
    for _ in range(TRIES):
        pcm = _apart(before, after, RATE_HZ * room_ms // 1000, whole.pcm)
        made = measure.recording(f"{whole.name}+{pause_ms}ms", pcm, whole.text)
        seen_ms = max(made.pauses_ms, default=0)
        if abs(seen_ms - pause_ms) <= VAD_FRAME_MS:
            return Paused(made, place.before, seen_ms)
        room_ms = max(0, room_ms + pause_ms - seen_ms)
    return None


def _apart(before: Pcm16, after: Pcm16, samples: int, source: Pcm16) -> Pcm16:
    """`before` and `after` with `samples` between them in which the room of `source` is heard."""
    fade = np.linspace(1, 0, FADE)
    speech = np.concatenate([before, np.zeros(samples), after])
    level = np.concatenate(
        [np.ones(len(before) - FADE), fade, np.zeros(samples), fade[::-1], np.ones(len(after) - FADE)]
    )
    mixed: Pcm16 = np.rint(speech * level + room(source, len(speech)) * (1 - level)).astype(np.int16)
    return mixed


def room(pcm: Pcm16, samples: int) -> NDArray[np.float64]:
    """`samples` of noise with the level and the spectrum of the quietest 50 ms of `pcm`; silence, where someone
    speaks all the time."""
    power = step_power(pcm)
    windows = np.lib.stride_tricks.sliding_window_view(power, ROOM_STEPS)
    levels = np.where(windows.min(axis=1) > 0, windows.mean(axis=1), np.inf)  # a room is never quite silent
    at = int(levels.argmin())
    if levels[at] >= power.max() * 10 ** (LEVEL_DB / 10):
        return np.zeros(samples)
    quiet = pcm[at * STEP : (at + ROOM_STEPS) * STEP] * np.hanning(ROOM_STEPS * STEP)
    spectrum = np.abs(np.fft.rfft(quiet, samples))
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, len(spectrum))
    noise = np.fft.irfft(spectrum * np.exp(1j * phases), samples)
    found: NDArray[np.float64] = noise * np.sqrt(levels[at] / np.square(noise).mean())
    return found


def _own_pause(measure: Measure, recording: Recording) -> tuple[int, int] | None:
    """Where `recording` is quiet for longest; None where VAD sees no pause, or several."""
    if sum(pause > LONGEST_OWN_PAUSE_MS for pause in recording.pauses_ms) > 1:
        return None
    spoken = [probability >= SPEECH for probability in measure.probabilities(recording.pcm)]
    best, at, longest = None, 0, 3
    for is_speech, length in runs(spoken):
        inside = at > 0 and at + length < len(spoken)
        if not is_speech and inside and length > longest:
            best, longest = at, length
        at += length
    if best is None:
        return None
    return _quiet(recording.pcm, sample_of(best), sample_of(best + longest))


def _quiet(pcm: Pcm16, start: int, stop: int) -> tuple[int, int]:
    """The longest quiet in and around a pause that VAD saw: where the sound has faded, and where it begins again."""
    power = step_power(pcm)
    first = max(0, start // STEP - 10)
    quiet = power[first : stop // STEP + 10] < power.max() * 10 ** (LEVEL_DB / 10)
    at, best, longest = first, (start // STEP, stop // STEP), 0
    for is_quiet, length in runs([bool(flag) for flag in quiet]):
        if is_quiet and length > longest:
            best, longest = (at, at + length), length
        at += length
    return best[0] * STEP, best[1] * STEP


def said(ear: Ear, recording: Recording) -> list[Said]:
    """The words of the recording's text."""
    return timed(recording.text, ear.word_times(recording.pcm, RATE_HZ))


def timed(text: str, heard: Sequence[Word]) -> list[Said]:
    """The words of `text`, with the times of those that were `heard`."""
    words = text.split()
    parts = [
        (_plain(part), word.start_ms * RATE_HZ // 1000 if number == 0 else None)
        for word in heard
        for number, part in enumerate(word.text.split("-"))
    ]
    starts: dict[int, int | None] = {}
    for mine, other in align([_plain(word) for word in words], [part for part, _ in parts]):
        if mine is not None and other is not None and _plain(words[mine]) == parts[other][0]:
            starts[mine] = parts[other][1]
    return [Said(word, starts.get(number)) for number, word in enumerate(words)]


def said_before(words: Sequence[Said], sample: int) -> str:
    """What has been said until `sample`."""
    begun = [number for number, word in enumerate(words) if word.start is not None and word.start < sample]
    return " ".join(word.text for word in words[: max(begun, default=-1) + 1])


def hesitation(recording: Recording, words: Sequence[Said]) -> Place | None:
    """The quietest place between two words, both heard as written, of which the first cannot end a sentence."""
    power = step_power(recording.pcm)
    places = []
    for number, (one, next_one) in enumerate(pairwise(words), 1):
        if not FEWEST_WORDS <= number <= len(words) - FEWEST_WORDS or one.text.lower() not in UNFINISHED:
            continue
        if one.start is not None and next_one.start is not None:
            first = max(0, next_one.start // STEP - NEAR_STEPS)
            step = first + int(power[first : next_one.start // STEP + NEAR_STEPS].argmin())
            places.append((float(power[step]), step * STEP + STEP // 2, number))
    if not places:
        return None
    _, sample, number = min(places)
    return Place(recording, sample, sample, " ".join(word.text for word in words[:number]))


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
