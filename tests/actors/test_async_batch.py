"""A verb of coroutines: several at once, requests that join, cancels, errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from actors.async_batch import answer_all
from actors.batch import Batch


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    assert not asyncio.all_tasks(loop), "nothing goes on when the verb has ended"
    loop.close()


class Work:
    """Says the names of its requests, each when its gate is open."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.running: set[str] = set()
        self.most = 0

    async def answer(self, name: str) -> AsyncGenerator[str, None]:
        self.running.add(name)
        self.most = max(self.most, len(self.running))
        try:
            yield f"{name} begins"
            if name.startswith("slow"):
                await self.gates.setdefault(name, asyncio.Event()).wait()
            yield f"{name} ends"
        finally:
            self.running.discard(name)


def batch(*names: str) -> Batch[str]:
    return Batch((name, name) for name in names)


def test_requests_are_worked_on_together_up_to_the_limit(loop: asyncio.AbstractEventLoop) -> None:
    work = Work()
    results: list[Any] = []
    for key, result in answer_all(loop, batch("slow 1", "slow 2", "slow 3"), 2, work.answer):
        results.append(result)
        if len(work.running) == 2 and "slow 2 begins" in results:
            work.gates["slow 1"].set()
        if result == "slow 3 begins":
            work.gates["slow 2"].set()
        if key == "slow 3" or result == "slow 2 ends":
            work.gates.setdefault("slow 3", asyncio.Event()).set()
    assert work.most == 2
    assert sorted(result for result in results if "ends" in result) == [f"slow {n} ends" for n in (1, 2, 3)]


def test_a_request_joins_while_others_are_worked_on(loop: asyncio.AbstractEventLoop) -> None:
    work, requests = Work(), batch("slow")
    results = []
    for _, result in answer_all(loop, requests, 4, work.answer):
        results.append(result)
        if result == "slow begins":
            requests.add("late", "late")
        if result == "late ends":
            work.gates["slow"].set()
    assert results == ["slow begins", "late begins", "late ends", "slow ends"]


def test_a_cancelled_request_stops_where_it_waits_and_the_others_go_on(
    loop: asyncio.AbstractEventLoop,
) -> None:
    work, requests = Work(), batch("slow", "quick")
    results = []
    for _, result in answer_all(loop, requests, 4, work.answer):
        results.append(result)
        if result == "quick ends":
            requests.cancel("slow")
    assert results == ["slow begins", "quick begins", "quick ends"]
    assert not work.running


def test_a_request_that_is_cancelled_before_its_first_step_leaves_its_place(
    loop: asyncio.AbstractEventLoop,
) -> None:
    work, requests = Work(), batch("quick")
    results = []
    for _, result in answer_all(loop, requests, 4, work.answer):
        results.append(result)
        if result == "quick begins":
            requests.add("late", "late")
        if result == "quick ends":
            loop.call_later(10, loop.stop)  # else a request that never ends would hang here
            requests.cancel("late")
    assert results == ["quick begins", "quick ends"]


def test_what_a_cancelled_request_has_to_clear_up_is_not_interrupted(loop: asyncio.AbstractEventLoop) -> None:
    cleared = []

    async def answer(name: str) -> AsyncGenerator[str, None]:
        try:
            yield f"{name} begins"
            await asyncio.sleep(0 if name == "quick" else 3600)
            for step in range(10):
                yield f"{name} {step}"
                await asyncio.sleep(0)
        finally:
            if name == "slow":
                for _ in range(5):
                    await asyncio.sleep(0)
                cleared.append(name)

    requests = batch("slow", "quick")
    for _, result in answer_all(loop, requests, 4, answer):
        if result == "quick 0":
            requests.cancel("slow")
    assert cleared == ["slow"]


def test_leaving_the_iteration_stops_everything(loop: asyncio.AbstractEventLoop) -> None:
    work = Work()
    results: Any = answer_all(loop, batch("slow 1", "slow 2"), 4, work.answer)
    next(results)
    results.close()
    assert not work.running


def test_an_error_of_the_code_is_raised_and_stops_the_others(loop: asyncio.AbstractEventLoop) -> None:
    work = Work()

    async def answer(name: str) -> AsyncGenerator[str, None]:
        if name == "broken":
            raise LookupError("a bug")
        async for result in work.answer(name):
            yield result

    with pytest.raises(LookupError, match="a bug"):
        list(answer_all(loop, batch("slow", "broken"), 4, answer))
    assert not work.running
