"""Whisper on real weights and recorded speech."""

import re
from collections.abc import Iterator

import jiwer
import numpy as np
import pytest

from actors.assets import samples
from actors.batch import run
from actors.messages import SttRequest, SttResult
from actors.stt.whisper import Whisper, WhisperOptions

pytestmark = pytest.mark.e2e

RATE_HZ = 16_000
MAX_WER = 0.15
NUMBERS = {"4": "four", "5": "five", "7": "seven", "8": "eight", "10": "ten", "mr": "mister"}


@pytest.fixture(scope="module")
def whisper() -> Iterator[Whisper]:
    backend = Whisper()
    backend.load("cpu", "auto", 2)
    backend.warmup()
    yield backend


def recordings() -> list[tuple[bytes, str]]:
    return [(sample.path.read_bytes()[44:], sample.text) for sample in samples()]


def plain(text: str) -> str:
    words = re.sub(r"[^a-z0-9' ]+", " ", text.lower()).split()
    return " ".join(NUMBERS.get(word, word) for word in words)


def pcm(signal: np.ndarray) -> bytes:
    return (np.clip(signal, -1, 1) * 32_767).astype("<i2").tobytes()


def test_the_word_error_rate_holds_in_short_windows(whisper: Whisper) -> None:
    spoken = recordings()
    results = [result for (result,) in run(whisper.transcribe, [SttRequest(audio) for audio, _ in spoken])]
    assert all(result.rejected is None and result.language == "en" for result in results)
    wer = jiwer.wer([plain(text) for _, text in spoken], [plain(result.text) for result in results])
    assert wer <= MAX_WER


def test_nobody_speaking_gives_no_text(whisper: Whisper) -> None:
    time_s = np.arange(3 * RATE_HZ) / RATE_HZ
    noise = np.random.default_rng(0).normal(0, 1, len(time_s))
    hum = np.sin(2 * np.pi * 50 * time_s)
    signals = [0 * noise, 0.003 * noise, 0.1 * noise, 0.1 * hum, np.cumsum(noise) * 0.0006]
    for (result,) in run(whisper.transcribe, [SttRequest(pcm(signal)) for signal in signals]):
        assert result.text == "" and result.rejected is not None


def test_utterances_decoded_together_read_as_they_do_alone() -> None:
    """As on a GPU: with weights of the model's own, as rounded inputs depend on what is beside them."""
    whisper = Whisper(WhisperOptions(decoder_weights="own"))
    whisper.load("cpu", "auto", 2)
    requests = [SttRequest(audio) for audio, _ in recordings()[1:5]]
    alone = [result.text for (result,) in run(whisper.transcribe, requests)]
    windows = [
        window for key, request in enumerate(requests) for window in whisper._utterance(key, request).windows
    ]
    assert len({window.positions for window in windows}) == 1
    whisper._decode(windows, [lambda: False] * len(windows))
    assert [window.text for window in windows] == alone


def test_a_long_recording_is_heard_to_its_end_with_word_times(whisper: Whisper) -> None:
    spoken = recordings()
    pause = bytes(RATE_HZ)
    audio = pause.join(piece for piece, _ in spoken[5:15])
    ((*_, result),) = run(whisper.transcribe, [SttRequest(audio, word_times=True)])
    assert isinstance(result, SttResult) and result.words
    assert len(audio) / 2 / RATE_HZ > 30
    assert jiwer.wer(plain(" ".join(text for _, text in spoken[5:15])), plain(result.text)) <= MAX_WER
    starts_ms = [word.start_ms for word in result.words]
    assert starts_ms == sorted(starts_ms)
    assert result.words[-1].end_ms == pytest.approx(len(audio) / 32, abs=1_000)


def test_the_language_of_an_utterance_is_detected() -> None:
    backend = Whisper(WhisperOptions(model_name="whisper-base"))
    backend.load("cpu", "auto", 2)
    (audio, text), *_ = recordings()[5:]
    ((result,),) = run(backend.transcribe, [SttRequest(audio)])
    assert result.language == "en"
    assert plain(result.text) == plain(text)
