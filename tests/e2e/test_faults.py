"""A stage process killed in the middle of an answer: the answer goes on, and all of it is said once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from actors.assets import samples
from s2s.bench.faults import Trial, started
from s2s.bench.hearing import Ear
from s2s.layers import load

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    with started(load([("profile", "embedded")]), Ear()) as trial:
        yield trial


@pytest.mark.parametrize(
    ("stage", "after_s", "resent"),
    [
        ("stt", 0.02, 0),  # sound may still be on its way to VAD: then STT has nothing to send again
        ("llm", 0.05, 1),
        ("tts", 0.05, 1),
    ],
)
def test_the_answer_is_completed_and_said_once(trial: Trial, stage: str, after_s: float, resent: int) -> None:
    sample = next(sample for sample in samples() if sample.path.stem == "austen-2")
    killed, _ = trial.serving(stage)
    outcome = trial.turn(stage, sample, after_s, from_first_sound=stage == "tts")
    assert outcome is not None, "the answer was out before the process was killed"
    assert outcome.completed, outcome.status
    assert outcome.resent >= resent
    assert outcome.wer <= 0.2, outcome
    assert (outcome.missing, outcome.doubled) == ((), ()), outcome
    assert trial.serving(stage)[0] != killed
