"""The one thread in which a backend runs, and the way of its results to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from actors.batch import Batch, Key

T = TypeVar("T")
MODEL_NICE = 10
"""Niceness of the threads of large models, so that sockets, actor loops and what listens go first."""


@dataclass(slots=True, eq=False)
class Run:
    """One call of a backend's verb."""

    batch: Batch[Any]
    live: set[Key]
    """Requests that wait for results: kept by the loop."""
    joined: int
    """Requests that were ever in the batch."""
    started_at: float
    """Monotonic s."""
    alone: bool = False
    """Its one request was in a batch that raised: no other may join."""
    abandoned: bool = False
    """Nobody waits for anything of it: it ends at its next step."""


@dataclass(slots=True)
class Step:
    """What happened in the thread: a result of a run, or its end."""

    run: Run
    key: Key | None = None
    result: Any = None
    ended: bool = False
    error: Exception | None = None


class ModelThread:
    """Runs functions and verbs one after the other; what verbs do is told to `on_steps`, in `loop`."""

    on_steps: Callable[[list[Step]], None]

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, nice: int = MODEL_NICE) -> None:
        self._loop = loop
        self._nice = nice
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._steps: deque[Step] = deque()
        self._hopping = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Run `function` in the thread; the future has its result or error."""
        done: asyncio.Future[T] = self._loop.create_future()

        def settle(value: T | None, error: BaseException | None) -> None:
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(value)  # type: ignore[arg-type]

        def job() -> None:
            try:
                value, error = function(), None
            except BaseException as raised:
                value, error = None, raised
            self._post(settle, value, error)

        self._jobs.put(job)
        return done

    def start(self, verb: Callable[[Batch[Any]], Iterator[tuple[Key, Any]]], run: Run) -> None:
        """Call `verb` on the batch of `run` when what was asked before is done."""
        self._jobs.put(lambda: self._drive(verb, run))

    def stop(self) -> None:
        """End the thread after the jobs in hand."""
        self._jobs.put(None)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _work(self) -> None:
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                os.nice(self._nice)
        while (job := self._jobs.get()) is not None:
            job()

    def _drive(self, verb: Callable[[Batch[Any]], Iterator[tuple[Key, Any]]], run: Run) -> None:
        error: Exception | None = None
        try:
            results = verb(run.batch)
            for key, result in results:
                self._step(Step(run, key, result))
                if run.abandoned:
                    close = getattr(results, "close", None)
                    if close is not None:
                        close()
                    break
        except Exception as raised:
            error = raised
        self._step(Step(run, ended=True, error=error))

    def _step(self, step: Step) -> None:
        self._steps.append(step)
        if not self._hopping:
            self._hopping = True
            self._post(self._hop)

    def _hop(self) -> None:
        self._hopping = False
        steps = []
        while self._steps:
            steps.append(self._steps.popleft())
        if steps:
            self.on_steps(steps)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)
