"""faster-whisper's arguments, and its transcripts with real weights."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import jiwer
import numpy as np
import pytest

from actors.assets import samples
from actors.batch import Batch, run
from actors.messages import Failed, SttRequest, SttResult
from actors.stt.faster_whisper import FasterWhisper, FasterWhisperOptions, _arguments, _repository

RATE_HZ = 16_000
MAX_WER = 0.15


def known() -> object:
    from faster_whisper import WhisperModel

    return inspect.signature(WhisperModel.transcribe).parameters


def test_generation_arguments_are_those_of_transcribe_and_greedy_by_default() -> None:
    arguments = _arguments({"max_new_tokens": 64, "task": "translate", "return_timestamps": True}, known())
    assert arguments["max_new_tokens"] == 64 and arguments["task"] == "translate"
    assert arguments["beam_size"] == 1 and arguments["temperature"] == 0.0
    assert arguments["without_timestamps"] is False


@pytest.mark.parametrize("name", ["num_beams", "language", "audio", "self"])
def test_an_argument_that_transcribe_does_not_know_or_a_request_decides_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"gen_{name} is no argument"):
        _arguments({name: 1}, known())


def test_a_size_means_the_checkpoint_that_systran_publishes() -> None:
    assert _repository("tiny.en") == "Systran/faster-whisper-tiny.en"
    assert _repository("large") == "Systran/faster-whisper-large-v3"
    assert _repository("distil-large-v3") == "Systran/faster-distil-whisper-large-v3"
    for other in ("whisper-base-ct2", "distil-whisper/distil-large-v3-ct2"):
        assert _repository(other) == other


def test_it_runs_where_ctranslate2_does() -> None:
    with pytest.raises(ValueError, match="asked to run on 'mps'"):
        FasterWhisper().load("mps", "auto", 1)


@pytest.fixture(scope="module")
def tiny() -> Iterator[FasterWhisper]:
    backend = FasterWhisper(FasterWhisperOptions(model_name="tiny.en"))
    backend.load("cpu", "auto", 2)
    backend.warmup()
    yield backend


def recordings() -> list[tuple[bytes, str]]:
    return [(sample.path.read_bytes()[44:], sample.text) for sample in samples()]


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9' ]+", " ", text.lower().replace("mr.", "mister")).split())


@pytest.mark.e2e
def test_it_hears_the_packaged_recordings(tiny: FasterWhisper) -> None:
    spoken = recordings()[:8]
    results = [result for *_, result in run(tiny.transcribe, [SttRequest(audio) for audio, _ in spoken])]
    heard = [result for result in results if isinstance(result, SttResult) and result.final]
    assert [result.language for result in heard] == ["en"] * len(spoken)
    assert jiwer.wer([plain(text) for _, text in spoken], [plain(result.text) for result in heard]) <= MAX_WER
    assert tiny.capabilities.languages == ("en",)


@pytest.mark.e2e
def test_silence_is_rejected_and_a_language_that_the_checkpoint_lacks_fails(tiny: FasterWhisper) -> None:
    noise = (np.random.default_rng(0).normal(0, 1, 3 * RATE_HZ) * 900).astype("<i2").tobytes()
    for audio in (bytes(2 * RATE_HZ), noise):
        (*_, result), (failed,) = run(tiny.transcribe, [SttRequest(audio), SttRequest(audio, language="fr")])
        assert isinstance(result, SttResult) and result.text == "" and result.rejected is not None
        assert isinstance(failed, Failed) and "'fr'" in failed.message


@pytest.mark.e2e
def test_a_long_recording_has_partial_results_and_word_times_in_order(tiny: FasterWhisper) -> None:
    spoken = recordings()[5:15]
    audio = bytes(RATE_HZ).join(piece for piece, _ in spoken)
    ((*partial, result),) = run(tiny.transcribe, [SttRequest(audio, word_times=True)])
    assert isinstance(result, SttResult) and result.final and result.words
    assert len(audio) / 2 / RATE_HZ > 30
    assert partial and not any(each.final for each in partial)
    assert jiwer.wer(plain(" ".join(text for _, text in spoken)), plain(result.text)) <= MAX_WER
    starts_ms = [word.start_ms for word in result.words]
    assert starts_ms == sorted(starts_ms) and starts_ms[-1] > 30_000


@pytest.mark.e2e
def test_nothing_comes_of_a_cancelled_utterance(tiny: FasterWhisper) -> None:
    audio = bytes(RATE_HZ).join(piece for piece, _ in recordings()[5:15])
    batch: Batch[SttRequest] = Batch([("long", SttRequest(audio)), ("short", SttRequest(recordings()[0][0]))])
    came = []
    for key, _ in tiny.transcribe(batch):
        came.append(key)
        batch.cancel("long")
    assert came.count("long") == 1 and came[-1] == "short"


@pytest.mark.e2e
def test_the_language_of_an_utterance_is_detected() -> None:
    with pytest.raises(ValueError, match="'xx' was asked for"):
        FasterWhisper(FasterWhisperOptions(gen={"language": "xx"})).load("cpu", "auto", 2)
    backend = FasterWhisper(FasterWhisperOptions(model_name="whisper-base-ct2"))
    backend.load("cpu", "auto", 2)
    ((*_, result),) = run(backend.transcribe, [SttRequest(recordings()[5][0])])
    assert isinstance(result, SttResult) and result.language == "en"
    assert {"de", "fr", "ja"} <= set(backend.capabilities.languages or ())
