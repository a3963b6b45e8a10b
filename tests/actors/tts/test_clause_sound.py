"""Pauses inside a clause are shortened without a click, and loud samples never clip."""

import numpy as np
import pytest

from actors.tts.clause_sound import limited, without_gaps

RATE_HZ = 24_000


def tone(ms: int, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * 220 * np.arange(RATE_HZ * ms // 1000) / RATE_HZ)).astype(np.float32)


def silence(ms: int) -> np.ndarray:
    return np.zeros(RATE_HZ * ms // 1000, np.float32)


def ms(samples: float) -> float:
    return samples * 1000 / RATE_HZ


def test_a_long_pause_inside_is_shortened_and_what_was_left_out_is_told() -> None:
    parts = [tone(300), 0.003 * tone(600), tone(400), silence(150), tone(200)]
    sound, cuts = without_gaps(np.concatenate(parts), RATE_HZ, max_gap_ms=200)
    assert ms(len(sound)) == 300 + 200 + 400 + 150 + 200
    quiet = np.diff(np.flatnonzero(np.abs(sound) > 0.012))
    assert ms(quiet.max()) <= 202
    assert np.abs(np.diff(sound[RATE_HZ * 305 // 1000 : RATE_HZ * 495 // 1000])).max() < 0.001
    assert [(ms(start), ms(end)) for start, end in cuts] == [(400, 800)]


def test_without_a_fade_pauses_are_shortened_too() -> None:
    sound = np.concatenate([tone(100), silence(500), tone(100)])
    assert ms(len(without_gaps(sound, RATE_HZ, max_gap_ms=100, fade_ms=0)[0])) == 300


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), silence(3), silence(500), tone(500)])
def test_what_has_no_long_pause_stays_as_it_is(samples: np.ndarray) -> None:
    sound, cuts = without_gaps(samples, RATE_HZ, max_gap_ms=200)
    assert np.array_equal(sound, samples)
    assert cuts == ()


def test_loud_samples_are_bent_and_never_clip() -> None:
    loud = tone(100, level=1.8)
    assert np.abs(limited(loud)).max() < 1.0


def test_ordinary_samples_are_left_as_they_are() -> None:
    assert np.array_equal(limited(tone(100)), tone(100))
