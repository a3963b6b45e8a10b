"""A connection to any Realtime server, and in words why there is none."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import websockets
from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI

OPEN_TIMEOUT_S = 10.0
DEFAULT_URL = "ws://127.0.0.1:8765/v1/realtime"
FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 15.0
MOST_ATTEMPTS = 12
"""To connect again, in a row: some two minutes."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""No proxy leads there."""
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_KEY = "Give the key by --api-key, S2S_API_KEY or OPENAI_API_KEY."

Json = dict[str, Any]


class UrlError(ValueError):
    """No address of a Realtime server."""


class NoConnection(RuntimeError):
    """Why there is no session; `code` is the program's exit code, `again` whether trying again may help."""

    def __init__(self, message: str, code: int = 1, again: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.again = again


def address(url: str, model: str) -> str:
    """`url` as a WebSocket address with its path and model; a bare host and port will do.  Raises `UrlError`."""
    try:
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        valid = parts.scheme in _SCHEMES and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise UrlError(f"--url {url} is no address; it looks like {DEFAULT_URL}.")
    path = parts.path if parts.path.strip("/") else "/v1/realtime"
    query = {"model": model, **dict(parse_qsl(parts.query))}
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, urlencode(query), ""))


def delay_s(attempt: int, chance: float) -> float:
    """How long to wait before attempt 0, 1, 2, …; `chance` (0..1) keeps many clients from coming at once."""
    return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2**attempt) * (0.75 + chance / 2))


@asynccontextmanager
async def session(url: str, api_key: str | None) -> AsyncIterator[tuple[websockets.ClientConnection, Json]]:
    """An open session and its `session.created`; raises `NoConnection` where there is none."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    socket = await _open(url, headers)
    try:
        yield socket, await _created(url, socket)
    finally:
        await socket.close()


async def _open(url: str, headers: Mapping[str, str]) -> websockets.ClientConnection:
    place = url.partition("?")[0]
    try:
        return await websockets.connect(
            url,
            additional_headers=headers,
            max_size=None,
            compression=None,
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=2,
            proxy=None if urlsplit(url).hostname in LOOPBACK else True,
        )
    except InvalidStatus as error:
        raise _refused(place, error.response.status_code) from None
    except TimeoutError:
        raise NoConnection(f"No answer from {place} within {OPEN_TIMEOUT_S:.0f} s.") from None
    except ssl.SSLError as error:
        raise NoConnection(f"No secure connection to {place}: {error}.", again=False) from None
    except OSError as error:
        refused = isinstance(error, ConnectionRefusedError)
        reason = "connection refused" if refused else error.strerror or str(error)
        raise NoConnection(
            f"No server can be reached at {place} ({reason}). "
            "Start one with `python -m s2s.run serve`, or say where it is with --url."
        ) from None
    except (InvalidProxy, ImportError) as error:  # SOCKS needs a package of its own
        raise NoConnection(
            f"The proxy that the environment names cannot be used ({error}). Unset it, or put the host into no_proxy."
        ) from None
    except (InvalidHandshake, InvalidURI, EOFError) as error:
        raise NoConnection(f"There is no WebSocket server at {place} ({error}).") from None


def _refused(place: str, status: int) -> NoConnection:
    if status in (401, 403):
        return NoConnection(
            f"The server at {place} refuses the key (HTTP {status}). {_KEY}", code=2, again=False
        )
    if status in (429, 503):
        return NoConnection(f"The server at {place} is full (HTTP {status}). Try again later.")
    if status >= 500:
        return NoConnection(f"The server at {place} is out of order (HTTP {status}). Try again later.")
    return NoConnection(
        f"There is no Realtime endpoint at {place} (HTTP {status}). Is the path right?", code=2, again=False
    )


async def _created(url: str, socket: websockets.ClientConnection) -> Json:
    place = url.partition("?")[0]
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            event: Json = json.loads(await socket.recv())
    except (TimeoutError, ValueError, websockets.ConnectionClosed) as error:
        raise NoConnection(
            f"{place} does not speak Realtime: no session within {OPEN_TIMEOUT_S:.0f} s ({type(error).__name__})."
        ) from None
    if event.get("type") == "session.created":
        return event
    refusal = event.get("error") or {}
    message = refusal.get("message") or event.get("type")
    match refusal.get("code"):
        case "invalid_api_key":
            raise NoConnection(
                f"The server at {place} refuses the key: {message} {_KEY}", code=2, again=False
            )
        case "session_limit_reached":
            raise NoConnection(f"The server at {place} is full: {message}")
        case _:
            raise NoConnection(f"The server at {place} opens no session: {message}")
