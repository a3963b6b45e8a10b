"""`ask` with real models: any recording, one conversation, and what is said of what can't be answered."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import psutil
import pytest
import soundfile

from actors.assets import Sample, samples
from s2s.audio import Clip, read_audio
from s2s.bench.hearing import Ear
from s2s.layers import load
from s2s.run import main
from s2s.system import System, running

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
WORDS = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.ReduceToListOfListOfWords()])


def wer(said: list[str], heard: list[str]) -> float:
    return float(jiwer.wer(said, heard, reference_transform=WORDS, hypothesis_transform=WORDS))


def recording(name: str) -> Sample:
    return next(sample for sample in samples() if sample.path.stem == name)


@dataclass
class Asked:
    """What a run of `ask` gave."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> Any:
        return json.loads(self.out)


CLICK_JUMP = 0.3
"""Of full scale, from one sample to the next."""
EDGE_MS = 3
QUIET = 0.01
MAX_GAP_MS = 300
JOINT_MS = 100
"""Digital silence of at least this length is a pause set between clauses; a model's own is never so still."""
CONVERSATION = ("dickens-01", "austen-2", "austen-5", "dickens-04", "command")


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """`ask` as a program, with the embedded profile, on five recordings."""
    folder = tmp_path_factory.mktemp("answers")
    files = [str(recording(name).path) for name in CONVERSATION]
    command = [
        sys.executable,
        "-m",
        "s2s.run",
        "ask",
        "--input",
        *files,
        "--output-dir",
        str(folder),
        "--json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    return Asked(done.returncode, done.stdout, done.stderr)


def test_recordings_are_understood(conversation: Asked) -> None:
    assert conversation.code == 0, conversation.err
    heard = [turn["transcript"] for turn in conversation.report["turns"]]
    assert wer([recording(name).text for name in CONVERSATION], heard) <= 0.15


def test_each_answer_can_be_heard_back_whole(conversation: Asked) -> None:
    ear = Ear()
    for turn in conversation.report["turns"]:
        sound, rate_hz = soundfile.read(turn["output"], dtype="int16")
        heard = ear.check(turn["answer"], sound, rate_hz)
        assert heard.wer <= 0.2, (turn["answer"], heard)
        assert (heard.missing, heard.doubled) == ((), ()), (turn["answer"], heard)


def test_answers_neither_clip_nor_click(conversation: Asked) -> None:
    for turn in conversation.report["turns"]:
        sound, rate_hz = soundfile.read(turn["output"], dtype="float32")
        assert np.abs(sound).max() < 0.999
        edge = rate_hz * EDGE_MS // 1000
        for at in np.flatnonzero(np.abs(np.diff(sound)) >= CLICK_JUMP):
            # Inside loud speech that is a sibilant; out of silence or into it, it is a click at a joint.
            before, after = sound[max(0, at - edge) : at], sound[at + 1 : at + 1 + edge]
            assert min(np.abs(before).max(initial=0), np.abs(after).max(initial=0)) > QUIET, (
                turn["output"],
                at,
            )


def test_no_clause_has_a_gap(conversation: Asked) -> None:
    for turn in conversation.report["turns"]:
        sound, rate_hz = soundfile.read(turn["output"], dtype="float32")
        heard = np.flatnonzero(np.abs(sound) > QUIET)
        for before, after in itertools.pairwise(heard):
            if after - before > rate_hz * MAX_GAP_MS // 1000:
                still = np.diff(np.flatnonzero(np.append(sound[before:after], 1.0))).max()
                assert still > rate_hz * JOINT_MS // 1000, (turn["output"], before / rate_hz, after / rate_hz)


def test_every_stage_has_a_process_of_its_own(conversation: Asked) -> None:
    placement = conversation.report["placement"]
    assert {row["stage"] for row in placement} == {"vad", "stt", "llm", "tts"}
    pids = [row["pid"] for row in placement]
    assert len(set(pids)) == len(pids)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_the_report_says_where_and_how_long(conversation: Asked) -> None:
    report = conversation.report
    assert report["startup_s"] > 0
    for row in report["placement"]:
        assert set(row) >= {
            "stage",
            "replica",
            "backend",
            "node",
            "device",
            "threads",
            "pid",
            "memory_mb",
        }
        assert row["memory_mb"] > 0
    for name, turn in zip(CONVERSATION, report["turns"], strict=True):
        clip = read_audio(recording(name).path)
        assert turn["duration_s"] == pytest.approx(clip.duration_s, abs=0.01)
        assert 0 < turn["speech_s"] <= turn["duration_s"]
        assert turn["language"] == "en"
        timings = turn["timings_ms"]
        assert set(timings) == {"stt", "llm_first_token", "llm_first_clause", "tts_first_audio", "total"}
        assert 0 < timings["stt"] < timings["total"]
        assert 0 < timings["llm_first_token"] <= timings["llm_first_clause"] < timings["total"]


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """Real ears and a real voice, around an LLM that shows its prompt."""
    config = load([("profile", "embedded"), ("llm", "tests.e2e.reciting:Recite")])
    with running(config, out=None) as system:
        yield system


@pytest.fixture
def ask(
    system: System, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Asked]:
    """Runs `ask` on the running system."""

    def run(*files: Path) -> Asked:
        monkeypatch.setattr("s2s.ask.running", lambda config: contextlib.nullcontext(system))
        code = main(["ask", "--input", *map(str, files), "--output-dir", str(tmp_path / "out"), "--json"])
        said = capsys.readouterr()
        return Asked(code, said.out, said.err)

    return run


Encode = Callable[[Path, Clip], None]


def _written(subtype: str, rate_hz: int = 16_000, channels: int = 1) -> Encode:
    def write(path: Path, clip: Clip) -> None:
        mono = read_audio(recording("command").path, rate_hz)
        sound = np.frombuffer(mono.pcm, "<i2").astype(np.float32) / 32_768
        soundfile.write(path, np.repeat(sound[:, None], channels, axis=1), rate_hz, subtype)

    return write


def _cut_short(path: Path, clip: Clip) -> None:
    """A wav whose header promises a second more than there is."""
    soundfile.write(path, np.frombuffer(clip.pcm + bytes(32_000), "<i2"), 16_000)
    path.write_bytes(path.read_bytes()[:-32_000])


FILES: dict[str, Encode] = {
    "8-bit.wav": _written("PCM_U8"),
    "24-bit.wav": _written("PCM_24"),
    "float.wav": _written("FLOAT"),
    "96-khz.wav": _written("PCM_16", 96_000),
    "6-channels.wav": _written("PCM_16", 48_000, 6),
    "stereo.flac": _written("PCM_16", 44_100, 2),
    "mono.ogg": _written("VORBIS"),
    "mono.mp3": _written("MPEG_LAYER_III", 44_100),
    "cut-short.wav": _cut_short,
}


def test_every_kind_of_file_is_understood(ask: Callable[..., Asked], tmp_path: Path) -> None:
    clip = read_audio(recording("command").path)
    for name, encode in FILES.items():
        encode(tmp_path / name, clip)
    asked = ask(*(tmp_path / name for name in FILES))
    assert asked.code == 0, asked.err
    heard = {Path(turn["input"]).name: turn["transcript"] for turn in asked.report["turns"]}
    assert {name: text for name, text in heard.items() if "ten meters" not in text.replace("10", "ten")} == {}


def test_the_prompt_of_the_third_turn_holds_the_first(ask: Callable[..., Asked]) -> None:
    asked = ask(*(recording(name).path for name in ("command", "cards-1", "cards-3")))
    transcripts = [turn["transcript"].strip() for turn in asked.report["turns"]]
    answers = [turn["answer"].strip() for turn in asked.report["turns"]]
    assert all(transcripts)
    assert answers == [" ".join(transcripts[: count + 1]) for count in range(3)]


def test_what_holds_no_speech_is_named_with_exit_3(ask: Callable[..., Asked], tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(0, 3_000, 48_000).astype(np.int16)
    mute = {"silence.wav": np.zeros(48_000, np.int16), "noise.wav": noise, "one.wav": np.ones(1, np.int16)}
    for name, sound in mute.items():
        soundfile.write(tmp_path / name, sound, 16_000)
    asked = ask(recording("command").path, *(tmp_path / name for name in mute))
    assert asked.code == 3
    for name in mute:
        assert f"{tmp_path / name}: no speech found" in asked.err
    turns = asked.report["turns"]
    assert [bool(turn["output"]) for turn in turns] == [True, False, False, False]
    assert [turn["transcript"] for turn in turns[1:]] == ["", "", ""]


@pytest.mark.long
def test_ten_minutes_of_speech_are_one_turn(ask: Callable[..., Asked], tmp_path: Path) -> None:
    pause = bytes(16_000)
    chapters = [recording(f"dickens-{number:02}") for number in range(1, 11)]
    reading = b"".join(read_audio(chapter.path).pcm + pause for chapter in chapters)
    times = round(600 / (len(reading) / 32_000))
    soundfile.write(tmp_path / "long.wav", np.frombuffer(reading * times, "<i2"), 16_000)
    asked = ask(tmp_path / "long.wav")
    assert asked.code == 0, asked.err
    (turn,) = asked.report["turns"]
    assert wer([" ".join([chapter.text for chapter in chapters] * times)], [turn["transcript"]]) <= 0.15
