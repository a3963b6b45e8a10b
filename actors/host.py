"""What goes on around a loaded backend: its inbox, the runs in the model's thread, the results on their way back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from actors.backend import Capabilities
from actors.batch import Batch, Key
from actors.messages import Failed, Result
from actors.model_thread import ModelThread, Run, Step
from actors.queue import core
from actors.queue.core import Control, Figures, Inbox, Item
from actors.queue.items import pieces
from actors.queue.returns import ReturnPath

log = logging.getLogger(__name__)

QUICK_S = 0.005
"""A model whose runs are shorter answers in the reply to the delivery: half the calls for VAD."""
HOLD_S = 0.010
"""Longest that a reply waits for results."""
SIGN_OF_LIFE_S = 1.0
"""How often producers whose work waits hear that the model gets on."""


class Host:
    """One loaded backend at work.  All methods are called in one event loop."""

    def __init__(
        self,
        stage: str,
        replica: str,
        verb: Callable[[Batch[Any]], Iterator[tuple[Key, Any]]],
        capabilities: Capabilities,
        thread: ModelThread,
    ) -> None:
        self._stage = stage
        self._id = replica
        self._verb = verb
        self._continuous = capabilities.continuous
        self._thread = thread
        self._inbox = Inbox(capabilities.max_batch, capabilities.continuous)
        self._paths: dict[str, ReturnPath] = {}
        self._run: Run | None = None
        self._alone: deque[core.Key] = deque()
        self._failures = 0
        self._run_s: float | None = None
        self._busy_s = 0.0
        self._busy_since: float | None = None
        self._progress = 0
        thread.on_steps = self._on_steps
        self._beat = asyncio.get_running_loop().create_task(self._sign_of_life())

    async def deliver(
        self, source: str, sink: Any, number: int, items: Sequence[Item], missed: list[int]
    ) -> bytes:
        """Take delivery `number` of `source`; returns encoded `Returns`."""
        path = self._paths.get(source)
        if path is None:
            path = self._paths[source] = ReturnPath(
                self._stage, self._id, source, self._inbox, sink, self._end
            )
        self._drop(self._inbox.receive(source, number, items, time.monotonic(), len(missed)))
        self._pump()
        if self._run is not None and self._run_s is not None and self._run_s < QUICK_S:
            await path.hold(HOLD_S)
        return path.answer(missed)

    def control(self, source: str, controls: Sequence[Control]) -> None:
        """Cancel, promote, close or give back what `controls` name, queued or running."""
        inbox = self._inbox
        for control in controls:
            session, generation, number = control.session, control.generation, control.number
            match control.verb:
                case "cancel":
                    self._drop(inbox.cancel(source, session, generation, number))
                case "promote":
                    now = time.monotonic()
                    inbox.promote(source, session, generation, control.due_in_s, number, now)
                case "close":
                    self._drop(inbox.close(source, session, number))
                case "recall":
                    inbox.recall(source, control.item)
        self._pump()
        self._flush({source})

    @property
    def idle(self) -> bool:
        """Whether all work is done and its results have been taken."""
        return self._inbox.idle and all(path.idle for path in self._paths.values())

    def figures(self) -> tuple[Figures, float, int]:
        """The inbox's figures, how long the model has worked since it was loaded, in s, and how many runs raised since
        the last one that did not."""
        now = time.monotonic()
        busy_s = self._busy_s + (now - self._busy_since if self._busy_since is not None else 0.0)
        return self._inbox.figures(now), busy_s, self._failures

    def stop(self) -> None:
        """Drop all work."""
        for source in list(self._paths):
            self._end(source)
        self._beat.cancel()

    def _pump(self) -> None:
        """Give the model what it has room for."""
        run = self._run
        if run is not None and (run.alone or self._alone or not self._continuous):
            return
        if self._run_alone():
            return
        taken = self._inbox.take(time.monotonic())
        if not taken:
            return
        if run is None:
            self._start([(held.key, held.request) for held in taken])
            return
        for held in taken:
            run.live.add(held.key)
            run.joined += 1
            run.abandoned = False
            run.batch.add(held.key, held.request)

    def _run_alone(self) -> bool:
        """Start the next request of a batch that raised, by itself; whether there was one."""
        while self._alone:
            held = self._inbox.running(self._alone.popleft())
            if held is not None:
                self._start([(held.key, held.request.resumed(held.sent))], alone=True)
                return True
        return False

    def _start(self, requests: list[tuple[core.Key, Any]], alone: bool = False) -> None:
        now = self._busy_since = time.monotonic()
        self._run = Run(Batch(requests), {key for key, _ in requests}, len(requests), now, alone)
        self._thread.start(self._verb, self._run)

    def _on_steps(self, steps: list[Step]) -> None:
        """Results and ends from the model's thread."""
        sources: set[str] = set()
        self._progress += 1
        for step in steps:
            if step.ended:
                sources |= self._on_end(step.run, step.error)
            else:
                assert isinstance(step.key, core.Key)
                self._emit(step.run, step.key, step.result)
                sources.add(step.key.source)
        self._pump()
        self._flush(sources)

    def _emit(self, run: Run | None, key: core.Key, result: Result) -> None:
        for piece in pieces(result):
            numbered = self._inbox.result(key, piece)
            path = self._paths.get(key.source)
            if numbered is not None and path is not None:
                path.add(numbered)
        if run is not None and self._inbox.running(key) is None:
            run.live.discard(key)

    def _on_end(self, run: Run, error: Exception | None) -> set[str]:
        self._run = None
        now = time.monotonic()
        took_s = now - run.started_at
        self._run_s = took_s if self._run_s is None else self._run_s + 0.2 * (took_s - self._run_s)
        if self._busy_since is not None:
            self._busy_s += now - self._busy_since
            self._busy_since = None
        for key, _ in run.batch.take():
            if isinstance(key, core.Key):
                self._inbox.put_back(key)
                run.live.discard(key)
        self._failures = self._failures + 1 if error is not None else 0
        left = [key for key in run.live if isinstance(key, core.Key) and self._inbox.running(key) is not None]
        if error is not None:
            log.error("%s replica %s: the backend raised", self._stage, self._id, exc_info=error)
            if run.joined > 1:
                self._alone.extend(sorted(left))
                return set()
        for key in left:
            self._emit(None, key, self._failure(error))
        return {key.source for key in left}

    def _failure(self, error: Exception | None) -> Failed:
        what = f"{self._stage}: replica {self._id}"
        if error is None:
            return Failed(f"{what} ended without a last result for this request.")
        retry = not isinstance(error, ValueError | TypeError | LookupError | NotImplementedError)
        return Failed(f"{what} failed: {type(error).__name__}: {error}", retry)

    def _drop(self, keys: Sequence[core.Key]) -> None:
        """Stop running items that nobody wants any more."""
        for key in keys:
            if self._run is not None and key in self._run.live:
                self._run.live.discard(key)
                self._run.abandoned = not self._run.live
                self._run.batch.cancel(key)

    def _flush(self, sources: set[str]) -> None:
        for source in sources:
            path = self._paths.get(source)
            if path is not None:
                path.flush()

    def _end(self, source: str) -> None:
        """`source` is gone: its work ends."""
        path = self._paths.pop(source, None)
        if path is not None:
            path.stop()
        self._drop(self._inbox.end(source))
        self._pump()

    async def _sign_of_life(self) -> None:
        """While the model gets on, tell so to producers that wait and have heard nothing."""
        seen = self._progress
        while True:
            await asyncio.sleep(SIGN_OF_LIFE_S)
            if self._progress == seen:
                continue
            seen = self._progress
            for source in self._inbox.sources:
                path = self._paths.get(source)
                if path is not None and path.silent_s >= SIGN_OF_LIFE_S:
                    path.flush(sign_of_life=True)
