"""What backends share that run elsewhere and are asked over HTTP by OpenAI's client: servers, keys, retries.

A request goes to the first server of the list; where that fails, it is asked again after a growing delay, then the next
server.  Text or sound that has come stays: the next attempt goes on behind it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from actors.async_batch import answer_all
from actors.batch import Batch, Key
from actors.messages import Failed, is_final

OPENAI = "https://api.openai.com/v1"
KEEPALIVE_S = 120.0
"""How long an idle connection is kept: a new one costs two or three round trips in the first word of an answer."""
AVOID_S = 30.0
"""How long a server that failed is asked last."""
LONGEST_DELAY_S = 8.0
MARGIN_S = 5.0
"""By how much a replica that says in time that all its servers failed is waited for longer than that takes."""
RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
ERROR_CHARACTERS = 300


@dataclass(frozen=True)
class RemoteOptions:
    """Options of every backend that is asked over HTTP."""

    base_url: str | None = None
    """Address of the server, with its /v1; None: what OPENAI_BASE_URL says, else OpenAI's."""
    api_key: str | None = field(default=None, repr=False)
    """Bearer token; None: the first line of `api_key_file`, else OPENAI_API_KEY, else the word `none`."""
    api_key_file: str | None = None
    """File with a key a line: for `base_url`, then for each `fallback`.  A fallback without a line of its own gets the
    key of `base_url` only where it is on the same host."""
    fallback: tuple[str, ...] = ()
    """Servers to ask in this order where the first fails, each an address, or an address, a space and a model."""
    timeout: float = 30.0
    """Longest silence of the server, s, over all the times that it is asked; then the next one is asked."""
    connect_timeout: float = 5.0
    """Longest wait for a connection, s."""
    retries: int = 2
    """How often a server is asked again that is not reached, overloaded or breaks off."""
    retry_delay: float = 0.25
    """Delay before the first of these, s; it doubles each time.  A server's own Retry-After goes first."""
    max_concurrency: int = 16
    """Requests in flight at once, of one replica."""
    warmup_timeout_s: float = 30.0
    """How long the first request, at start, may be tried before the stage is said to have failed; 0: none is sent."""

    def __post_init__(self) -> None:
        if self.max_concurrency < 1 or self.retries < 0:
            raise ValueError("max_concurrency must be at least 1, retries at least 0.")
        if min(self.timeout, self.connect_timeout) <= 0 or self.retry_delay < 0:
            raise ValueError("timeout and connect_timeout must be above 0, retry_delay at least 0.")

    @property
    def patience_s(self) -> float:
        """How long a request may show no result while all is well with its replica: every server is silent in turn."""
        return (1 + len(self.fallback)) * (self.timeout + self.connect_timeout) + MARGIN_S


class BrokenOff(Exception):
    """The server's answer ended before it was complete."""


@dataclass(eq=False)
class Endpoint:
    """One server and the model asked of it."""

    client: Any
    """`openai.AsyncOpenAI`."""
    model: str | None
    key: str | None = field(repr=False)
    failed_at: float = -AVOID_S
    """Monotonic s."""

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own: others take fields that it refuses."""
        return str(self.client.base_url.host).endswith("openai.com")

    @property
    def name(self) -> str:
        """Host and port, for people."""
        return str(self.client.base_url.netloc.decode())


Ask = Callable[[Endpoint, list[Any]], AsyncGenerator[Any, None]]
"""Asks a server for what comes behind the results that have been delivered."""


class Remote:
    """The servers of one backend, and the event loop in which they are asked; all calls come from one thread."""

    def __init__(self, what: str, options: RemoteOptions, model: str | None) -> None:
        """`what` names stage and backend in errors.  Raises `ImportError` without the openai package, `ValueError`
        for a key file that cannot be read and a key that cannot be sent."""
        import openai

        self._what = what
        self._options = options
        self._openai: Any = openai
        self._http: Any = _http_library(openai)
        self.loop = asyncio.new_event_loop()
        self._hopeless = False
        """Whether the last failure was of a kind that does not pass."""
        self.endpoints = [self._endpoint(url, name, key) for url, name, key in _servers(options, model)]
        self.close = weakref.finalize(self, _close, self.loop, [each.client for each in self.endpoints])
        """Closes the connections; also done when this is garbage."""

    def _endpoint(self, base_url: str, model: str | None, key: str | None) -> Endpoint:
        limits = self._http.Limits(keepalive_expiry=KEEPALIVE_S)
        client = self._openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            max_retries=0,
            http_client=self._openai.DefaultAsyncHttpxClient(limits=limits),
        )
        return Endpoint(client, model, key)

    def answer_all(
        self, batch: Batch[Any], answer: Callable[[Any], AsyncGenerator[Any, None]]
    ) -> Iterator[tuple[Key, Any]]:
        """The verb: `answer(request)` of each request."""
        return answer_all(self.loop, batch, self._options.max_concurrency, answer)

    async def ask(self, ask: Ask) -> AsyncGenerator[Any, None]:
        """Yield what the first server that answers says; a `Failed` at the end where none does."""
        delivered: list[Any] = []
        problems: list[str] = []
        self._hopeless = True
        longest_s = self._options.timeout
        for endpoint in self._order():
            heard_at = time.monotonic()
            for attempt in range(self._options.retries + 1):
                left_s = longest_s - (time.monotonic() - heard_at)
                try:
                    async with aclosing(ask(self._within(left_s, endpoint), delivered)) as results:
                        async for result in results:
                            delivered.append(result)
                            yield result
                            if is_final(result):
                                return
                            heard_at = time.monotonic()
                    raise BrokenOff("the answer has no end")
                except (
                    self._openai.OpenAIError,
                    self._http.HTTPError,
                    json.JSONDecodeError,
                    BrokenOff,
                ) as error:
                    problem, again, delay_s = self._judged(error, attempt)
                    refused = isinstance(error, self._openai.APIStatusError) and not again
                    self._hopeless = self._hopeless and refused
                if not again or attempt == self._options.retries or delay_s > LONGEST_DELAY_S:
                    break
                if time.monotonic() + delay_s - heard_at >= longest_s:
                    break
                await asyncio.sleep(delay_s)
            endpoint.failed_at = time.monotonic()
            tries = f" (asked {attempt + 1} times)" if attempt else ""
            problems.append(f"{endpoint.name}: {_without(problem, self.endpoints)[:ERROR_CHARACTERS]}{tries}")
        yield Failed(f"{self._what}: {'; '.join(problems)}")

    def warm_up(self, answer: Callable[[Any], AsyncGenerator[Any, None]], request: Any) -> None:
        """Try `answer(request)` until it succeeds.  Raises `RuntimeError` where it cannot, and after
        `warmup_timeout_s`."""
        within_s = self._options.warmup_timeout_s
        if not within_s:
            return

        async def once() -> str | None:
            async with aclosing(answer(request)) as results:
                async for result in results:
                    if isinstance(result, Failed):
                        return result.message
            return None

        async def until_it_works() -> None:
            problem: str | None = f"{self._what}: no answer within {within_s:g} s"
            try:
                async with asyncio.timeout(within_s):
                    while problem := await once():
                        if self._hopeless:
                            break
                        await asyncio.sleep(max(self._options.retry_delay, 0.05))
            except TimeoutError:
                pass
            if problem:
                raise RuntimeError(f"warm-up failed: {problem}")

        self.loop.run_until_complete(until_it_works())

    def _within(self, silence_s: float, endpoint: Endpoint) -> Endpoint:
        """`endpoint`, to be asked once and to be silent for at most `silence_s`."""
        connect_s = min(self._options.connect_timeout, silence_s)
        timeout = self._openai.Timeout(silence_s, connect=connect_s)
        return replace(endpoint, client=endpoint.client.with_options(timeout=timeout))

    def _order(self) -> list[Endpoint]:
        """As configured, but those that failed just now last."""
        now = time.monotonic()
        return sorted(self.endpoints, key=lambda endpoint: now - endpoint.failed_at < AVOID_S)

    def _judged(self, error: Exception, attempt: int) -> tuple[str, bool, float]:
        """What went wrong, in words; whether asking again may help, and in how many s."""
        delay_s = min(self._options.retry_delay * 2**attempt, LONGEST_DELAY_S)
        if isinstance(error.__cause__, self._http.ConnectTimeout):
            return f"no connection within {self._options.connect_timeout:g} s", False, delay_s
        if isinstance(error, (self._openai.APITimeoutError, self._http.TimeoutException)):
            return f"gave no sign for {self._options.timeout:g} s", False, delay_s
        if isinstance(error, self._openai.APIStatusError):
            again = error.status_code in RETRIED_STATUS
            return str(error), again, _retry_after(error.response.headers, delay_s)
        if isinstance(error, (self._openai.APIConnectionError, self._http.TransportError)):
            cause = error.__cause__ or error
            return f"not reached, or broke off: {str(cause) or type(cause).__name__}", True, delay_s
        return str(error) or type(error).__name__, True, delay_s


def _http_library(openai: Any) -> Any:
    """The module whose errors come through OpenAI's client: httpx, in newer versions httpx2."""
    client = next(base for base in openai.DefaultAsyncHttpxClient.__mro__ if base.__name__ == "AsyncClient")
    return importlib.import_module(client.__module__.partition(".")[0])


def _retry_after(headers: Any, otherwise_s: float) -> float:
    try:
        return max(0.0, float(headers.get("retry-after", otherwise_s)))
    except ValueError:  # a date
        return otherwise_s


def _without(text: str, endpoints: list[Endpoint]) -> str:
    """`text` without keys: some servers repeat what they were sent."""
    for endpoint in endpoints:
        if endpoint.key:
            text = text.replace(endpoint.key, "(key)")
    return text


def _servers(options: RemoteOptions, model: str | None) -> Iterator[tuple[str, str | None, str | None]]:
    """Address, model and key of each server."""
    keys = _keys(options.api_key_file)
    first = _key(options.api_key or (keys[0] if keys else None) or os.environ.get("OPENAI_API_KEY"))
    base_url = options.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI
    yield base_url, model, first
    for index, text in enumerate(options.fallback, start=1):
        address, _, name = text.strip().partition(" ")
        own = _key(keys[index]) if index < len(keys) else None
        yield (
            address,
            name.strip() or model,
            own or (first if _origin(address) == _origin(base_url) else None),
        )


def _key(text: str | None) -> str | None:
    """`text` without the line break that files and secret stores end in.  Raises `ValueError`, which does not show
    it, where it cannot be sent."""
    key = (text or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError(
            "an API key holds a line break or a character beyond ASCII; give it as it was issued."
        )
    return key or None


def _keys(file: str | None) -> list[str]:
    if file is None:
        return []
    try:
        lines = Path(file).expanduser().read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"api_key_file {file}: {error}") from None
    return [line.strip() for line in lines]


def _origin(address: str) -> tuple[str, str]:
    """Scheme, and host with its port."""
    scheme, _, rest = address.lower().partition("://")
    return scheme, rest.partition("/")[0]


def _close(loop: asyncio.AbstractEventLoop, clients: list[Any]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(_end(clients))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


async def _end(clients: list[Any]) -> None:
    for client in clients:
        await client.close()
    mine = asyncio.current_task()
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not mine), return_exceptions=True)
