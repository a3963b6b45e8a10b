"""Test speech: recordings become 16 kHz samples whose texts are known, from whichever package is there."""

import json
import wave
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from actors.assets import CATALOGUE, AssetError, samples, speech
from actors.assets.asset import Packaged


def write_wav(path: Path, rate_hz: int, count: int, channels: int = 1) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(np.arange(count * channels, dtype="<i2").tobytes())


def length(path: Path) -> tuple[int, int]:
    with wave.open(str(path), "rb") as file:
        return file.getnframes(), file.getframerate()


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_a_cut_is_taken_at_the_recordings_rate_and_written_at_16_khz(recordings: Path, target: Path) -> None:
    write_wav(recordings / "two_cities.wav", 48_000, 2_130_000)
    speech.cut_samples([recordings], target)
    first = next(cut for cut in speech.CUTS if cut.recording == "two_cities.wav")
    assert length(target / f"{first.name}.wav") == ((first.stop - first.start) // 3, 16_000)


def test_a_recording_without_header_keeps_its_samples(recordings: Path, target: Path) -> None:
    np.full(1_600, 1_000, "<i2").tofile(recordings / "goforward.raw")
    speech.cut_samples([recordings], target)
    with wave.open(str(target / "command.wav"), "rb") as file:
        sound = np.frombuffer(file.readframes(1_600), "<i2")
    assert len(sound) == 1_600
    assert np.abs(sound - 1_000).max() <= 1


def test_only_what_is_there_becomes_a_sample(
    recordings: Path, target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_wav(recordings / "beckett.wav", 16_000, 16_000)
    local = tmp_path / "cache" / "local" / "speech-samples"
    local.mkdir(parents=True)
    speech.cut_samples([target, recordings], local)
    monkeypatch.setenv("S2S_CACHE", str(tmp_path / "cache"))
    (only,) = samples()
    assert only.path == local / "beckett.wav"
    assert only.text.startswith("Ever tried.")


def test_no_recording_at_all_is_an_error(recordings: Path, target: Path) -> None:
    with pytest.raises(AssetError, match="no known recording in"):
        speech.cut_samples([recordings], target)


def test_a_stereo_recording_is_refused(recordings: Path, target: Path) -> None:
    write_wav(recordings / "beckett.wav", 16_000, 100, channels=2)
    with pytest.raises(AssetError, match=r"beckett.wav: 2 channels of 2 bytes, expected mono PCM16"):
        speech.cut_samples([recordings], target)


def test_every_cut_is_of_a_catalogued_recording_and_has_its_own_name() -> None:
    catalogued = {
        file.name
        for name in ("moonshine-recordings", "pocketsphinx-recordings")
        for source in CATALOGUE[name].sources
        if isinstance(source, Packaged)
        for file in source.files
    }
    assert {cut.recording for cut in speech.CUTS} == catalogued
    assert len({cut.name for cut in speech.CUTS}) == len(speech.CUTS)


def test_cuts_of_one_recording_follow_each_other() -> None:
    cuts = [cut for cut in speech.CUTS if cut.recording == "two_cities.wav"]
    assert all(before.stop == after.start for before, after in pairwise(cuts))


def test_texts_are_stored_beside_the_samples(recordings: Path, target: Path) -> None:
    write_wav(recordings / "001.wav", 16_000, 100)
    speech.cut_samples([recordings], target)
    assert json.loads((target / speech.TEXTS_FILE).read_text()) == {"cards-1.wav": "Ten of clubs."}
