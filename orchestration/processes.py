"""The processes of a Ray started here, so that none of them outlives its program, however that ends.

A clean end stops them.  After `kill -9` of the program most follow it by themselves and some agents of Ray do not: so
their process ids and start times are kept in a file, and the next start ends what is left of a program that is gone.
A process is only ever touched where both its id and its start time match.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

WATCH_S = 0.25
GRACE_S = 3.0


@dataclass(frozen=True)
class Seen:
    """One process for ever: ids are used again, ids with a start time are not."""

    pid: int
    started: float
    """Seconds since the epoch."""

    def process(self) -> psutil.Process | None:
        """The process, if it still runs."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.started) < 0.05 and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


def see(process: psutil.Process) -> Seen:
    return Seen(process.pid, process.create_time())


def descendants() -> set[Seen]:
    """All processes below this one."""
    found: set[Seen] = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found.add(see(process))
    return found


def end(processes: Iterable[Seen], grace_s: float = GRACE_S) -> int:
    """Wait `grace_s` for `processes` to end by themselves, kill the others; how many had to be killed."""
    alive = [process for seen in processes if (process := seen.process())]
    _, left = psutil.wait_procs(alive, grace_s)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, GRACE_S)
    return len(left)


def end_leftovers(folder: Path) -> int:
    """End what programs that are gone left behind, by their records in `folder`; how many processes."""
    ended = 0
    for record in folder.glob("*.json"):
        try:
            entries = [Seen(**entry) for entry in json.loads(record.read_text())]
        except (OSError, ValueError, TypeError):
            entries = []
        if entries and entries[0].process():
            continue
        ended += end(entries[1:], grace_s=0)
        record.unlink(missing_ok=True)
    return ended


class OwnProcesses:
    """Keeps the record of what this program started, from before Ray starts until it has ended."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}.json"
        self._before = descendants()
        self._seen: set[Seen] = set()
        self._settled = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)
        self._write()
        self._thread = threading.Thread(target=self._watch, name="own-processes", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Everything has been started: record it once more and watch no longer."""
        self._settled.set()
        self._thread.join()
        self._look()

    def end(self) -> None:
        """End what still runs, and forget the record."""
        if not self._settled.is_set():
            self.settle()
        self._look()
        end(self._seen)
        self._path.unlink(missing_ok=True)

    def _watch(self) -> None:
        while not self._settled.wait(WATCH_S):
            self._look()

    def _look(self) -> None:
        found = descendants() - self._before - self._seen
        if found:
            self._seen |= found
            self._write()

    def _write(self) -> None:
        entries = [see(psutil.Process()), *sorted(self._seen, key=lambda seen: seen.pid)]
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps([asdict(entry) for entry in entries]))
        partial.replace(self._path)
