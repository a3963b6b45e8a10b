"""An error that the client made, or that befell its session."""

from __future__ import annotations

from typing import Literal

from orchestration.session.events import Error, ErrorDetail


class ClientError(Exception):
    """What the client asked cannot be done; it becomes an `error` event and the session goes on."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


def error_event(
    code: str,
    message: str,
    param: str | None = None,
    event_id: str | None = None,
    kind: Literal["invalid_request_error", "server_error"] = "invalid_request_error",
) -> Error:
    return Error(error=ErrorDetail(type=kind, code=code, message=message, param=param, event_id=event_id))
