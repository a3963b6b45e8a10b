import numpy as np
import pytest

from actors.stt import windows

RATE_HZ = 16_000
LENGTHS_S = (10.0, 15.0, 20.0, 30.0)


def speech(seconds: float) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, int(seconds * RATE_HZ)).astype(np.float32)


def test_short_audio_is_one_window() -> None:
    assert windows.cuts(speech(30)) == [(0, 30 * RATE_HZ)]
    assert windows.cuts(speech(0)) == [(0, 0)]


def test_long_audio_is_cut_in_its_pauses() -> None:
    audio = speech(70)
    for pause_s in (12.0, 26.0, 48.0):
        audio[int(pause_s * RATE_HZ) : int((pause_s + 0.5) * RATE_HZ)] *= 0.01
    found = windows.cuts(audio)
    assert [round(start / RATE_HZ) for start, _ in found] == [0, 26, 48]
    assert all(26.0 <= stop / RATE_HZ <= 26.5 for _, stop in found[:1])
    assert found[-1][1] == len(audio)


def test_windows_cover_audio_without_pauses_end_to_end() -> None:
    found = windows.cuts(speech(95))
    assert [start for start, _ in found[1:]] == [stop for _, stop in found[:-1]]
    assert all(stop - start <= 30 * RATE_HZ for start, stop in found)


@pytest.mark.parametrize(
    "seconds, positions", [(0.5, 500), (8.0, 500), (8.1, 750), (14, 1000), (18.5, 1500), (30, 1500)]
)
def test_a_window_leaves_a_margin_behind_the_utterance(seconds: float, positions: int) -> None:
    assert windows.positions(int(seconds * RATE_HZ), LENGTHS_S) == positions


def test_one_loud_moment_is_not_silent() -> None:
    audio = np.zeros(3 * RATE_HZ, np.float32)
    assert windows.silent(audio) and windows.silent(audio[:0])
    audio[20_000:22_000] = 0.01
    assert not windows.silent(audio)
