"""OpenAI Realtime over WebSocket: one connection is one session."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from orchestration.session import events
from orchestration.session.config import SessionDefaults
from orchestration.session.effects import Close
from orchestration.session.settings import merge
from s2s.access import Access, AccessError, ClientSecret, RateLimit, key_of, subprotocols
from s2s.realtime.codec import Codec
from s2s.realtime.events import EventError
from s2s.session_driver import SessionDriver
from s2s.sessions import AtCapacity, Draining, Sessions

log = logging.getLogger(__name__)

POLICY_VIOLATION, TRY_AGAIN_LATER, GOING_AWAY, NORMAL = 1008, 1013, 1001, 1000
LARGE_EVENT_BYTES = 256 * 1024
"""A larger event is decoded in a thread, so that nobody else waits for it."""
_CLOSE_CODES = {"drained": GOING_AWAY, "error": 1011}


@dataclass(frozen=True)
class SocketLimits:
    """What one connection may do."""

    events_per_second: float = 100.0
    """Client events other than audio, on average; the burst is twice that."""
    unsent_bytes: int = 32 * 1024 * 1024
    """What may wait for a client that reads slowly; beyond it the connection is closed."""


class Connection:
    """One client: its socket, its codec, its session."""

    def __init__(self, socket: WebSocket, sessions: Sessions, limits: SocketLimits) -> None:
        self._socket = socket
        self._sessions = sessions
        self._limits = limits
        self._codec = Codec()
        self._rate = RateLimit(limits.events_per_second, 2 * limits.events_per_second)
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._changed = asyncio.Event()
        self._close: tuple[int, str] | None = None

    async def serve(self, defaults: SessionDefaults) -> None:
        """Run the session until either side ends it; everything of it is freed on return."""
        try:
            driver = self._sessions.open(self._send, self._closed, defaults)
        except AtCapacity as error:
            await self._refuse("session_limit_reached", str(error), TRY_AGAIN_LATER)
            return
        except Draining as error:
            await self._refuse("server_shutting_down", str(error), GOING_AWAY)
            return
        try:
            async with anyio.create_task_group() as both:
                for side in (self._write, partial(self._read, driver)):
                    both.start_soon(self._until_over, side, both.cancel_scope)
                driver.start()
        finally:
            self._sessions.close(driver)

    async def _until_over(self, side: Callable[[], Awaitable[None]], both: anyio.CancelScope) -> None:
        """One direction; when it ends, so does the other."""
        await side()
        both.cancel()

    async def _read(self, driver: SessionDriver) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            data: str | bytes = message.get("text") or message.get("bytes") or ""
            try:
                received = (
                    await asyncio.to_thread(self._codec.inbound, data)
                    if len(data) > LARGE_EVENT_BYTES
                    else self._codec.inbound(data)
                )
                self._check_rate(received[-1])
            except EventError as error:
                self._send(events.Error(event_id=new_event_id(), error=error.detail))
                continue
            for event in received:
                driver.receive(event)

    def _check_rate(self, event: events.ClientEvent) -> None:
        if not isinstance(event, events.InputAudioBufferAppend) and not self._rate.take():
            message = (
                f"More than {self._limits.events_per_second:.0f} events a second (audio not counted); "
                "this one was left out. Send fewer."
            )
            raise EventError("rate_limit_exceeded", message, event_id=event.event_id)

    def _send(self, event: events.ServerEvent) -> None:
        for message in self._codec.outbound(event):
            self._unsent.append(message)
            self._unsent_bytes += len(message)
        if self._unsent_bytes > self._limits.unsent_bytes and self._close is None:
            self._unsent.clear()
            self._close = (
                POLICY_VIOLATION,
                f"Too slow: over {self._limits.unsent_bytes >> 20} MiB wait to be read.",
            )
        self._changed.set()

    def _closed(self, close: Close) -> None:
        self._close = (_CLOSE_CODES.get(close.reason, NORMAL), f"session ended: {close.reason}")
        self._changed.set()

    async def _write(self) -> None:
        while True:
            while self._unsent:
                message = self._unsent.popleft()
                self._unsent_bytes -= len(message)
                try:
                    await self._socket.send_text(message.decode())
                except (WebSocketDisconnect, RuntimeError):
                    return  # the client is gone
            if self._close is not None:
                await self._end(*self._close)
                return
            self._changed.clear()
            if not self._unsent and self._close is None:
                await self._changed.wait()

    async def _end(self, code: int, reason: str) -> None:
        if self._socket.client_state is WebSocketState.CONNECTED:
            try:
                await self._socket.close(code, reason[:120])
            except (WebSocketDisconnect, RuntimeError) as error:
                log.debug("the client was gone before the close: %s", error)

    async def _refuse(self, code: str, message: str, close_code: int) -> None:
        detail = events.ErrorDetail("server_error", code, message)
        self._send(events.Error(event_id=new_event_id(), error=detail))
        self._close = (close_code, message)
        await self._write()


def new_event_id() -> str:
    return f"event_{secrets.token_hex(10)}"


async def realtime(socket: WebSocket, sessions: Sessions, access: Access, limits: SocketLimits) -> None:
    """The endpoint `/v1/realtime`."""
    try:
        access.check_origin(socket.headers.get("origin"), socket.headers.get("host"))
        secret = access.check_key(key_of(socket.headers))
    except AccessError as error:
        await socket.accept(_chosen_subprotocol(socket))
        detail = events.ErrorDetail("invalid_request_error", "invalid_api_key", str(error))
        await socket.send_text(
            next(Codec().outbound(events.Error(event_id=new_event_id(), error=detail))).decode()
        )
        await socket.close(POLICY_VIOLATION, str(error)[:120])
        return
    await socket.accept(_chosen_subprotocol(socket))
    await Connection(socket, sessions, limits).serve(_defaults(socket, sessions.defaults, secret))


def _chosen_subprotocol(socket: WebSocket) -> str | None:
    return "realtime" if "realtime" in subprotocols(socket.headers) else None


def _defaults(socket: WebSocket, defaults: SessionDefaults, secret: ClientSecret | None) -> SessionDefaults:
    """What the session starts with: the server's defaults, then the client secret's session, then the URL."""
    session = merge(defaults.session, secret.session if secret is not None else {})
    if socket.query_params.get("intent") == "transcription":
        session = {**session, "type": "transcription"}
    model = socket.query_params.get("model")
    if model and session.get("type", "realtime") == "realtime":
        session = {**session, "type": "realtime", "model": model}
    return replace(defaults, session=session)
