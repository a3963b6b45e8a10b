"""The Ray actor that hosts one backend: inbox → batches → results.

A plain class: `ray.remote(Stage).options(max_restarts=0, max_concurrency=1000, ...)` makes it an actor.  The
backend runs in a thread of its own, so the event loop is always free to take work, cancel and answer.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import msgspec

from actors import registry
from actors.backend import Capabilities
from actors.batch import Batch
from actors.messages import Failed, Result
from actors.model_thread import ModelThread, Run, Step
from actors.queue.core import Figures, Inbox, Item, Key, Reference
from actors.queue.items import decode_controls, decode_delivery, decode_request, pieces
from actors.queue.returns import ReturnPath

log = logging.getLogger(__name__)

FETCH_TIMEOUT_S = 5.0
"""Longest wait for a request that came by reference."""
QUICK_S = 0.005
"""A model whose runs are shorter answers in the reply to the delivery: half the calls for VAD."""
HOLD_S = 0.010
"""Longest that a reply waits for results."""
SIGN_OF_LIFE_S = 1.0
"""How often producers whose work waits hear that the model gets on."""


class StageError(RuntimeError):
    """A replica that cannot start: the message names stage, backend and cause."""


class Loaded(msgspec.Struct, frozen=True):
    """A replica that is ready."""

    pid: int
    node: str
    device: str
    memory_mb: float
    """Of the device for cuda, of the process elsewhere."""
    load_s: float
    warmup_s: float
    capabilities: Capabilities


class StageFigures(msgspec.Struct, frozen=True):
    """A replica at a moment."""

    stage: str
    replica: str
    queue: Figures
    busy: float
    """Share of the time since the last call that the model worked, 0..1."""
    failures: int
    """Runs that raised since the last one that did not."""
    memory_mb: float


class Stage:
    """One replica of a stage."""

    def __init__(
        self,
        stage: str,
        backend: str,
        options: Mapping[str, Any],
        device: str,
        dtype: str,
        threads: int,
        replica_id: str,
    ) -> None:
        self._stage = stage
        self._backend_name = backend
        self._options = dict(options)
        self._device = device
        self._dtype = dtype
        self._threads = threads
        self._id = replica_id
        self._backend: Any = None
        self._verb: Any = None
        self._thread: ModelThread | None = None
        self._inbox = Inbox(1)
        self._paths: dict[str, ReturnPath] = {}
        self._run: Run | None = None
        self._alone: deque[Key] = deque()
        self._continuous = False
        self._failures = 0
        self._run_s: float | None = None
        self._busy_s = 0.0
        self._busy_since: float | None = None
        self._figures_at = time.monotonic()
        self._progress = 0
        self._beat: asyncio.Task[None] | None = None

    async def load(self) -> Loaded:
        """Make the backend, load and warm it up, in the model's thread; raises `StageError`."""
        thread = ModelThread(f"{self._stage}-model", asyncio.get_running_loop(), self._on_steps)
        try:
            entry = registry.find(self._stage, self._backend_name)
            load_s, warmup_s = await thread.call(lambda: self._load(entry))
        except Exception as error:
            thread.stop()
            raise StageError(
                f"{self._stage}: backend {self._backend_name!r} could not be loaded on {self._device}: "
                f"{type(error).__name__}: {error}"
            ) from error
        capabilities: Capabilities = self._backend.capabilities
        self._verb = getattr(self._backend, registry.VERBS[self._stage])
        self._continuous = capabilities.continuous
        self._inbox = Inbox(capabilities.max_batch, capabilities.continuous)
        self._thread = thread
        gc.collect()
        gc.freeze()
        self._beat = asyncio.get_running_loop().create_task(self._sign_of_life())
        return Loaded(
            os.getpid(), _node(), self._device, _memory_mb(self._device), load_s, warmup_s, capabilities
        )

    async def watch(self) -> None:
        """Never returns: the failure of this call says that the process has died."""
        await asyncio.get_running_loop().create_future()

    async def deliver(self, batch: bytes, source: str, sink: Any, references: Sequence[Any] = ()) -> bytes:
        """Take an encoded `Delivery` of `source`, whose results go to `sink.results(stage, batch)`.

        Returns encoded `Returns`.  `references` hold the requests that were too large for the batch.
        """
        delivery = decode_delivery(batch)
        if self._thread is None:
            raise StageError(f"{self._stage} replica {self._id} was given work before it was loaded")
        items: list[Item] = delivery.items
        missed: list[int] = []
        if references:
            items, missed = await self._fetch(delivery.items, references)
        path = self._paths.get(source)
        if path is None:
            path = self._paths[source] = ReturnPath(
                self._stage, self._id, source, self._inbox, sink, self._end
            )
        self._drop(self._inbox.receive(source, delivery.number, items, time.monotonic(), len(missed)))
        self._pump()
        if self._run is not None and self._run_s is not None and self._run_s < QUICK_S:
            await path.hold(HOLD_S)
        return path.answer(missed)

    async def control(self, source: str, batch: bytes) -> None:
        """Cancel, promote or close what encoded `Control`s of `source` name, queued or running.

        Many in one call: a storm of cancels as calls of their own would take longer than the 50 ms in which
        compute has to stop.
        """
        now = time.monotonic()
        for control in decode_controls(batch):
            verb, session, generation, due_in_s, number, item = msgspec.structs.astuple(control)
            match verb:
                case "cancel":
                    self._drop(self._inbox.cancel(source, session, generation, number))
                case "promote":
                    self._inbox.promote(source, session, generation, due_in_s, number, now)
                case "close":
                    self._drop(self._inbox.close(source, session, number))
                case "recall":
                    self._inbox.recall(source, item)
        self._pump()
        self._flush({source})

    async def drain(self) -> None:
        """Return when all work here is done and its results have been taken."""
        while not (self._inbox.idle and all(path.idle for path in self._paths.values())):  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def figures(self) -> StageFigures:
        now = time.monotonic()
        busy_s = self._busy_s + (now - self._busy_since if self._busy_since is not None else 0.0)
        share = min(1.0, busy_s / max(1e-6, now - self._figures_at))
        self._busy_s, self._figures_at = 0.0, now
        if self._busy_since is not None:
            self._busy_since = now
        return StageFigures(
            self._stage,
            self._id,
            self._inbox.figures(now),
            share,
            self._failures,
            _memory_mb(self._device),
        )

    async def stop(self) -> None:
        """Drop all work and end the model's thread."""
        for source in list(self._paths):
            self._end(source)
        if self._beat is not None:
            self._beat.cancel()
        if self._thread is not None:
            self._thread.stop()

    def _load(self, entry: registry.Entry) -> tuple[float, float]:
        started = time.monotonic()
        self._backend = entry.backend_class()(build_options(entry, self._options))
        self._backend.load(self._device, self._dtype, self._threads)
        loaded = time.monotonic()
        self._backend.warmup()
        return loaded - started, time.monotonic() - loaded

    async def _fetch(self, items: Sequence[Item], references: Sequence[Any]) -> tuple[list[Item], list[int]]:
        """Items with their requests in place of references, and the ids of those that could not be had."""

        async def fetch(item: Item) -> Item | int:
            if not isinstance(item.payload, Reference):
                return item
            try:
                future = asyncio.wrap_future(references[item.payload.position].future())
                encoded = await asyncio.wait_for(future, FETCH_TIMEOUT_S)
            except Exception as error:
                log.warning(
                    "%s replica %s: item %d was not fetched: %s", self._stage, self._id, item.id, error
                )
                return item.id
            return msgspec.structs.replace(item, payload=decode_request(encoded))

        fetched = await asyncio.gather(*(fetch(item) for item in items))
        return (
            [item for item in fetched if not isinstance(item, int)],
            [item for item in fetched if isinstance(item, int)],
        )

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

    def _start(self, requests: list[tuple[Key, Any]], alone: bool = False) -> None:
        assert self._thread is not None
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
                assert isinstance(step.key, Key)
                self._emit(step.run, step.key, step.result)
                sources.add(step.key.source)
        self._pump()
        self._flush(sources)

    def _emit(self, run: Run | None, key: Key, result: Result) -> None:
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
            if isinstance(key, Key):
                self._inbox.put_back(key)
                run.live.discard(key)
        self._failures = self._failures + 1 if error is not None else 0
        left = [key for key in run.live if isinstance(key, Key) and self._inbox.running(key) is not None]
        if error is not None:
            log.error("%s replica %s: the backend raised", self._stage, self._id, exc_info=error)
            if run.joined > 1:
                self._alone.extend(sorted(left))
                return set()
        for key in left:
            self._emit(None, key, self._failure(error))
        return {key.source for key in left}

    def _failure(self, error: Exception | None) -> Failed:
        what = f"{self._stage}: backend {self._backend_name!r} on replica {self._id}"
        if error is None:
            return Failed(f"{what} ended without a last result for this request.")
        retry = not isinstance(error, ValueError | TypeError | LookupError | NotImplementedError)
        return Failed(f"{what} failed: {type(error).__name__}: {error}", retry)

    def _drop(self, keys: Sequence[Key]) -> None:
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


def build_options(entry: registry.Entry, options: Mapping[str, Any]) -> Any:
    """The backend's options dataclass from plain values; raises `ValueError` for names that it has not."""
    cls = entry.options_class()
    known = [field.name for field in fields(cls)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"option {', '.join(unknown)} of {entry.stage} backend {entry.name!r} is not known. "
            f"Known: {', '.join(sorted(known))}."
        )
    return msgspec.convert(dict(options), cls)


def _node() -> str:
    """The Ray node's id; outside Ray the host's name."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return str(ray.get_runtime_context().get_node_id())
    return platform.node()


def _memory_mb(device: str) -> float:
    torch = sys.modules.get("torch")
    if torch is not None and device.startswith("cuda") and torch.cuda.is_initialized():
        devices = range(torch.cuda.device_count())
        return sum(float(torch.cuda.memory_reserved(index)) for index in devices) / 2**20
    import psutil

    return float(psutil.Process().memory_info().rss) / 2**20
