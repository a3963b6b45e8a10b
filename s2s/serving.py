"""The sockets of a gateway: uvicorn on the gateway's own event loop."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from s2s.realtime.events import MAX_EVENT_BYTES

START_TIMEOUT_S = 10.0


class ServeError(RuntimeError):
    """The server cannot listen; says where and why."""


@dataclass(frozen=True)
class ServeOptions:
    """Where a gateway listens, and who may come."""

    host: str = "127.0.0.1"
    port: int = 8765
    """0: any free port."""
    api_keys: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    sample: bytes | None = None
    """A spoken question (wav) for the page."""


class HttpServer:
    """An ASGI application on a socket."""

    def __init__(self, app: Starlette, options: ServeOptions) -> None:
        self._options = options
        self._socket = _listen(options.host, options.port)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                ws="websockets-sansio",
                ws_max_size=MAX_EVENT_BYTES,
                ws_per_message_deflate=False,
                lifespan="off",
                log_level="warning",
                access_log=False,
                ssl_certfile=options.tls_cert,
                ssl_keyfile=options.tls_key,
                timeout_graceful_shutdown=5,
            )
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where the page is."""
        scheme = "https" if self._options.tls_cert else "http"
        host, port = self._options.host, self._socket.getsockname()[1]
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def start(self) -> None:
        """Return when it listens; raises `ServeError`."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        async with asyncio.timeout(START_TIMEOUT_S):
            while not self._server.started:
                if self._task.done():
                    raise ServeError(f"The server on {self.address} ended at once: {self._task.exception()}.")
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Close every connection and the socket."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServeError(f"Cannot listen on {host}: {error}.") from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise ServeError(
            f"Cannot listen on {host} port {port}: {error.strerror}. Choose another with --port, or --port 0 for any."
        ) from None
    listening.setblocking(False)
    return listening
