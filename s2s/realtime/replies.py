"""HTTP answers in OpenAI's form."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

MAX_BODY_BYTES = 25 * 1024 * 1024
"""Largest request body, as at OpenAI."""


class HttpError(Exception):
    """What went wrong, as the client is told."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        kind: str = "invalid_request_error",
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": kind, "code": code, "param": param}

    def response(self) -> JSONResponse:
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else None
        return JSONResponse({"error": self.error}, self.status, headers)


def invalid(message: str, param: str | None = None) -> HttpError:
    return HttpError(400, "invalid_value", message, param=param)


async def json_body(request: Request) -> dict[str, Any]:
    """The body, a JSON object; raises `HttpError`."""
    data = await limited_body(request)
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise HttpError(400, "invalid_json", f"The body is not valid JSON: {error}.") from None
    if not isinstance(body, dict):
        raise invalid("The body is a JSON object.")
    return body


async def limited_body(request: Request) -> bytes:
    """The body if it is not over the limit; more is not even read."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise HttpError(413, "too_large", f"The body is over {MAX_BODY_BYTES >> 20} MiB.")
        pieces.append(piece)
    return b"".join(pieces)
