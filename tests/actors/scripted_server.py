"""An HTTP server in a thread that answers each request by the next step of its script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PATIENCE_S = 10.0
BREAK_OFF = object()
"""In the script of a stream: the connection is dropped here."""
WAIT = object()
"""In the script of a stream: nothing more comes."""
SILENCE = object()
"""A step: the request is never answered."""


@dataclass
class Received:
    """A request."""

    path: str
    key: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Scripted:
    """What the server is to say, and what it was asked."""

    base_url: str = ""
    steps: deque[Any] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    """A client has closed its connection while its answer was not complete."""
    begun: threading.Event = field(default_factory=threading.Event)
    """A request has come."""
    most_at_once: int = 0
    _open: int = 0

    def says(self, *steps: Any) -> None:
        """Add steps: a `Response`, a function of the request that makes one, or `SILENCE`."""
        self.steps.extend(steps)

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.received.append(Received(request.url.path, key, body))
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        self.begun.set()
        step = self.steps.popleft()
        try:
            if step is SILENCE:
                await _gone(request)
                self.left.set()
                return Response()
            response: Response = step(self) if callable(step) and not isinstance(step, Response) else step
            return response
        finally:
            self._open -= 1


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@contextmanager
def scripted_server() -> Iterator[Scripted]:
    script = Scripted()
    app = Starlette(routes=[Route("/{path:path}", script.answer, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        started = threading.Event()
        while not server.started and thread.is_alive():
            started.wait(0.005)
        script.base_url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
        yield script
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the scripted server did not end"


def error(status: int, message: str = "scripted", **headers: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "x", "code": None}}, status, headers)


def streamed(pieces: Iterable[Any], kind: str = "text/event-stream") -> Callable[[Scripted], Response]:
    """A step: `pieces` one after the other, until `BREAK_OFF` or `WAIT`."""
    listed = list(pieces)

    def step(script: Scripted) -> Response:
        async def body() -> AsyncIterator[bytes]:
            try:
                for piece in listed:
                    if piece is BREAK_OFF:
                        raise ConnectionAbortedError("scripted")
                    if piece is WAIT:
                        await asyncio.Event().wait()
                    yield piece
            except asyncio.CancelledError:
                script.left.set()
                raise

        return StreamingResponse(body(), media_type=kind)

    return step


def sse(*events: Any) -> Callable[[Scripted], Response]:
    """A step: server-sent events, each a JSON object (named by its `type`, if it has one) or raw text."""
    return streamed(event if event in (BREAK_OFF, WAIT) else _event(event) for event in events)


def _event(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()
