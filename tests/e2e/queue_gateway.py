"""A gateway that only drives one stage, for tests of the queue over Ray."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from actors.messages import Rank, Request, Result, is_final
from actors.queue.core import Figures, QueueOptions
from actors.queue.link import Replica, StageLink

sys.path.insert(0, str(Path(__file__).parents[1] / "actors"))


class QueueGateway:
    def __init__(self, stage: str, replicas: list[Replica], options: QueueOptions | None = None) -> None:
        self._stage = stage
        self._replicas = replicas
        self._options = options
        self._got: dict[tuple[str, int], list[Result]] = {}
        self._done: dict[tuple[str, int], asyncio.Future[list[Result]]] = {}
        self.dead: list[tuple[str, float]] = []

    async def start(self, me: Any) -> None:
        self._link = StageLink(self._stage, "gateway", self._deliver, me, self._report_dead, self._options)
        self._link.set_pool(1, self._replicas)

    async def set_pool(self, version: int, replicas: list[Replica]) -> None:
        self._link.set_pool(version, replicas)

    async def results(self, stage: str, batch: bytes) -> None:
        self._link.results(batch)

    async def ask(self, session: str, work: int, request: Request, generation: str = "g") -> list[Result]:
        """All results of `request`."""
        self._done[session, work] = asyncio.get_running_loop().create_future()
        self._got[session, work] = []
        self._link.submit(session, generation, work, Rank.CONFIRMED, 0.0, request)
        return await self._done[session, work]

    async def cancel(self, session: str, generation: str) -> None:
        self._link.cancel(session, generation)

    async def got(self, session: str, work: int) -> list[Result]:
        return self._got.get((session, work), [])

    async def lost(self) -> list[tuple[str, float]]:
        return self.dead

    async def figures(self) -> Figures:
        return self._link.figures()

    async def stop(self) -> None:
        self._link.stop()

    def _deliver(self, session: str, work: int, result: Result) -> None:
        self._got[session, work].append(result)
        if is_final(result):
            self._done.pop((session, work)).set_result(self._got[session, work])

    def _report_dead(self, replica: str, reason: str) -> None:
        self.dead.append((replica, time.monotonic()))
