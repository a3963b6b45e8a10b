"""Everything that leaves a session: events, requests to the stages, and the book of requests still open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from actors.messages import STT_RATE_HZ, Failed, Rank, Request, Result, SttRequest, is_final
from orchestration.session.config import StageTimeouts
from orchestration.session.effects import Cancel, Close, Effect, Hold, Promote, Send, Submit
from orchestration.session.events import ServerEvent

Handler = Callable[[Result, float], None]
"""Takes a result of a request, and the time."""


@dataclass
class _Work:
    stage: str
    generation: str
    handler: Handler
    timeout_s: float
    deadline: float | None
    """None while speculative: it may have to wait for all that is confirmed."""


class Outbox:
    """Collects effects until `take`.  A request is known here until its final result, its cancel or its time-out;
    results of any other are dropped."""

    def __init__(self, session_id: str, timeouts: StageTimeouts) -> None:
        self._suffix = session_id.rpartition("_")[2][-16:]
        self._timeouts = timeouts
        self._effects: list[Effect] = []
        self._open: dict[int, _Work] = {}
        self._last_work = 0
        self._last_id = 0
        self.closed = False

    def new_id(self, prefix: str) -> str:
        self._last_id += 1
        return f"{prefix}_{self._suffix}{self._last_id:05x}"

    def send(self, event: ServerEvent) -> None:
        event.event_id = self.new_id("event")
        self._effects.append(Send(event))

    def submit(
        self,
        request: Request,
        generation: str,
        handler: Handler,
        now: float,
        rank: Rank = Rank.CONFIRMED,
        due_in_s: float = 0.0,
    ) -> None:
        self._last_work += 1
        timeout_s: float = getattr(self._timeouts, f"{request.stage}_s")
        if isinstance(request, SttRequest):
            timeout_s += len(request.audio) / 2 / STT_RATE_HZ
        deadline = None if rank is Rank.SPECULATIVE else now + due_in_s + timeout_s
        self._open[self._last_work] = _Work(request.stage, generation, handler, timeout_s, deadline)
        self._effects.append(Submit(self._last_work, generation, request, rank, due_in_s))

    def cancel(self, generation: str) -> None:
        """Stop and forget `generation`; requests that have not even left are taken back."""
        works = {work for work, entry in self._open.items() if entry.generation == generation}
        for work in works:
            del self._open[work]
        unsent = {
            effect.work for effect in self._effects if isinstance(effect, Submit) and effect.work in works
        }
        self._effects = [e for e in self._effects if not (isinstance(e, Submit) and e.work in unsent)]
        if works - unsent:
            self._effects.append(Cancel(generation))

    def promote(self, generation: str, now: float, due_in_s: float = 0.0) -> None:
        works = [entry for entry in self._open.values() if entry.generation == generation]
        for entry in works:
            entry.deadline = now + due_in_s + entry.timeout_s
        if works:
            self._effects.append(Promote(generation, due_in_s))

    def result(self, work: int, result: Result, now: float) -> None:
        entry = self._open.get(work)
        if entry is None:
            return
        if is_final(result):
            del self._open[work]
        elif entry.deadline is not None:
            entry.deadline = max(entry.deadline, now + entry.timeout_s)
        entry.handler(result, now)

    def hold(self, held: bool) -> None:
        self._effects.append(Hold(held))

    def time_out(self, now: float) -> None:
        """Fail every request whose stage has not answered in time."""
        late = [
            work for work, entry in self._open.items() if entry.deadline is not None and entry.deadline <= now
        ]
        for work in late:
            entry = self._open.get(work)
            if entry is None:
                continue
            self.cancel(entry.generation)
            entry.handler(Failed(f"{entry.stage}: no result within {entry.timeout_s:.0f} s."), now)

    def next_deadline(self) -> float | None:
        return min((w.deadline for w in self._open.values() if w.deadline is not None), default=None)

    def cancel_all(self) -> None:
        for generation in dict.fromkeys(entry.generation for entry in self._open.values()):
            self.cancel(generation)

    def close(self, reason: Literal["client", "expired", "idle", "drained", "error"]) -> None:
        self.cancel_all()
        self.closed = True
        self._effects.append(Close(reason))

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
