"""`talk` and `local` with real models: files in place of sound devices, and ALSA devices that are files."""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile

from actors.assets import samples
from s2s.audio import Clip, Pcm16, read_audio, write_wav
from s2s.bench.hearing import Ear
from tests.e2e.sound import RATE_HZ, is_audible, spoken

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
MARK = "TEST_TALK_MARK"
PATIENCE_S = 240.0
MIC_SILENCE_S = 60.0
QUIET = 150
"""Of int16: nothing that can be heard."""
BRIEF = ("--instructions", "You are a helpful assistant. Be brief.")


@dataclass
class Ran:
    """What a run of the program gave."""

    code: int
    out: str
    err: str

    def said(self, side: str) -> list[str]:
        """The captions of a side, without their notes."""
        return re.findall(rf"^{side}: +(.*?)(?:  \([^)]* s[^)]*\))?$", self.out, re.MULTILINE)


def run(*arguments: str | Path) -> Ran:
    command = [sys.executable, "-m", "s2s.run", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def ear() -> Ear:
    return Ear()


def share_heard(ear: Ear, text: str, sound: Pcm16) -> float:
    """Of the words of `text`, how many Whisper hears in `sound`."""
    heard = ear.words(ear.transcribe(sound, RATE_HZ))
    said = ear.words(text)
    return sum(word in heard for word in said) / len(said)


def test_a_question_in_a_file_is_answered_into_a_file(
    server: str, ear: Ear, question_file: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "answer.wav"
    ran = run("talk", "--url", server, "--wav", question_file, "--save", saved, *BRIEF)
    assert ran.code == 0, ran.err
    assert "capital of France" in ran.said("you")[0]
    (answer,) = ran.said("agent")
    sound, _ = soundfile.read(saved, dtype="int16")
    assert share_heard(ear, answer, sound) >= 0.7, answer
    question_s = len(spoken(question_file, 0.0)) / 2 / RATE_HZ
    assert np.abs(sound[: round(question_s * RATE_HZ)]).max() < QUIET, (
        "nothing is heard before the question is over"
    )


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or ctypes.util.find_library("portaudio") is None,
    reason="PortAudio is not installed (apt install libportaudio2), or this is not Linux",
)
def test_a_conversation_over_alsa(server: str, ear: Ear, question_file: Path, tmp_path: Path) -> None:
    """ALSA's default device is one whose microphone reads a file and whose speaker writes one."""
    heard, played = tmp_path / "microphone.raw", tmp_path / "speaker.raw"
    heard.write_bytes(spoken(question_file, MIC_SILENCE_S))
    config = tmp_path / "asound.conf"
    config.write_text(
        f'pcm.!default {{ type file slave.pcm "nothing" file "{played}" infile "{heard}" format "raw" }}\n'
        "pcm.nothing { type null }\n"
    )
    with _started(
        "talk", "--url", server, "--input-device", "default", *BRIEF, ALSA_CONFIG_PATH=str(config)
    ) as program:
        program.until("agent:")
        assert program.signal(signal.SIGINT) == 0
    sound = np.frombuffer(played.read_bytes(), "<i2")
    assert is_audible(sound.tobytes())
    (answer,) = re.findall(r"^agent: +(.*?)  \(", program.out, re.MULTILINE)
    assert share_heard(ear, answer, sound) >= 0.7, answer


@pytest.mark.long
def test_speech_over_the_answer_stops_it(server: str, question_file: Path, tmp_path: Path) -> None:
    """A turn, and when the answer to it has begun, another: everything is in one recording but the moment."""
    other = next(sample.path for sample in samples() if sample.path.stem == "dickens-01")
    for pause_s in (3.0, 4.5, 6.0):  # machines differ in when the answer plays
        recording, saved = tmp_path / "both.wav", tmp_path / "answers.wav"
        pcm = spoken(question_file, pause_s) + read_audio(other, RATE_HZ).pcm
        write_wav(recording, Clip(pcm, RATE_HZ))
        ran = run("talk", "--url", server, "--wav", recording, "--save", saved)
        assert ran.code == 0, ran.err
        if "interrupted after" in ran.out:
            break
    else:
        pytest.fail(f"no answer was interrupted: {ran.out}")
    assert "the server says" not in ran.out, "the truncation was right"
    assert "best of times" in ran.said("you")[1]
    sound, _ = soundfile.read(saved, dtype="int16")
    speech_ends_s = len(pcm) / 2 / RATE_HZ
    hushed = sound[round((speech_ends_s - 2.0) * RATE_HZ) : round(speech_ends_s * RATE_HZ)]
    assert np.abs(hushed).max() < QUIET, "the machine is silent while the person speaks"


@pytest.mark.long
def test_local_is_server_and_client_in_one(question_file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "answer.wav"
    with _started("local", "--wav", question_file, "--save", saved) as program:
        program.until("1 answer")
        assert program.process.wait(PATIENCE_S) == 0
        assert program.left() == []
    assert "you:   What is the capital of France?" in program.out
    assert is_audible(read_audio(saved, RATE_HZ).pcm)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_local_and_all_that_it_started(
    number: int, question_file: Path, tmp_path: Path
) -> None:
    with _started("local", "--wav", question_file, "--save", tmp_path / "answer.wav") as program:
        program.until("connected")
        assert program.signal(number) == 0
        assert program.left() == []


class _Program:
    """A running program, and everything that it started, which carries a mark in its environment."""

    def __init__(self, arguments: Sequence[str | Path], environment: dict[str, str]) -> None:
        self._mark = secrets.token_hex(8)
        self.out = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "s2s.run", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, **environment, MARK: self._mark},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in a background job
        )

    def until(self, words: str) -> str:
        """The output until a line with `words`; fails where the program ends without it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.out += line
            if words in line:
                return self.out
        raise AssertionError(f"it ended without {words!r}: {self.out}")

    def signal(self, number: int) -> int:
        """Send it as a terminal or a service manager does; the exit code."""
        (os.killpg if number == signal.SIGINT else os.kill)(self.process.pid, number)
        return self.process.wait(PATIENCE_S)

    def left(self) -> list[psutil.Process]:
        """What still runs of it."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found


@contextlib.contextmanager
def _started(*arguments: str | Path, **environment: str) -> Iterator[_Program]:
    """`python -m s2s.run …` while the block runs."""
    program = _Program(arguments, environment)
    watchdog = threading.Timer(PATIENCE_S, program.process.kill)
    watchdog.start()
    try:
        yield program
    finally:
        watchdog.cancel()
        for process in program.left():
            with contextlib.suppress(psutil.Error):
                process.kill()
        program.process.communicate(timeout=PATIENCE_S)
