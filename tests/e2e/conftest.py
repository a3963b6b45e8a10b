"""One running server for every test of a client; it ends as it should when they are over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.assets import question

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 240.0
TALKATIVE = "You are a helpful voice assistant. You speak plain English and tell long stories."
"""Answers that can be interrupted."""
END_TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `python -m s2s.run serve` on the embedded profile, without a slash at its end.

    `E2E_SERVER` names one that runs already, for those who change a test.
    """
    if running := os.environ.get("E2E_SERVER"):
        yield running.rstrip("/")
        return
    errors = tmp_path_factory.mktemp("server") / "stderr"
    command = [sys.executable, "-m", "s2s.run", "serve", "--port", "0", "--drain_s", "5"]
    command += ["--instructions", TALKATIVE, "--llm_temperature", "0"]
    with (
        errors.open("wb") as file,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=file, text=True) as process,
    ):
        watchdog = threading.Timer(START_TIMEOUT_S, process.kill)
        watchdog.start()
        assert process.stdout is not None
        address = next((line.split()[-1] for line in process.stdout if "talk:" in line), None)
        watchdog.cancel()
        assert address is not None, f"the server did not start: {errors.read_text(errors='replace')[-4000:]}"
        yield address.rstrip("/")
        process.send_signal(signal.SIGTERM)
        code = process.wait(END_TIMEOUT_S)
        assert code == 0, f"the server ended with {code}: {errors.read_text(errors='replace')[-4000:]}"


@pytest.fixture(scope="session")
def question_file() -> Path:
    """A packaged recording in which "What is the capital of France?" is asked."""
    return question()
