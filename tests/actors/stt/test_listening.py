"""What every window-by-window STT backend does, shown on one that hears by script."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from actors.batch import Batch, run
from actors.messages import Failed, SttRequest, SttResult, Word
from actors.stt.listening import Heard, Listener, Stop
from actors.stt.utterance import Window

RATE_HZ = 16_000


@dataclass(frozen=True)
class Options:
    language: str = "auto"
    max_batch: int = 4


class Scripted(Listener):
    """Says `<seconds>` of each window."""

    name = "scripted"
    languages = ("en", "de")

    def __init__(self, *heard: Heard, device: str = "cpu", language: str = "auto") -> None:
        super().__init__(Options(language))
        self._device = device
        self.left = list(heard)
        self.groups: list[list[float]] = []
        self.meanwhile: Any = None

    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> Sequence[Heard]:
        lengths = [len(window.audio) / RATE_HZ for window in windows]
        self.groups.append([round(length) for length in lengths])
        if self.meanwhile:
            self.meanwhile()
            assert [stop() for stop in stops].count(True) == 1
        return [self.left.pop(0) if self.left else Heard(f"{length:.0f} s") for length in lengths]


def request(seconds: float, **fields: Any) -> SttRequest:
    audio = np.random.default_rng(0).normal(0, 3000, int(seconds * RATE_HZ)).astype("<i2")
    return SttRequest(audio.tobytes(), **fields)


def test_a_silent_utterance_is_not_heard_at_all() -> None:
    listener = Scripted()
    ((result,),) = run(listener.transcribe, [SttRequest(bytes(RATE_HZ))])
    assert result == SttResult("", rejected="no_speech") and listener.groups == []


def test_a_long_utterance_grows_window_by_window() -> None:
    listener = Scripted(Heard("one"), Heard("two"))
    ((so_far, whole),) = run(listener.transcribe, [request(50, language="de")])
    assert so_far == SttResult("one", final=False, language="de")
    assert whole == SttResult("one two", language="de")


def test_a_gpu_hears_windows_of_like_length_together() -> None:
    listener = Scripted(device="cuda")
    results = run(listener.transcribe, [request(s, language="en") for s in (2, 9, 3, 10, 4, 2, 2)])
    assert listener.groups == [[2, 2, 2, 3], [4], [9, 10]]
    assert [result.text for (result,) in results] == ["2 s", "9 s", "3 s", "10 s", "4 s", "2 s", "2 s"]


def test_a_known_language_and_an_unknown_one_are_not_heard_together() -> None:
    listener = Scripted(device="cuda")
    run(listener.transcribe, [request(2, language="en"), request(2)])
    assert listener.groups == [[2], [2]]


def test_the_language_asked_for_goes_before_what_the_model_says() -> None:
    listener = Scripted(Heard("a", "en"), Heard("b", "en"), Heard("c"))
    results = run(listener.transcribe, [request(2), request(2, language="de-AT"), request(2)])
    assert [result.language for (result,) in results] == ["en", "de", None]
    ((fixed,),) = run(Scripted(Heard("a", "en"), language="de").transcribe, [request(2)])
    assert fixed.language == "de"
    ((named,),) = run(Scripted().transcribe, [request(2, language="German")])
    assert named.language == "de"


def test_what_cannot_be_heard_fails_alone() -> None:
    results = run(Scripted().transcribe, [request(2, language="xx"), SttRequest(b"abc"), request(2)])
    (lacking,), (odd,), (good,) = results
    assert lacking == Failed(
        "stt scripted: language 'xx' was asked for, which the model does not know; it knows en, de."
    )
    assert isinstance(odd, Failed) and "expected int16" in odd.message
    assert good.text == "2 s"


def test_a_cancelled_utterance_gets_no_result_and_is_not_heard() -> None:
    listener = Scripted()
    batch = Batch(enumerate([request(2), request(3), request(4)]))
    results = listener.transcribe(batch)
    assert next(results)[0] == 0
    batch.cancel(1)
    assert [key for key, _ in results] == [2] and listener.groups == [[2], [4]]


def test_an_utterance_cancelled_while_it_is_heard_gets_no_result() -> None:
    listener = Scripted()
    batch = Batch([(7, request(2))])
    listener.meanwhile = lambda: batch.cancel(7)
    assert list(listener.transcribe(batch)) == []


def test_words_lie_in_the_utterance_and_not_behind_it() -> None:
    heard = [Heard("a b", words=[Word("a", 0, 500), Word("b", 600, 99_000)])] * 2
    ((_, whole),) = run(Scripted(*heard).transcribe, [request(40, word_times=True)])
    assert isinstance(whole, SttResult) and whole.words
    first, second, third, last = whole.words
    assert (first, second.end_ms) == (Word("a", 0, 500), third.start_ms)
    assert 39_999 <= last.end_ms <= 40_000


def test_what_is_said_over_and_over_is_rejected() -> None:
    ((result,),) = run(Scripted(Heard("no " * 200)).transcribe, [request(2)])
    assert (result.text, result.rejected) == ("", "repetition")


def test_a_model_without_word_times_gives_none() -> None:
    ((result,),) = run(Scripted(Heard("a")).transcribe, [request(2, word_times=True)])
    assert result.words is None
