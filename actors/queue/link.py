"""The Ray driver of the producer half: it lives in the gateway's event loop and never blocks it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from actors.messages import Request, Result
from actors.queue.core import Control, Figures, Outcome, Outgoing, Producer, QueueOptions, Say
from actors.queue.items import decode_returns, encode_controls

log = logging.getLogger(__name__)

WATCH_S = 0.25
"""How often replicas without a sign of life and items that nobody takes are looked for."""


@dataclass(frozen=True)
class Replica:
    """A replica of the pool."""

    id: str
    """Unique for ever: a replacement has another one."""
    handle: Any
    """Ray actor of `actors.stage.Stage`."""
    max_batch: int = 1


class StageLink:
    """One gateway's way to one stage.  All methods are called in one event loop."""

    def __init__(
        self,
        stage: str,
        source: str,
        deliver: Callable[[str, int, Result], None],
        sink: Any,
        report_dead: Callable[[str, str], None],
        options: QueueOptions | None = None,
    ) -> None:
        """`deliver(session, work, result)` gets every result, in order, never from within `submit`; `sink` is the
        gateway's actor handle, whose `results(stage, batch)` calls `results(batch)` here;
        `report_dead(replica, reason)` tells the supervisor."""
        self.stage = stage
        self.source = f"{source}/{secrets.token_hex(4)}"
        self._deliver = deliver
        self._sink = sink
        self._report_dead = report_dead
        self._producer = Producer(stage, self.source, options)
        self._handles: dict[str, Any] = {}
        self._watches: dict[str, asyncio.Future[Any]] = {}
        self._loop = asyncio.get_running_loop()
        self._outcomes: deque[Outcome] = deque()
        self._words: dict[str, list[Control]] = {}
        self._pump_soon = False
        self._timer: asyncio.TimerHandle | None = None
        self._watch_timer: asyncio.TimerHandle | None = self._loop.call_later(WATCH_S, self._watch)

    def set_pool(self, version: int, replicas: Iterable[Replica]) -> None:
        """Take `replicas` as the pool.

        One that left it gets no new work and may finish what it has; one whose process dies is noticed here.
        """
        listed = {replica.id: replica for replica in replicas}
        self._producer.set_pool(
            version, {name: replica.max_batch for name, replica in listed.items()}, time.monotonic()
        )
        known = self._producer.replicas
        for name, replica in listed.items():
            if name in known and name not in self._handles:
                self._handles[name] = replica.handle
                watch = asyncio.wrap_future(replica.handle.watch.remote().future())
                watch.add_done_callback(partial(self._died, name))
                self._watches[name] = watch
        self._forget_gone()
        self._wake()

    def submit(
        self, session: str, generation: str, work: int, rank: int, due_in_s: float, request: Request
    ) -> None:
        """Queue `request`; its results come through `deliver`.  With the outbox full that is a `Failed`."""
        now = time.monotonic()
        refused = self._producer.submit(session, generation, work, rank, due_in_s, request, now)
        if refused:
            self._outcomes.extend(refused)
            self._loop.call_soon(self._hand_over, ())
        self._wake()

    def cancel(self, session: str, generation: str) -> None:
        """Stop everything of `generation`, queued or running; nothing more of it is delivered."""
        self._say(self._producer.cancel(session, generation))
        self._outcomes = deque(outcome for outcome in self._outcomes if outcome[:2] != (session, generation))

    def promote(self, session: str, generation: str, due_in_s: float) -> None:
        """Make speculative `generation` confirmed work, due in `due_in_s`."""
        self._say(self._producer.promote(session, generation, due_in_s, time.monotonic()))
        self._wake()

    def close(self, session: str) -> None:
        """Stop everything of `session` and forget it."""
        self._say(self._producer.close(session))
        self._outcomes = deque(outcome for outcome in self._outcomes if outcome.session != session)

    def results(self, batch: bytes) -> None:
        """Take what a replica sent to the gateway's `results`."""
        self._hand_over(self._producer.returned(decode_returns(batch), time.monotonic()))
        self._forget_gone()
        self._wake()

    def figures(self) -> Figures:
        return self._producer.figures(time.monotonic())

    def close_all(self) -> None:
        """Stop all work of this gateway and let go of the replicas."""
        for session in self._producer.sessions:
            self.close(session)
        self._tell()
        for timer in (self._timer, self._watch_timer):
            if timer is not None:
                timer.cancel()
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        self._handles.clear()

    stop = close_all

    def _wake(self) -> None:
        """Pump once this turn of the loop is over, so that what is submitted together travels together."""
        if not self._pump_soon:
            self._pump_soon = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_soon = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = time.monotonic()
        for outgoing in self._producer.take(now):
            self._send(outgoing)
        self._say(self._producer.recall())
        wake_at = self._producer.wake_at(now)
        if wake_at is not None:
            self._timer = self._loop.call_later(max(0.0, wake_at - now), self._pump)

    def _send(self, outgoing: Outgoing) -> None:
        references = [self._put(item, encoded) for item, encoded in outgoing.large]
        handle = self._handles[outgoing.replica]
        try:
            reply = handle.deliver.remote(outgoing.batch, self.source, self._sink, references)
        except Exception as error:
            self._lose(outgoing.replica, f"it could not be called: {error}")
            return
        asyncio.wrap_future(reply.future()).add_done_callback(partial(self._answered, outgoing.replica))

    def _put(self, item: int, encoded: bytes) -> Any:
        import ray

        reference = ray.put(encoded)
        self._producer.hold(item, reference)
        return reference

    def _answered(self, replica: str, reply: asyncio.Future[bytes]) -> None:
        if reply.cancelled():
            return
        error = reply.exception()
        if error is not None:
            self._lose(replica, f"a delivery failed: {type(error).__name__}: {error}")
            return
        self._hand_over(self._producer.answered(replica, decode_returns(reply.result()), time.monotonic()))
        self._forget_gone()
        self._wake()

    def _died(self, replica: str, watch: asyncio.Future[Any]) -> None:
        if not watch.cancelled():
            error = watch.exception()
            self._lose(replica, f"its process is gone: {type(error).__name__}")

    def _lose(self, replica: str, reason: str) -> None:
        """Send what `replica` had elsewhere, and tell the supervisor; once for each replica."""
        if self._handles.pop(replica, None) is None:
            return
        watch = self._watches.pop(replica, None)
        if watch is not None:
            watch.cancel()
        log.warning("%s: replica %s is lost: %s", self.stage, replica, reason)
        self._hand_over(self._producer.lost(replica, time.monotonic()))
        self._report_dead(replica, reason)
        self._wake()

    def _say(self, says: Iterable[Say]) -> None:
        """Tell replicas once this turn of the loop is over, all words to one of them in one call."""
        if not self._words:
            self._loop.call_soon(self._tell)
        for replica, control in says:
            self._words.setdefault(replica, []).append(control)

    def _tell(self) -> None:
        for replica, controls in self._words.items():
            handle = self._handles.get(replica)
            if handle is not None:
                handle.control.remote(self.source, encode_controls(controls))
        self._words.clear()
        self._forget_gone()

    def _forget_gone(self) -> None:
        """Let go of replicas that left the pool and hold nothing of ours."""
        if len(self._handles) > len(known := self._producer.replicas):
            for name in [name for name in self._handles if name not in known]:
                del self._handles[name]
                self._watches.pop(name).cancel()

    def _hand_over(self, outcomes: Iterable[Outcome]) -> None:
        """Deliver `outcomes`; what they make the session cancel is taken out of those that follow."""
        self._outcomes.extend(outcomes)
        while self._outcomes:
            session, _, work, result = self._outcomes.popleft()
            try:
                self._deliver(session, work, result)
            except Exception:
                log.exception("%s: session %s failed on a result of work %d", self.stage, session, work)

    def _watch(self) -> None:
        """Look for what no event tells: replicas without progress, items that nobody takes."""
        now = time.monotonic()
        for replica in self._producer.stuck(now):
            self._lose(replica, f"no sign of life for {self._producer.options.stage_timeout_s:g} s")
        self._hand_over(self._producer.expire(now))
        self._watch_timer = self._loop.call_later(WATCH_S, self._watch)
