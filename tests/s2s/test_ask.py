"""`ask`: what can't be answered is refused, and named, before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from s2s.run import main

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `ask` where nothing may be started; its exit code and what it says."""

    def must_not_start(*_: object) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr("s2s.ask.running", must_not_start)

    def run(*arguments: str | Path) -> tuple[int, str]:
        return main(["ask", *map(str, arguments)]), capsys.readouterr().err

    return run


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    path = tmp_path / "speech.wav"
    soundfile.write(path, np.zeros(16_000, np.int16), 16_000)
    return path


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.wav", None, "no such file"),
        ("empty.wav", b"", "is empty"),
        ("text.wav", b"This is no sound at all." * 40, "is not audio"),
        ("half-a-header.wav", b"RIFF\x24\x00\x00\x00WAVEfm", "is not audio"),
    ],
)
def test_a_bad_file_is_named_and_nothing_is_started(
    ask: Run, speech: Path, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    bad = tmp_path / name
    if content is not None:
        bad.write_bytes(content)
    code, error = ask("--input", speech, bad, "--output-dir", tmp_path / "out")
    assert code == 2
    assert str(bad) in error
    assert said in error


def test_an_output_folder_that_cannot_be_is_named_and_nothing_is_started(
    ask: Run, speech: Path, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    code, error = ask("--input", speech, "--output-dir", in_the_way / "out")
    assert code == 2
    assert str(in_the_way / "out") in error
    assert "cannot be written" in error


def test_a_folder_instead_of_a_file_is_named(ask: Run, tmp_path: Path) -> None:
    code, error = ask("--input", tmp_path, "--output-dir", tmp_path / "out")
    assert code == 2
    assert "is a folder" in error
