"""A gateway that only remembers; in a module of its own, as Ray's workers can't import a test module."""

from __future__ import annotations

import asyncio
from typing import Any

from actors.queue.pace import Counts, Figures


class Gateway:
    """Keeps the pools that it was told, in their newest version."""

    def __init__(self) -> None:
        self.pools: dict[str, tuple[int, list[str]]] = {}
        self.changed = asyncio.Event()
        self.overdue_s = 0.0

    async def pool(self, stage: str, version: int, replicas: list[Any]) -> None:
        if version > self.pools.get(stage, (0, []))[0]:
            self.pools[stage] = (version, [replica.id for replica in replicas])
            self.changed.set()

    async def late(self, overdue_s: float) -> None:
        """Work for STT waits so long past its due time."""
        self.overdue_s = overdue_s

    async def figures(self) -> dict[str, Figures]:
        return {"stt": Counts().figures(1, 0, self.overdue_s, self.overdue_s)}

    async def without(self, stage: str, *names: str) -> list[str]:
        """The pool of `stage` once it is not empty and none of `names` is in it."""
        while not (pool := self.pools.get(stage, (0, []))[1]) or set(pool) & set(names):
            self.changed.clear()
            await self.changed.wait()
        return pool
