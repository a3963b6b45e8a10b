"""A clause begins after a stated silence, ends in a stated pause, and joins the next without a click."""

import numpy as np
import pytest

from actors.tts.clause_sound import Shape, limited, shaped, sound_bounds

RATE_HZ = 24_000


def tone(ms: int, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * 220 * np.arange(RATE_HZ * ms // 1000) / RATE_HZ)).astype(np.float32)


def silence(ms: int) -> np.ndarray:
    return np.zeros(RATE_HZ * ms // 1000, np.float32)


def test_silence_around_speech_is_cut_to_the_stated_length() -> None:
    pcm, cut = shaped(
        np.concatenate([silence(330), tone(500), silence(400)]), RATE_HZ, Shape(20, 40, 5), pause_ms=0
    )
    assert cut == RATE_HZ * 310 // 1000
    assert len(pcm) == RATE_HZ * (20 + 500 + 40) // 1000


def test_the_pause_is_added_behind() -> None:
    sound = np.concatenate([silence(100), tone(200), silence(100)])
    plain, _ = shaped(sound, RATE_HZ, Shape(), pause_ms=0)
    paused, _ = shaped(sound, RATE_HZ, Shape(), pause_ms=280)
    assert len(paused) - len(plain) == RATE_HZ * 280 // 1000
    assert not paused[len(plain) :].any()


def test_speech_that_fills_the_clause_still_starts_and_ends_at_zero() -> None:
    pcm, _ = shaped(tone(300), RATE_HZ, Shape(), pause_ms=0)
    assert abs(int(pcm[0])) < 50
    assert abs(int(pcm[-1])) < 50


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), silence(3), silence(500)])
def test_silence_alone_gives_nothing(samples: np.ndarray) -> None:
    assert sound_bounds(samples, RATE_HZ) == (0, 0)
    assert len(shaped(samples, RATE_HZ, Shape(), pause_ms=100)[0]) == 0


def test_loud_samples_are_bent_and_never_clip() -> None:
    loud = tone(100, level=1.8)
    assert np.abs(limited(loud)).max() < 1.0
    pcm, _ = shaped(loud, RATE_HZ, Shape(), pause_ms=0)
    assert np.abs(pcm.astype(int)).max() <= 32767


def test_ordinary_samples_are_left_as_they_are() -> None:
    assert np.array_equal(limited(tone(100)), tone(100))
