"""The processes of a Ray started here, so that none of them outlives its program, however that ends.

Everything that a program starts carries a mark of its own in the environment.  A clean end stops what carries it.
After `kill -9` of the program most of Ray follows by itself and some agents do not: so the mark is kept in a file,
and the next start ends what is left of a program that is gone.  A process without such a mark is never touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path

import psutil

MARK = "SPEECH_TO_SPEECH_RUN"
"""Name in the environment (one that begins with S2S_ would be read as a setting)."""
GRACE_S = 3.0
SAME_START_S = 0.05


def marked(mark: str) -> list[psutil.Process]:
    """What runs and carries `mark`, this process aside."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            carries = process.environ().get(MARK) == mark and process.pid != os.getpid()
            if carries and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def end(mark: str, grace_s: float = GRACE_S) -> int:
    """Wait `grace_s` for what carries `mark` to end by itself, kill the rest; how many had to be killed."""
    psutil.wait_procs(marked(mark), grace_s)
    killed = 0
    while left := marked(mark):  # again, for one that was being born
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
                killed += 1
        psutil.wait_procs(left, GRACE_S)
    return killed


def end_leftovers(folder: Path) -> int:
    """End what programs that are gone left behind, by their records in `folder`; how many processes."""
    ended = 0
    for record in folder.glob("*.json"):
        try:
            kept = json.loads(record.read_text())
            pid, started, mark = int(kept["pid"]), float(kept["started"]), str(kept["mark"])
        except (OSError, ValueError, TypeError, KeyError):
            record.unlink(missing_ok=True)
            continue
        if not _runs(pid, started):
            ended += end(mark, grace_s=0)
            record.unlink(missing_ok=True)
    return ended


def _runs(pid: int, started: float) -> bool:
    """Whether the very process runs: an id is used again, an id with its start time is not."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return (
            abs(process.create_time() - started) < SAME_START_S and process.status() != psutil.STATUS_ZOMBIE
        )
    return False


class OwnProcesses:
    """Marks what this program starts from now on, until `end`."""

    def __init__(self, folder: Path) -> None:
        self._mark = secrets.token_hex(16)
        self._before = os.environ.get(MARK)
        os.environ[MARK] = self._mark
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{os.getpid()}-{self._mark[:8]}.json"
        partial = self._path.with_suffix(".partial")
        me = psutil.Process()
        partial.write_text(json.dumps({"pid": me.pid, "started": me.create_time(), "mark": self._mark}))
        partial.replace(self._path)

    def end(self) -> None:
        """End what still runs, and forget the record."""
        end(self._mark)
        self._path.unlink(missing_ok=True)
        if self._before is None:
            os.environ.pop(MARK, None)
        else:
            os.environ[MARK] = self._before
