"""A backend's verb for work that waits and does not compute: coroutines, several at once, in the model's thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, TypeVar

from actors.batch import Batch, Key

R = TypeVar("R")
_Event = tuple[Key, Any]
_ENDED = object()


def answer_all(
    loop: asyncio.AbstractEventLoop,
    batch: Batch[R],
    at_once: int,
    answer: Callable[[R], AsyncGenerator[Any, None]],
) -> Iterator[tuple[Key, Any]]:
    """Yield the results of `answer(request)` of each request as they come, of at most `at_once` together.

    `loop` runs in the calling thread, and only while this waits.  Requests join while there is room.  A cancelled one
    is cancelled as a coroutine, and so are all when the iteration is left.  What `answer` raises is raised here.
    """
    events: asyncio.Queue[_Event | None] = asyncio.Queue()
    running: dict[Key, asyncio.Task[None]] = {}

    async def work(key: Key, request: R) -> None:
        try:
            async with contextlib.aclosing(answer(request)) as results:
                async for result in results:
                    events.put_nowait((key, result))
        except Exception as error:
            events.put_nowait((key, error))

    def start(key: Key, request: R) -> asyncio.Task[None]:
        task = loop.create_task(work(key, request))
        # One that is cancelled before its first step never gets into `work`.
        task.add_done_callback(lambda _: events.put_nowait((key, _ENDED)))
        return task

    def changed() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(events.put_nowait, None)

    batch.on_change(changed)
    try:
        while True:
            for key, task in running.items():
                if batch.cancelled(key) and not task.cancelling():
                    task.cancel()
            for key, request in batch.take(at_once - len(running)):
                running[key] = start(key, request)
            if not running:
                return
            event = events.get_nowait() if not events.empty() else loop.run_until_complete(events.get())
            if event is None:
                continue
            key, result = event
            if result is _ENDED:
                del running[key]
            elif isinstance(result, Exception):
                raise result
            elif not batch.cancelled(key):
                yield key, result
    finally:
        batch.on_change(None)
        for task in running.values():
            task.cancel()
        if running:
            loop.run_until_complete(asyncio.gather(*running.values(), return_exceptions=True))
