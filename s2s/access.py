"""Who may use the server: API keys, ephemeral client secrets, and browsers' origins."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""A browser cannot set headers on a WebSocket: it sends its key as a subprotocol with this prefix."""
MIN_SECRET_S, MAX_SECRET_S = 10, 7200
DEFAULT_SECRET_S = 600
MAX_SECRETS = 10_000


class AccessError(Exception):
    """The request is refused; the message says what to send."""


def is_loopback(host: str) -> bool:
    """Whether listening on `host` can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class ClientSecret:
    """An ephemeral key for a browser, and the session that it opens."""

    value: str
    expires_at: int
    session: Mapping[str, Any]


@dataclass
class Access:
    """The rules of one server."""

    keys: Sequence[str] = ()
    """Accepted API keys; none: everybody on this machine may."""
    origins: Sequence[str] = ()
    """Origins that browsers may come from besides the server's own; `*`: any."""
    now: Callable[[], float] = time.time
    _secrets: dict[str, ClientSecret] = field(default_factory=dict)

    def check_origin(self, origin: str | None, host: str | None) -> None:
        """Raise `AccessError` for a browser that comes from elsewhere; programs send no origin."""
        if origin is None or "*" in self.origins or origin in self.origins:
            return
        if urlsplit(origin).netloc == host:
            return
        raise AccessError(
            f"Origin {origin} is not allowed here; start the server with --allow_origin {origin}."
        )

    def check_key(self, key: str | None) -> ClientSecret | None:
        """The client secret if `key` is one, else None; raises `AccessError` if the key is not good."""
        secret = self._secret(key) if key is not None else None
        if secret is not None:
            return secret
        if not self.keys:
            return None
        if key is None:
            raise AccessError("An API key is needed: send 'Authorization: Bearer <key>'.")
        good = [hmac.compare_digest(key.encode(), known.encode()) for known in self.keys]
        if not any(good):
            raise AccessError("The API key is not valid.")
        return None

    def check_api_key(self, key: str | None) -> None:
        """As `check_key`, but an ephemeral secret is not enough (it opens sessions, nothing else)."""
        if self.check_key(key) is not None:
            raise AccessError("An ephemeral client secret opens a session only; send an API key.")

    def create_secret(self, session: Mapping[str, Any], seconds: int = DEFAULT_SECRET_S) -> ClientSecret:
        """A new client secret that is good for `seconds` and opens `session`."""
        if not MIN_SECRET_S <= seconds <= MAX_SECRET_S:
            raise ValueError(
                f"expires_after.seconds is {seconds}; it can be {MIN_SECRET_S} to {MAX_SECRET_S}."
            )
        self._forget_expired()
        if len(self._secrets) >= MAX_SECRETS:
            raise ValueError(f"{MAX_SECRETS} client secrets are in use; wait until some have expired.")
        secret = ClientSecret(f"ek_{secrets.token_hex(24)}", int(self.now()) + seconds, dict(session))
        self._secrets[secret.value] = secret
        return secret

    def _secret(self, key: str) -> ClientSecret | None:
        found = None
        for value, secret in self._secrets.items():
            if hmac.compare_digest(value.encode(), key.encode()) and secret.expires_at > self.now():
                found = secret
        return found

    def _forget_expired(self) -> None:
        now = self.now()
        self._secrets = {value: each for value, each in self._secrets.items() if each.expires_at > now}


def key_of(headers: Mapping[str, str]) -> str | None:
    """The key that a request carries, in its header or in a WebSocket subprotocol."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key:
        return key.strip()
    if headers.get("api-key"):
        return headers["api-key"]
    for protocol in subprotocols(headers):
        if protocol.startswith(KEY_SUBPROTOCOL):
            return protocol.removeprefix(KEY_SUBPROTOCOL)
    return None


def subprotocols(headers: Mapping[str, str]) -> list[str]:
    return [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",") if each.strip()]


@dataclass
class RateLimit:
    """A token bucket: `per_second` on average, `burst` at once."""

    per_second: float
    burst: float
    now: Callable[[], float] = time.monotonic
    _tokens: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._tokens, self._at = self.burst, self.now()

    def take(self) -> bool:
        """Whether one more is allowed now."""
        now = self.now()
        self._tokens = min(self.burst, self._tokens + (now - self._at) * self.per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
