"""A bare Realtime connection, for tests that no SDK would let send what they send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.request import urlopen

import websockets

PATIENCE_S = 60.0
TEXT_ITEM = {
    "type": "conversation.item.create",
    "item": {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Tell me a story."}],
    },
}


class Wire:
    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket

    async def send(self, *events: dict[str, Any]) -> None:
        for event in events:
            await self.socket.send(json.dumps(event))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            event: dict[str, Any] = json.loads(await self.socket.recv())
        return event

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """Every event up to the first of type `kind`."""
        events = [await self.receive()]
        while events[-1]["type"] != kind:
            events.append(await self.receive())
        return events


@asynccontextmanager
async def wire(server: str) -> AsyncIterator[Wire]:
    address = server.replace("http", "ws", 1) + "/v1/realtime?model=local"
    async with websockets.connect(address, max_size=None) as socket:
        opened = Wire(socket)
        assert (await opened.receive())["type"] == "session.created"
        yield opened


def gauge(server: str, name: str) -> float:
    """The sum of a metric over its labels."""
    with urlopen(f"{server}/metrics", timeout=PATIENCE_S) as reply:
        lines = reply.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)


async def until_idle(server: str) -> None:
    """Return when no session is open and no stage works for one; a leak never lets it."""
    async with asyncio.timeout(PATIENCE_S):
        while any([gauge(server, name) for name in ("s2s_sessions", "s2s_queue_working", "s2s_queue_depth")]):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
