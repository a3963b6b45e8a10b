import numpy as np
import pytest

from actors.messages import TtsAudio
from actors.tts.sound_stream import SoundStream, pause_ms

RATE_HZ = 24_000


def tone(ms: int, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(np.arange(RATE_HZ * ms // 1000) * 0.3)).astype(np.float32)


def silence(ms: int) -> np.ndarray:
    return np.zeros(RATE_HZ * ms // 1000, np.float32)


def heard(sound: SoundStream, *parts: np.ndarray, pause: int = 0) -> list[TtsAudio]:
    pieces = [piece for part in parts for piece in sound.feed(part)]
    return [*pieces, *sound.finish(pause)]


def joined(pieces: list[TtsAudio]) -> np.ndarray:
    return np.frombuffer(b"".join(piece.pcm for piece in pieces), "<i2")


def ms(pcm: np.ndarray) -> float:
    return len(pcm) * 1000 / RATE_HZ


def test_silence_at_both_ends_is_trimmed_and_a_pause_follows() -> None:
    sound = SoundStream(RATE_HZ)
    pcm = joined(heard(sound, silence(300), tone(500), silence(400), pause=120))
    assert ms(pcm) == pytest.approx(20 + 500 + 40 + 120, abs=6)
    assert sound.samples == len(pcm)
    assert sound.trimmed * 1000 / RATE_HZ == pytest.approx(300 - 20, abs=6)


def test_silence_inside_stays() -> None:
    pcm = joined(heard(SoundStream(RATE_HZ), tone(200), silence(150), tone(200)))
    assert ms(pcm) == pytest.approx(550, abs=6)


@pytest.mark.parametrize("size", [1, 37, 240, 5_000])
def test_how_the_samples_come_changes_nothing(size: int) -> None:
    samples = np.concatenate([silence(70), tone(200), silence(60), tone(300, 0.9), silence(90)])
    parts = [samples[start : start + size] for start in range(0, len(samples), size)]
    whole = joined(heard(SoundStream(RATE_HZ), samples, pause=50))
    assert np.array_equal(joined(heard(SoundStream(RATE_HZ), *parts, pause=50)), whole)


def test_sound_goes_out_while_it_comes() -> None:
    sound = SoundStream(RATE_HZ)
    first = joined(list(sound.feed(tone(500))))
    assert ms(first) > 480


def test_both_ends_fade() -> None:
    pcm = joined(heard(SoundStream(RATE_HZ), np.full(RATE_HZ, 0.5, np.float32)))
    assert pcm[0] == 0 and pcm[-1] == 0 and pcm[RATE_HZ // 2] == round(0.5 * 32_767)


def test_what_was_delivered_is_not_sent_again() -> None:
    whole = joined(heard(SoundStream(RATE_HZ), tone(900), pause=100))
    sound = SoundStream(RATE_HZ, skip_samples=5_001)
    assert np.array_equal(joined(heard(sound, tone(900), pause=100)), whole[5_001:])
    assert sound.samples == len(whole)


def test_pieces_are_small_and_the_first_one_smaller() -> None:
    sizes = [len(piece.pcm) // 2 for piece in heard(SoundStream(RATE_HZ), tone(3_000))]
    assert sizes[0] == RATE_HZ // 5 and max(sizes) * 2 <= 48_000
    sizes = [len(piece.pcm) // 2 for piece in heard(SoundStream(RATE_HZ, blocksize=512), tone(300))]
    assert set(sizes[:-2]) == {512} and max(sizes) == 512
    with pytest.raises(ValueError, match="pieces of -1 samples"):
        SoundStream(RATE_HZ, blocksize=-1)


def test_silence_alone_gives_nothing() -> None:
    sound = SoundStream(RATE_HZ)
    assert heard(sound, silence(2_000), pause=200) == [] and sound.samples == 0


@pytest.mark.parametrize(
    ("text", "pause"), [("Yes.", 280), ('"Yes!"', 280), ("Well,", 120), ("and", 0), ("好。", 280), ("", 0)]
)
def test_the_pause_follows_the_mark(text: str, pause: int) -> None:
    assert pause_ms(text) == pause
