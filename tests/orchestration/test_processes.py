"""What an earlier run left behind is ended, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from orchestration.processes import OwnProcesses, Seen, end, end_leftovers, see


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def record(folder: Path, *entries: Seen) -> Path:
    path = folder / "1.json"
    path.write_text(json.dumps([asdict(entry) for entry in entries]))
    return path


def gone() -> Seen:
    """A program that has ended: this one's id with another start time."""
    return Seen(os.getpid(), 1.0)


def test_processes_of_a_program_that_is_gone_are_ended(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path = record(tmp_path, gone(), see(psutil.Process(sleeper.pid)))
    assert end_leftovers(tmp_path) == 1
    assert not psutil.pid_exists(sleeper.pid)
    assert not path.exists()


def test_processes_of_a_program_that_runs_are_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path = record(tmp_path, see(psutil.Process()), see(psutil.Process(sleeper.pid)))
    assert end_leftovers(tmp_path) == 0
    assert sleeper.poll() is None
    assert path.exists()


def test_a_process_id_used_again_is_left_alone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    record(tmp_path, gone(), Seen(sleeper.pid, 1.0))
    assert end_leftovers(tmp_path) == 0
    assert sleeper.poll() is None


def test_a_torn_record_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('[{"pid": 1')
    assert end_leftovers(tmp_path) == 0
    assert not list(tmp_path.iterdir())


def test_own_processes_are_recorded_and_ended(tmp_path: Path) -> None:
    own = OwnProcesses(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    own.settle()
    [path] = tmp_path.glob("*.json")
    recorded = [Seen(**entry) for entry in json.loads(path.read_text())]
    assert [seen.pid for seen in recorded] == [os.getpid(), process.pid]
    end(recorded[1:], grace_s=0)
    own.end()
    assert not psutil.pid_exists(process.pid)
    assert not path.exists()


def test_what_ran_before_is_not_ours(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    own = OwnProcesses(tmp_path)
    own.settle()
    own.end()
    assert sleeper.poll() is None
