"""What an earlier run left behind is ended, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestration.processes import MARK, OwnProcesses, end_leftovers

Start = Callable[..., subprocess.Popen[str]]
SLEEP = "import time; print('here', flush=True); time.sleep(60)"
ORPHAN = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid, flush=True)"


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(code: str = SLEEP, **environment: str) -> subprocess.Popen[str]:
        command, env = [sys.executable, "-c", code], {**os.environ, **environment}
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def record(folder: Path, pid: int, started: float, mark: str) -> Path:
    path = folder / "1.json"
    path.write_text(json.dumps({"pid": pid, "started": started, "mark": mark}))
    return path


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_processes_of_a_program_that_is_gone_are_ended(tmp_path: Path, start: Start) -> None:
    left, other = start(**{MARK: "gone"}), start(**{MARK: "other"})
    said(left), said(other)
    path = record(tmp_path, os.getpid(), 1.0, "gone")
    assert end_leftovers(tmp_path) == 1
    assert not psutil.pid_exists(left.pid) and other.poll() is None
    assert not path.exists()


def test_processes_of_a_program_that_runs_are_left_alone(tmp_path: Path, start: Start) -> None:
    process = start(**{MARK: "runs"})
    said(process)
    path = record(tmp_path, os.getpid(), psutil.Process().create_time(), "runs")
    assert end_leftovers(tmp_path) == 0
    assert process.poll() is None and path.exists()


@pytest.mark.parametrize("text", ['{"pid": 1', "[]", '{"pid": 1, "started": null, "mark": "m"}'])
def test_a_torn_record_is_dropped(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.json").write_text(text)
    assert end_leftovers(tmp_path) == 0
    assert not list(tmp_path.iterdir())


def test_what_this_program_started_is_ended_even_without_its_parent(tmp_path: Path, start: Start) -> None:
    own = OwnProcesses(tmp_path)
    orphan = int(said(start(ORPHAN)))
    assert [each.name for each in tmp_path.iterdir()] == [f"{os.getpid()}-{os.environ[MARK][:8]}.json"]
    own.end()
    assert not psutil.pid_exists(orphan) or psutil.Process(orphan).status() == psutil.STATUS_ZOMBIE
    assert not list(tmp_path.iterdir()) and MARK not in os.environ


def test_what_ran_before_is_not_ours(tmp_path: Path, start: Start) -> None:
    process = start()
    said(process)
    OwnProcesses(tmp_path).end()
    assert process.poll() is None


def test_a_run_inside_a_run_gives_the_mark_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "outer")
    own = OwnProcesses(tmp_path)
    assert os.environ[MARK] != "outer"
    own.end()
    assert os.environ[MARK] == "outer"
