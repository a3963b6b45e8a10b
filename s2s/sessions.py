"""The sessions and one-shot requests of one gateway, on its event loop; knows nothing of Ray or sockets."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from actors.messages import Failed, Rank, Request, Result, is_final
from orchestration.session.config import SessionDefaults
from orchestration.session.effects import Close
from orchestration.session.events import ServerEvent
from orchestration.session.session import Session
from orchestration.session.timeline import Speculation, TurnRecord
from s2s.histograms import TurnHistograms
from s2s.session_driver import Link, SessionDriver


class AtCapacity(Exception):
    """No further session is taken; says how many there are."""


class Draining(Exception):
    """The server is shutting down: nothing new is begun."""


class RequestFailed(Exception):
    """A one-shot request failed; the message names stage and cause."""


@dataclass
class Sessions:
    """All that is going on in this gateway."""

    links: Mapping[str, Link]
    defaults: SessionDefaults
    max_sessions: int = 64
    draining: bool = False
    drivers: dict[str, SessionDriver] = field(default_factory=dict)
    turn_over: Callable[[str, TurnRecord], None] = lambda session, turn: None
    """Called once for each turn that is over, some time after."""
    _jobs: dict[str, asyncio.Queue[Result]] = field(default_factory=dict)
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _histograms: TurnHistograms = field(default_factory=TurnHistograms)
    _speculation: dict[str, Speculation] = field(
        default_factory=lambda: {"stt": Speculation(), "answers": Speculation()}
    )
    """Of the sessions that are closed."""
    _counted: dict[str, int] = field(default_factory=dict)
    """The last turn of each open session that the histograms hold."""

    def open(
        self,
        send: Callable[[ServerEvent], None],
        closed: Callable[[Close], None],
        defaults: SessionDefaults | None = None,
    ) -> SessionDriver:
        """A new session; the caller ends it with `close`.  Raises `AtCapacity` or `Draining`."""
        if self.draining:
            raise Draining("The server is shutting down and takes no new sessions.")
        if len(self.drivers) >= self.max_sessions:
            raise AtCapacity(
                f"All {self.max_sessions} sessions of this server are taken: try again later (--max_sessions sets it)."
            )
        session = Session(f"sess_{secrets.token_hex(12)}", defaults or self.defaults, time.monotonic())
        driver = SessionDriver(session, self.links, send, closed)
        self.drivers[session.id] = driver
        return driver

    def close(self, driver: SessionDriver) -> None:
        """The client is gone: its work stops and its place is free.  Once is enough, twice does no harm."""
        driver.disconnect()
        if self.drivers.pop(driver.session.id, None) is not None:
            self._count_turns(driver)
            self._speculation = _sum(self._speculation, driver.session.timeline.speculation)
            self._counted.pop(driver.session.id, None)
        if not self.drivers:
            self._empty.set()

    def histograms(self) -> TurnHistograms:
        """Of all turns that are over."""
        self.look_for_turns()
        return self._histograms

    def speculation(self) -> dict[str, Speculation]:
        """What became of early work, in all sessions so far."""
        total = self._speculation
        for driver in self.drivers.values():
            total = _sum(total, driver.session.timeline.speculation)
        return total

    def look_for_turns(self) -> None:
        """Call `turn_over` for those that have ended since."""
        for driver in self.drivers.values():
            self._count_turns(driver)

    def _count_turns(self, driver: SessionDriver) -> None:
        last = self._counted.get(driver.session.id, 0)
        for turn in driver.session.timeline.turns:
            if turn.number > last and turn.status:
                self._histograms.add(turn)
                self.turn_over(driver.session.id, turn)
                last = turn.number
        self._counted[driver.session.id] = last

    def deliver(self, session: str, work: int, result: Result) -> None:
        """A result came back from a stage; one for a session that is over is dropped."""
        driver = self.drivers.get(session)
        if driver is not None:
            driver.result(work, result)
        elif session in self._jobs:
            self._jobs[session].put_nowait(result)

    async def run(
        self, request: Request, rank: Rank = Rank.BACKGROUND, timeout_s: float = 120.0
    ) -> AsyncIterator[Result]:
        """One request beside the sessions, below them in rank; leaving the iteration cancels it.

        Raises `RequestFailed` if the stage failed or gave no result for `timeout_s`.
        """
        name = f"job_{secrets.token_hex(12)}"
        results = self._jobs[name] = asyncio.Queue()
        link = self.links[request.stage]
        try:
            link.submit(name, name, 0, rank, 1.0, request)
            while True:
                try:
                    result = await asyncio.wait_for(results.get(), timeout_s)
                except TimeoutError:
                    raise RequestFailed(f"{request.stage} gave no result within {timeout_s:.0f} s.") from None
                if isinstance(result, Failed):
                    raise RequestFailed(result.message)
                yield result
                if is_final(result):
                    return
        finally:
            del self._jobs[name]
            link.close(name)

    async def drain(self, within_s: float) -> bool:
        """Take no new sessions and wait for the running answers; whether all were out within `within_s`."""
        self.draining = True
        self._empty.clear()
        for driver in list(self.drivers.values()):
            driver.drain()
        if not self.drivers:
            return True
        try:
            await asyncio.wait_for(self._empty.wait(), within_s)
        except TimeoutError:
            return False
        return True


def _sum(one: Mapping[str, Speculation], other: Mapping[str, Speculation]) -> dict[str, Speculation]:
    return {name: one[name] + other[name] for name in one}
