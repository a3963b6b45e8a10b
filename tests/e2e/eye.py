"""A gateway that asks replicas what they see; in a module of its own, as Ray's workers can't import a test module."""

from __future__ import annotations

import asyncio

from actors.messages import Rank, SttRequest
from actors.queue.link import Replica, StageLink


class Eye:
    """A gateway that asks every replica what it sees."""

    def __init__(self) -> None:
        self._links: dict[str, StageLink] = {}
        self._pools: dict[str, tuple[int, list[Replica]]] = {}
        self._changed = asyncio.Event()

    async def pool(self, stage: str, version: int, replicas: list[Replica]) -> None:
        if version > self._pools.get(stage, (0, []))[0]:
            self._pools[stage] = (version, replicas)
            self._changed.set()

    async def results(self, stage: str, batch: bytes) -> None:
        self._links[stage].results(batch)

    async def see(self, name: str) -> str:
        """The device and CUDA_VISIBLE_DEVICES of replica `name`, once it serves."""
        import ray

        stage = name.partition("-")[0]
        while True:
            chosen = [replica for replica in self._pools.get(stage, (0, []))[1] if replica.id == name]
            if chosen:
                break
            self._changed.clear()
            await self._changed.wait()
        answer: asyncio.Queue[str] = asyncio.Queue()
        link = self._links[stage] = StageLink(
            stage,
            name,
            lambda session, work, result: answer.put_nowait(result.text),
            ray.get_runtime_context().current_actor,
            lambda replica, reason: None,
        )
        link.set_pool(1, chosen)
        link.submit("s", "g", 1, Rank.CONFIRMED, 0.0, SttRequest(b""))
        seen = await answer.get()
        link.close_all()
        return seen
