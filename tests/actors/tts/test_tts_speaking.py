"""What every clause-by-clause TTS backend does, shown on one that hums."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from actors.batch import Batch, run
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest
from actors.pretrained import Stopped
from actors.tts.speaking import Speaker, Stop

STEP = 4_800


@dataclass(frozen=True)
class Options:
    voice: str = "Anna"
    language: str = "auto"


class Hum(Speaker):
    """A tenth of a second of noise a letter, drawn from the seed."""

    name = "hum"
    streams = True
    rate_hz = 24_000
    voices = ("Anna", "Bert")
    languages = ("en", "de")

    def __init__(self) -> None:
        super().__init__(Options())
        self.spoken: list[tuple[str | None, str | None]] = []
        self.steps = 0

    def speak(
        self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop
    ) -> Iterator[Any]:
        self.spoken.append((voice, language))
        for _ in request.text:
            if stopped():
                raise Stopped
            self.steps += 1
            yield np.random.uniform(-0.5, 0.5, STEP).astype(np.float32)


def pcm(results: list[Any]) -> bytes:
    return b"".join(result.pcm for result in results if isinstance(result, TtsAudio))


def test_a_clause_is_heard_in_pieces_and_its_length_told_last() -> None:
    (results,) = run(Hum().synthesize, [TtsRequest("hello.")])
    assert results[-1] == TtsDone(len(pcm(results)) // 2)
    assert len(pcm(results)) // 2 == pytest.approx(6 * STEP + 24_000 * 0.28, abs=200)


def test_the_seed_decides_and_a_resumed_clause_goes_on_where_it_was() -> None:
    hum = Hum()
    (whole,), (again,), (other,) = (run(hum.synthesize, [TtsRequest("hello", seed=s)]) for s in (1, 1, 2))
    assert pcm(whole) == pcm(again) != pcm(other)
    (rest,) = run(hum.synthesize, [TtsRequest("hello", seed=1).resumed(whole[:2])])
    assert pcm(whole[:2]) + pcm(rest) == pcm(whole) and rest[-1] == whole[-1]


def test_a_cancelled_clause_stops_at_the_next_step() -> None:
    hum, batch = Hum(), Batch([(1, TtsRequest("a long clause")), (2, TtsRequest("b"))])
    results = hum.synthesize(batch)
    assert next(results)[0] == 1
    batch.cancel(1)
    assert {key for key, _ in results} == {2}
    assert hum.steps <= 3


@pytest.mark.parametrize(
    ("asked", "spoken"), [(None, "Anna"), ("bert", "Bert"), ("alloy", "Anna"), ("Anna", "Anna")]
)
def test_voices_are_found_in_any_case_and_openais_names_mean_the_default(
    asked: str | None, spoken: str
) -> None:
    hum = Hum()
    run(hum.synthesize, [TtsRequest("a", voice=asked, language="de-AT")])
    assert hum.spoken == [(spoken, "de")]


def test_what_cannot_be_spoken_fails_alone_and_says_why() -> None:
    requests = [TtsRequest("a", voice="Bret"), TtsRequest("a", language="fr"), TtsRequest("a")]
    (voice,), (language,), good = run(Hum().synthesize, requests)
    assert voice == Failed("tts hum: voice 'Bret' is not known. Did you mean Bert? Voices: Anna, Bert.")
    assert language == Failed("tts hum: language 'fr' was asked for, but this backend speaks en, de only.")
    assert isinstance(good[-1], TtsDone) and good[-1].samples


def test_a_clause_without_a_letter_is_silent() -> None:
    hum = Hum()
    assert run(hum.synthesize, [TtsRequest(" … ")]) == [[TtsDone(0)]] and hum.steps == 0
