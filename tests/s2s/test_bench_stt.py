"""`bench stt`: how errors and times become figures."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pytest

from actors.assets import samples
from actors.batch import Batch, Key
from actors.messages import SttRequest, SttResult
from s2s.bench import stt
from s2s.config import Config


class Parrot:
    """Hears one recording right, and of all others nothing."""

    def __init__(self, pcm: bytes, text: str) -> None:
        self._pcm, self._text = pcm, text

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult]]:
        for key, request in batch.take():
            yield key, SttResult(self._text if request.audio == self._pcm else "")


@pytest.mark.parametrize(
    "heard, errors", [("a b c", 0), ("a b", 1), ("a x c", 1), ("a b c d", 1), ("", 3), ("c", 2)]
)
def test_each_word_replaced_left_out_or_put_in_is_an_error(heard: str, errors: int) -> None:
    assert stt.word_errors(["a", "b", "c"], heard.split()) == errors


def test_figures_of_each_backend_and_the_bounds_that_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = samples()[:4]
    pcm = chosen[0].path.read_bytes()[44:]
    first, whole = (sum(len(sample.text.split()) for sample in part) for part in (chosen[:1], chosen))
    monkeypatch.setattr(stt, "_loaded", lambda name, model: Parrot(pcm, chosen[0].text))
    result: dict[str, Any] = stt.run(Config(), argparse.Namespace(quick=True))
    figures = result["figures"]
    assert figures["words"] == whole
    assert figures["tiny_en_whisper_wer"] == figures["base_faster_whisper_wer"] == (whole - first) / whole
    assert figures["base_time_ratio"] > 0
    assert len(result["broken"]) == len(stt.CHECKPOINTS) * 2
