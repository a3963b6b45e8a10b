"""The way back: a replica's results to one producer, many in a call and one call at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from actors.queue.consumer import Inbox
from actors.queue.items import MAX_BATCH_BYTES, ItemResult, Returns, encode_returns, size_bytes
from actors.queue.pace import Pace

log = logging.getLogger(__name__)

TRIES = 3
"""Calls made before a producer that cannot be reached for the moment counts as gone."""


class ReturnPath:
    """Results and credit for one producer."""

    def __init__(
        self,
        stage: str,
        replica: str,
        source: str,
        inbox: Inbox,
        sink: Any,
        on_gone: Callable[[str], None],
    ) -> None:
        self._stage = stage
        self._replica = replica
        self._source = source
        self._inbox = inbox
        self._sink = sink
        self._on_gone = on_gone
        self._results: deque[ItemResult] = deque()
        self._told = 0
        self._sent_at = float("-inf")
        self._pace = Pace()
        self._task: asyncio.Task[None] | None = None
        self._reply: asyncio.Future[None] | None = None

    def add(self, result: ItemResult) -> None:
        self._results.append(result)

    def flush(self, sign_of_life: bool = False) -> None:
        """Send what there is: results, credit that the producer does not know of, or a mere sign of life."""
        if self._reply is not None:
            if self._results:
                self._release()
            return
        if self._task is not None:
            return
        if self._results or sign_of_life or self._inbox.owes(self._source, self._told):
            self._task = asyncio.get_running_loop().create_task(self._send(sign_of_life))

    async def hold(self, longest_s: float) -> None:
        """Wait until there are results to go with the answer to a delivery, `longest_s` at most."""
        if self._task is not None or self._results or self._reply is not None:
            return
        loop = asyncio.get_running_loop()
        self._reply = loop.create_future()
        timer = loop.call_later(longest_s, self._release)
        try:
            await self._reply
        finally:
            self._reply = None
            timer.cancel()

    def answer(self, missed: list[int]) -> bytes:
        """The answer to a delivery."""
        answer = self._collect(missed, with_results=self._task is None)
        self.flush()
        return answer

    @property
    def idle(self) -> bool:
        return self._task is None and self._reply is None and not self._results

    @property
    def silent_s(self) -> float:
        """Time since the last call."""
        return time.monotonic() - self._sent_at

    def stop(self) -> None:
        self._release()
        if self._task is not None:
            self._task.cancel()

    def _release(self) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(None)

    def _collect(self, missed: list[int], with_results: bool) -> bytes:
        batch: list[ItemResult] = []
        room = MAX_BATCH_BYTES - 1_000
        while with_results and self._results:
            room -= size_bytes(self._results[0].result)
            if batch and room < 0:
                break
            batch.append(self._results.popleft())
        self._told = self._inbox.limit(self._source)
        self._sent_at = time.monotonic()
        self._pace.sent(len(batch), self._sent_at)
        replaced, recalled = self._inbox.gone(self._source)
        return encode_returns(Returns(self._replica, self._told, batch, replaced, recalled, missed))

    async def _send(self, sign_of_life: bool) -> None:
        try:
            while self._results or sign_of_life or self._inbox.owes(self._source, self._told):
                sign_of_life = False
                wait_s = self._sent_at + self._pace.tick_s(time.monotonic()) - time.monotonic()
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                if not await self._deliver(self._collect([], with_results=True)):
                    return
        finally:
            self._task = None

    async def _deliver(self, batch: bytes) -> bool:
        """Whether the producer has `batch`."""
        for attempt in range(TRIES):
            started = time.monotonic()
            try:
                await asyncio.wrap_future(self._sink.results.remote(self._stage, batch).future())
            except Exception as error:
                if type(error).__name__ == "ActorUnavailableError" and attempt + 1 < TRIES:
                    await asyncio.sleep(0.1 * (attempt + 1))
                    continue
                log.warning(
                    "%s replica %s: producer %s takes no results, its work ends here: %s",
                    self._stage,
                    self._replica,
                    self._source,
                    error,
                )
                self._on_gone(self._source)
                return False
            self._pace.answered(time.monotonic() - started)
            return True
        return False
