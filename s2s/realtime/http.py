"""The HTTP side of a server: health, models, metrics, client secrets, turns, the page, and OpenAI's stage endpoints."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from orchestration.session.config import RealtimeSession
from orchestration.session.errors import ClientError
from orchestration.session.settings import Settings, merge
from s2s.access import Access, AccessError, RateLimit, key_of
from s2s.realtime.endpoints import chat_completions, speech, transcriptions
from s2s.realtime.metrics import metrics_text
from s2s.realtime.replies import HttpError, invalid, json_body
from s2s.realtime.websocket import SocketLimits, new_event_id, realtime
from s2s.sessions import RequestFailed, Sessions

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass
class Server:
    """What the routes share."""

    sessions: Sessions
    access: Access
    figures: Callable[[], Mapping[str, Any]]
    """The queue figures by stage."""
    pools: Callable[[], Mapping[str, int]]
    """Replicas in the pool of each stage."""
    models: Mapping[str, str]
    """Names that `/v1/models` lists, each with its stage."""
    sample: bytes | None = None
    """A spoken question (wav) for the page of a machine without a microphone."""
    socket_limits: SocketLimits = field(default_factory=SocketLimits)
    requests: RateLimit = field(default_factory=lambda: RateLimit(50.0, 100.0))
    started_at: int = field(default_factory=lambda: int(time.time()))


def make_app(server: Server) -> Starlette:
    """The whole ASGI application."""

    def open_to_all(endpoint: Callable[[Server, Request], Awaitable[Response]]) -> Endpoint:
        return _answering(server, endpoint)

    def with_key(endpoint: Callable[[Server, Request], Awaitable[Response]]) -> Endpoint:
        async def checked(server: Server, request: Request) -> Response:
            try:
                server.access.check_origin(request.headers.get("origin"), request.headers.get("host"))
                server.access.check_api_key(key_of(request.headers))
            except AccessError as error:
                raise HttpError(401, "invalid_api_key", str(error)) from None
            if not server.requests.take():
                raise HttpError(429, "rate_limit_exceeded", "Too many requests a second; send fewer.")
            return await endpoint(server, request)

        return _answering(server, checked)

    async def socket(websocket: WebSocket) -> None:
        await realtime(websocket, server.sessions, server.access, server.socket_limits)

    return Starlette(
        routes=[
            Route("/", open_to_all(_page)),
            Route("/health", open_to_all(_health)),
            Route("/metrics", with_key(_metrics)),
            Route("/sample.wav", open_to_all(_sample)),
            Route("/v1/models", with_key(_models)),
            Route("/v1/models/{model:path}", with_key(_model)),
            Route("/v1/audio/transcriptions", with_key(_with_sessions(transcriptions)), methods=["POST"]),
            Route("/v1/audio/speech", with_key(_with_sessions(speech)), methods=["POST"]),
            Route("/v1/chat/completions", with_key(_with_sessions(chat_completions)), methods=["POST"]),
            Route("/v1/realtime/client_secrets", with_key(_client_secrets), methods=["POST"]),
            Route("/v1/sessions/{session}/turns", with_key(_turns)),
            WebSocketRoute("/v1/realtime", socket),
            Mount("/web", StaticFiles(packages=[("s2s", "web")]), name="web"),
        ]
    )


def _answering(server: Server, endpoint: Callable[[Server, Request], Awaitable[Response]]) -> Endpoint:
    """`endpoint` with every failure answered in OpenAI's form."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(server, request)
        except HttpError as error:
            return error.response()
        except RequestFailed as error:
            return HttpError(503, "stage_failed", str(error), "server_error").response()

    return answered


def _with_sessions(
    endpoint: Callable[[Sessions, Request], Awaitable[Response]],
) -> Callable[[Server, Request], Awaitable[Response]]:
    async def endpoint_of(server: Server, request: Request) -> Response:
        return await endpoint(server.sessions, request)

    return endpoint_of


async def _page(_: Server, __: Request) -> Response:
    page = resources.files("s2s").joinpath("web/index.html").read_text("utf-8")
    return Response(page, media_type="text/html", headers={"Cache-Control": "no-cache"})


async def _sample(server: Server, _: Request) -> Response:
    if server.sample is None:
        raise HttpError(404, "not_found", "This server has no sample question.")
    return Response(server.sample, media_type="audio/wav")


async def _health(server: Server, _: Request) -> Response:
    pools = server.pools()
    ready = all(pools.values()) and not server.sessions.draining
    status = "draining" if server.sessions.draining else "ready" if ready else "starting"
    return JSONResponse({"status": status, "stages": dict(pools)}, 200 if ready else 503)


async def _metrics(server: Server, _: Request) -> Response:
    text = metrics_text(server.sessions, server.figures(), server.pools())
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _model_object(server: Server, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": server.started_at,
        "owned_by": "s2s",
        "stage": server.models[name],
    }


async def _models(server: Server, _: Request) -> Response:
    return JSONResponse({"object": "list", "data": [_model_object(server, name) for name in server.models]})


async def _model(server: Server, request: Request) -> Response:
    name = request.path_params["model"]
    if name not in server.models:
        known = ", ".join(server.models)
        raise HttpError(404, "model_not_found", f"Model {name!r} is not served here. Served: {known}.")
    return JSONResponse(_model_object(server, name))


async def _turns(server: Server, request: Request) -> Response:
    driver = server.sessions.drivers.get(request.path_params["session"])
    if driver is None:
        raise HttpError(404, "session_not_found", f"No session {request.path_params['session']!r} is open.")
    timeline = driver.session.timeline
    return JSONResponse(
        {
            "object": "list",
            "data": [asdict(turn) for turn in timeline.turns],
            "speculation": {work: asdict(counted) for work, counted in timeline.speculation.items()},
        }
    )


async def _client_secrets(server: Server, request: Request) -> Response:
    body = await json_body(request)
    session = body.get("session") or {"type": "realtime"}
    expires = body.get("expires_after") or {}
    if not isinstance(session, dict):
        raise invalid("'session' is an object.", "session")
    if not isinstance(expires, dict) or expires.get("anchor", "created_at") != "created_at":
        raise invalid('\'expires_after\' is {"anchor": "created_at", "seconds": n}.', "expires_after")
    seconds = expires.get("seconds", 600)
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise invalid("'expires_after.seconds' is a whole number.", "expires_after.seconds")
    defaults = server.sessions.defaults
    settings = Settings(f"sess_{new_event_id()[6:]}", defaults)
    try:
        settings.update({"type": "realtime", **merge(defaults.session, session)}, audio_sent=False)
        secret = server.access.create_secret(session, seconds)
    except ClientError as error:
        raise HttpError(400, error.code, error.message, param=error.param) from None
    except ValueError as error:
        raise invalid(str(error), "expires_after.seconds") from None
    effective = msgspec.to_builtins(settings.session)
    kind = "realtime" if isinstance(settings.session, RealtimeSession) else "transcription"
    return JSONResponse(
        {"value": secret.value, "expires_at": secret.expires_at, "session": {**effective, "type": kind}}
    )
