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
    sound = shaped(
        np.concatenate([silence(330), tone(500), silence(400)]), RATE_HZ, Shape(20, 40, 5), pause_ms=0
    )
    assert sound.position(RATE_HZ * 310 // 1000) == 0
    assert sound.position(RATE_HZ * 330 // 1000) == RATE_HZ * 20 // 1000
    assert len(sound.pcm) == RATE_HZ * (20 + 500 + 40) // 1000


def test_a_long_pause_inside_is_shortened_and_words_behind_it_move() -> None:
    parts = [tone(300), 0.003 * tone(600), tone(400), silence(150), tone(200)]
    shape = Shape(lead_ms=0, tail_ms=0, fade_ms=5, max_gap_ms=200)
    sound = shaped(np.concatenate(parts), RATE_HZ, shape, pause_ms=0)
    assert len(sound.pcm) == RATE_HZ * (300 + 200 + 400 + 150 + 200) // 1000
    quiet = np.diff(np.flatnonzero(np.abs(sound.pcm.astype(int)) > 400))
    assert quiet.max() <= RATE_HZ * 202 // 1000
    assert np.abs(np.diff(sound.pcm[RATE_HZ * 305 // 1000 : RATE_HZ * 495 // 1000].astype(int))).max() < 20
    at_ms = {
        ms: sound.position(RATE_HZ * ms // 1000) * 1000 // RATE_HZ for ms in (0, 350, 500, 850, 900, 1300)
    }
    assert at_ms == {0: 0, 350: 350, 500: 400, 850: 450, 900: 500, 1300: 900}


def test_without_a_fade_pauses_are_shortened_too() -> None:
    sound = np.concatenate([tone(100), silence(500), tone(100)])
    pcm = shaped(sound, RATE_HZ, Shape(0, 0, 0, max_gap_ms=100), pause_ms=0).pcm
    assert len(pcm) == RATE_HZ * 300 // 1000


def test_the_pause_is_added_behind() -> None:
    sound = np.concatenate([silence(100), tone(200), silence(100)])
    plain = shaped(sound, RATE_HZ, Shape(), pause_ms=0).pcm
    paused = shaped(sound, RATE_HZ, Shape(), pause_ms=280).pcm
    assert len(paused) - len(plain) == RATE_HZ * 280 // 1000
    assert not paused[len(plain) :].any()


def test_speech_that_fills_the_clause_still_starts_and_ends_at_zero() -> None:
    pcm = shaped(tone(300), RATE_HZ, Shape(), pause_ms=0).pcm
    assert abs(int(pcm[0])) < 50
    assert abs(int(pcm[-1])) < 50


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), silence(3), silence(500)])
def test_silence_alone_gives_nothing(samples: np.ndarray) -> None:
    assert sound_bounds(samples, RATE_HZ) == (0, 0)
    assert len(shaped(samples, RATE_HZ, Shape(), pause_ms=100).pcm) == 0


def test_loud_samples_are_bent_and_never_clip() -> None:
    loud = tone(100, level=1.8)
    assert np.abs(limited(loud)).max() < 1.0
    pcm = shaped(loud, RATE_HZ, Shape(), pause_ms=0).pcm
    assert np.abs(pcm.astype(int)).max() <= 32767


def test_ordinary_samples_are_left_as_they_are() -> None:
    assert np.array_equal(limited(tone(100)), tone(100))
