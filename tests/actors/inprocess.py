"""Ray's calling convention without Ray: `handle.method.remote(...)` runs in the same event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any


class Ref:
    """What a call returns: a future, as Ray's object references give one."""

    def __init__(self, coroutine: Any, handle: Handle) -> None:
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._task = asyncio.get_running_loop().create_task(self._run(coroutine))
        handle.calls.append(self)

    def future(self) -> concurrent.futures.Future[Any]:
        return self._future

    def die(self) -> None:
        """The process that worked on the call is gone."""
        self._task.cancel()
        if not self._future.done():
            self._future.set_exception(ActorDiedError("killed"))

    async def _run(self, coroutine: Any) -> None:
        try:
            value = await coroutine
        except Exception as error:
            if not self._future.done():
                self._future.set_exception(error)
        else:
            if not self._future.done():
                self._future.set_result(value)


class ActorDiedError(Exception):
    """The actor is gone."""


class ActorUnavailableError(Exception):
    """The actor cannot be reached for the moment."""


class Method:
    def __init__(self, handle: Handle, name: str) -> None:
        self._handle, self._name = handle, name

    def remote(self, *arguments: Any) -> Ref:
        if self._handle.dead:
            return Ref(_raise(ActorDiedError("dead")), self._handle)
        failure = self._handle.fail
        if failure is not None and (error := failure(self._name)) is not None:
            return Ref(_raise(error), self._handle)
        return Ref(getattr(self._handle.actor, self._name)(*arguments), self._handle)


class Handle:
    """An actor handle of `actor`; `fail(method)` may return an error to raise in place of a call."""

    def __init__(self, actor: Any, fail: Callable[[str], Exception | None] | None = None) -> None:
        self.actor = actor
        self.fail = fail
        self.dead = False
        self.calls: list[Ref] = []

    def __getattr__(self, name: str) -> Method:
        return Method(self, name)

    def kill(self) -> None:
        self.dead = True
        for ref in self.calls:
            ref.die()


async def _raise(error: Exception) -> None:
    raise error
