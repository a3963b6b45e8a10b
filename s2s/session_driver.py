"""Drives one session core: gives it events, results and the time, and carries out the effects that it returns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from actors.messages import Failed, Rank, Request, Result
from orchestration.session.effects import Cancel, Close, Effect, Hold, Promote, Send, Submit
from orchestration.session.events import ClientEvent, ServerEvent
from orchestration.session.session import Session


class Link(Protocol):
    """The way to the replicas of one stage (`actors.queue.link.StageLink`)."""

    def submit(
        self, session: str, generation: str, work: int, rank: Rank, due_in_s: float, request: Request
    ) -> None: ...
    def cancel(self, session: str, generation: str) -> None: ...
    def promote(self, session: str, generation: str, due_in_s: float) -> None: ...
    def close(self, session: str) -> None: ...


class SessionDriver:
    """One session on the gateway's event loop.  All methods are called there, and none of them waits.

    `hold` is for a transport that paces the sound: it stops sending at once, or goes on where it stopped.
    """

    def __init__(
        self,
        session: Session,
        links: Mapping[str, Link],
        send: Callable[[ServerEvent], None],
        closed: Callable[[Close], None],
        hold: Callable[[bool], None] = lambda held: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self._links = links
        self._send = send
        self._closed = closed
        self._hold = hold
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    def start(self) -> None:
        """Say hello: the core's first events."""
        self._carry_out(self.session.start(self._clock()))

    def receive(self, event: ClientEvent) -> None:
        if not self._over:
            self._carry_out(self.session.receive(event, self._clock()))

    def result(self, work: int, result: Result) -> None:
        if not self._over:
            self._carry_out(self.session.result(work, result, self._clock()))

    def drain(self) -> None:
        """Nothing new is begun; the session closes when its running answer is out."""
        if not self._over:
            self._carry_out(self.session.drain(self._clock()))

    def disconnect(self) -> None:
        """The client is gone: stop all of its work."""
        if not self._over:
            self._carry_out(self.session.disconnect(self._clock()))
            self._end()

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(event):
                    self._send(event)
                case Submit():
                    self._submit(effect)
                case Cancel(generation):
                    for link in self._links.values():
                        link.cancel(self.session.id, generation)
                case Promote(generation, due_in_s):
                    for link in self._links.values():
                        link.promote(self.session.id, generation, due_in_s)
                case Hold(held):
                    self._hold(held)
                case Close():
                    self._end()
                    self._closed(effect)
        self._arm()

    def _submit(self, effect: Submit) -> None:
        stage = effect.request.stage
        if stage not in self._links:
            failed = Failed(f"{stage}: this server runs no such stage.")
            self._loop.call_soon(self.result, effect.work, failed)
            return
        self._links[stage].submit(
            self.session.id, effect.generation, effect.work, effect.rank, effect.due_in_s, effect.request
        )

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = None if self._over else self.session.wakeup_at()
        if at is not None:
            self._timer = self._loop.call_later(max(0.0, at - self._clock()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._carry_out(self.session.tick(self._clock()))

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        for link in self._links.values():
            link.close(self.session.id)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
