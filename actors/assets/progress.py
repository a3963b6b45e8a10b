"""Shows how far downloads and conversions are: bars on a terminal, one log line each elsewhere."""

import logging
import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

log = logging.getLogger(__name__)


class Bars:
    """One bar a label. Safe to report to from several threads. `shown=False` keeps it silent."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._tasks: dict[str, TaskID] = {}
        self._logged: set[str] = set()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not (shown and sys.stderr.isatty()),
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def report(self, label: str, done_bytes: int, total_bytes: int) -> None:
        """`total_bytes` of 0 means unknown: the bar only shows that work goes on."""
        if not self._shown:
            return
        if label not in self._logged:
            self._logged.add(label)
            log.info("%s%s", label, f" ({total_bytes / 1e6:.0f} MB)" if total_bytes else "")
        if label not in self._tasks:
            self._tasks[label] = self._progress.add_task(label, total=total_bytes or None)
        self._progress.update(self._tasks[label], completed=done_bytes)
