"""The requests that one call of a backend's verb works on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from actors.messages import Failed

R = TypeVar("R")
T = TypeVar("T")
Key = Hashable


class Batch(Generic[R]):
    """Requests that a backend's verb takes from; they may join and be cancelled while it runs.

    Two threads meet here: the stage's loop adds and cancels, the model's thread takes and asks.  A backend that
    cannot let requests join calls `take()` once; one that can calls it between steps.
    """

    def __init__(self, requests: Iterable[tuple[Key, R]] = ()) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[Key, R]] = list(requests)
        self._cancelled: set[Key] = set()
        self._on_change: Callable[[], None] | None = None

    def add(self, key: Key, request: R) -> None:
        """Let `request` join."""
        with self._lock:
            self._waiting.append((key, request))
        self._changed()

    def cancel(self, key: Key) -> None:
        """Drop `key`: it may get no further results, and its compute stops at the next step."""
        with self._lock:
            self._cancelled.add(key)
            self._waiting = [(k, r) for k, r in self._waiting if k != key]
        self._changed()

    def take(self, limit: int | None = None) -> list[tuple[Key, R]]:
        """Requests that have joined since the last call, at most `limit`; cancelled ones never show."""
        with self._lock:
            taken = self._waiting[:limit]
            self._waiting = self._waiting[len(taken) :]
            return taken

    def cancelled(self, key: Key) -> bool:
        return key in self._cancelled

    def on_change(self, callback: Callable[[], None] | None) -> None:
        """Have `callback` called from the other thread whenever a request joined or was cancelled."""
        self._on_change = callback

    def _changed(self) -> None:
        callback = self._on_change
        if callback is not None:
            callback()


def run(verb: Callable[[Batch[R]], Iterator[tuple[Key, T]]], requests: Iterable[R]) -> list[list[T]]:
    """Call a backend as a plain object: the results of each request, in the order of `requests`."""
    listed = list(requests)
    results: list[list[T]] = [[] for _ in listed]
    for key, result in verb(Batch(enumerate(listed))):
        assert isinstance(key, int)
        results[key].append(result)
    return results


def warm_up(verb: Callable[[Batch[R]], Iterator[tuple[Key, object]]], *requests: R) -> None:
    """Have a backend work on `requests`; raises `RuntimeError` where one fails."""
    for _, result in verb(Batch(enumerate(requests))):
        if isinstance(result, Failed):
            raise RuntimeError(f"warm-up failed: {result.message}")
