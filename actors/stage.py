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
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import msgspec

from actors import registry
from actors.backend import Capabilities
from actors.host import Host
from actors.model_thread import MODEL_NICE, ModelThread
from actors.queue.core import Figures, Item, Reference
from actors.queue.items import decode_controls, decode_delivery, decode_request

log = logging.getLogger(__name__)

NICE = {"vad": 0, "stt": 0, "llm": MODEL_NICE + 5}
"""Where stages share cores: what a person says comes first, then whether they have finished, which is not decided at
once, and what they hear; the LLM writes ahead of that."""
FETCH_TIMEOUT_S = 5.0
"""Longest wait for a request that came by reference."""


class StageError(RuntimeError):
    """A replica that cannot start: the message names stage, backend and cause."""


class Loaded(msgspec.Struct, frozen=True):
    """A replica that is ready."""

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
    busy_s: float
    """How long the model has worked since it was loaded."""
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
        self._thread: ModelThread | None = None
        self._host: Host | None = None

    async def process(self) -> tuple[str, int]:
        """The node and the pid that this replica has, loaded or not."""
        return _node(), os.getpid()

    async def load(self) -> Loaded:
        """Make the backend, load and warm it up, in the model's thread; raises `StageError`."""
        loop, nice = asyncio.get_running_loop(), NICE.get(self._stage, MODEL_NICE)
        thread = self._thread = ModelThread(f"{self._stage}-model", loop, nice)
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
        verb = getattr(self._backend, registry.VERBS[self._stage])
        self._host = Host(self._stage, self._id, verb, capabilities, thread)
        gc.collect()
        gc.freeze()
        return Loaded(self._device, _memory_mb(self._device), load_s, warmup_s, capabilities)

    async def watch(self) -> None:
        """Never returns: the failure of this call says that the process has died."""
        await asyncio.get_running_loop().create_future()

    async def deliver(self, batch: bytes, source: str, sink: Any, references: Sequence[Any] = ()) -> bytes:
        """Take an encoded `Delivery` of `source`, whose results go to `sink.results(stage, batch)`.

        Returns encoded `Returns`.  `references` hold the requests that were too large for the batch.
        """
        host = self._loaded()
        delivery = decode_delivery(batch)
        items: list[Item] = delivery.items
        missed: list[int] = []
        if references:
            items, missed = await self._fetch(delivery.items, references)
        return await host.deliver(source, sink, delivery.number, items, missed)

    async def control(self, source: str, batch: bytes) -> None:
        """Cancel, promote or close what encoded `Control`s of `source` name, queued or running.

        Many in one call: a storm of cancels as calls of their own would take longer than the 50 ms in which
        compute has to stop.
        """
        self._loaded().control(source, decode_controls(batch))

    async def drain(self) -> None:
        """Return when all work here is done and its results have been taken."""
        while not self._loaded().idle:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def figures(self) -> StageFigures:
        queue, busy_s, failures = self._loaded().figures()
        return StageFigures(self._stage, self._id, queue, busy_s, failures, _memory_mb(self._device))

    async def stop(self) -> None:
        """Drop all work and end the model's thread."""
        if self._host is not None:
            self._host.stop()
        if self._thread is not None:
            self._thread.stop()

    def _loaded(self) -> Host:
        if self._host is None:
            raise StageError(f"{self._stage}: replica {self._id} was given work before it was loaded.")
        return self._host

    def _load(self, entry: registry.Entry) -> tuple[float, float]:
        started = time.monotonic()
        self._backend = entry.backend_class()(build_options(entry, self._options))
        try:
            self._backend.load(self._device, self._dtype, self._threads)
        except ImportError as error:
            raise entry.missing(error) from error
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
