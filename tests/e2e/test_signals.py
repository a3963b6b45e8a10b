"""Ctrl-C, SIGTERM and `kill -9` at any moment: no process of ours is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import websockets
from websockets.exceptions import ConnectionClosed

from actors.assets import cache_folder, question
from orchestration.processes import end_leftovers
from tests.e2e.wire import TEXT_ITEM, wire

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
MARK = "TEST_SIGNALS_MARK"
PATIENCE_S = 240.0


class Program:
    """`python -m s2s.run …`, and everything that it started, which carries a mark in its environment."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._mark = secrets.token_hex(8)
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "s2s.run", *arguments],
                cwd=ROOT,
                env={**os.environ, MARK: self._mark, "PYTHONUNBUFFERED": "1"},
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A background job of a shell ignores Ctrl-C, and so does what it starts.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_words(self, words: str) -> None:
        self._until(lambda: words in self.said, f"to say {words!r}")

    def await_process(self, name: str) -> None:
        self._until(lambda: name in self.names(), f"to have a process {name}")

    def signal(self, number: int) -> int:
        """Send it as a terminal or a service manager does, and wait; the exit code."""
        if number == signal.SIGINT:
            os.killpg(self.pid, number)
        else:
            os.kill(self.pid, number)
        return self.wait()

    def wait(self) -> int:
        """The exit code, once it has ended."""
        return self._process.wait(PATIENCE_S)

    def processes(self) -> list[psutil.Process]:
        """All that run and carry the mark."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def await_none(self) -> None:
        """Return when nothing of it runs any more."""
        until = time.monotonic() + PATIENCE_S
        while left := self.processes():
            assert time.monotonic() < until, left
            time.sleep(0.1)

    def names(self) -> set[str]:
        """Of what runs; an actor's is that of its class."""
        found = set()
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                found.add(process.name().partition(".")[0])
        return found

    def end(self) -> None:
        """After the test, whatever came of it."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.wait(PATIENCE_S)

    def _until(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not done():
            assert self._process.poll() is None, (
                f"it ended ({self._process.returncode}) and was {what}: {self.said}"
            )
            assert time.monotonic() < until, f"it was {what} within {PATIENCE_S:.0f} s: {self.said}"
            time.sleep(0.1)


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Program] = []

    def begin(*arguments: str) -> Program:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Program(folder, *arguments))
        return started[-1]

    yield begin
    for program in started:
        program.end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("process", ["gcs_server", "raylet", "ray::Stage"])
def test_ended_while_it_starts(start: Start, number: int, process: str) -> None:
    program = start("serve", "--port", "0")
    program.await_process(process)
    code = program.signal(number)
    assert code == 130, program.said
    assert program.processes() == []


async def test_sigterm_lets_the_running_answer_finish_and_takes_no_new_session(start: Start) -> None:
    program = start("serve", "--port", "0", "--drain_s", "60")
    program.await_words("Ctrl-C ends it.")
    server = program.said.partition("talk:")[2].split()[0].rstrip("/")
    async with wire(server) as talk:
        await talk.send(TEXT_ITEM, {"type": "response.create", "response": {"max_output_tokens": 60}})
        await talk.until("response.output_audio.delta")
        os.kill(program.pid, signal.SIGTERM)
        program.await_words("ending:")
        await _until_refused(server)
        done = (await talk.until("response.done"))[-1]["response"]
        assert done["status"] == "completed" or done["status_details"]["reason"] == "max_output_tokens"
        assert done["output"][0]["content"][0]["transcript"]
        with pytest.raises(ConnectionClosed):
            await talk.until("never")
    assert program.wait() == 0, program.said
    assert program.processes() == []


async def _until_refused(server: str) -> None:
    """A drain begins a moment after the signal."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with websockets.connect(server.replace("http", "ws", 1) + "/v1/realtime") as socket:
                first = json.loads(await socket.recv())
            if first["type"] == "error":
                assert first["error"]["code"] == "server_shutting_down"
                return


def test_ended_by_ctrl_c_in_the_middle_of_an_answer(start: Start, tmp_path: Path) -> None:
    program = start("ask", "--input", str(question()), "--output-dir", str(tmp_path / "out"))
    program.await_words("agent: ")
    assert program.signal(signal.SIGINT) == 130, program.said
    assert program.processes() == []
    assert list((tmp_path / "out").iterdir()) == []


def test_after_kill_9_the_next_start_ends_what_was_left_and_nothing_else(start: Start) -> None:
    other, killed = start("serve", "--port", "0"), start("serve", "--port", "0")
    other.await_process("ray::Supervisor")
    killed.await_process("ray::Supervisor")
    killed.signal(signal.SIGKILL)
    end_leftovers(cache_folder() / "run")
    killed.await_none()  # a worker that has just begun ends by itself when it finds its raylet gone
    assert {"gcs_server", "raylet", "ray::Supervisor"} <= other.names()
