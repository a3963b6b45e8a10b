"""The actors of the queue bench: a stage without a model, and a gateway that makes the load."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from actors.messages import (
    LlmRequest,
    Message,
    Rank,
    Request,
    Result,
    SttRequest,
    SttResult,
    TextPart,
    TtsRequest,
    TurnRequest,
    VadRequest,
    VadResult,
)
from actors.queue.link import Replica, StageLink
from actors.stage import Stage
from s2s.bench.echo import Echo

FRAME_S = 0.032


class BenchStage(Stage):
    """A stage that tells what it cost."""

    async def cpu_s(self) -> float:
        return time.process_time()

    async def echo(self, message: bytes) -> bytes:
        return message

    async def last_step(self) -> float:
        """When the model last made a step, monotonic s."""
        return Echo.last_step


class Load(msgspec.Struct, frozen=True):
    """What a load saw; times in seconds."""

    out: list[float]
    """From submission until the model had it."""
    back: list[float]
    """From there until the result was delivered."""
    round_trip: list[float]
    took_s: float


class BenchGateway:
    """A producer of load."""

    def __init__(self, name: str, pools: dict[str, list[Replica]]) -> None:
        self._name = name
        self._pools = pools
        self._links: dict[str, StageLink] = {}
        self._first: dict[tuple[str, int], asyncio.Future[Result]] = {}
        self._work = 0
        self._alone = False

    async def start(self, me: Any) -> None:
        for stage, pool in self._pools.items():
            link = self._links[stage] = StageLink(stage, self._name, self._deliver, me, self._dead)
            link.set_pool(1, pool)

    async def results(self, stage: str, batch: bytes) -> None:
        self._links[stage].results(batch)

    async def cpu_s(self) -> float:
        return time.process_time()

    async def frames(self, sessions: int, seconds: float) -> Load:
        """`sessions` microphones for `seconds`: a frame each 32 ms, one request in flight a session."""
        load = Load([], [], [], 0.0)
        started = time.monotonic()
        await asyncio.gather(
            *(self._microphone(index, index * FRAME_S / sessions, seconds, load) for index in range(sessions))
        )
        return msgspec.structs.replace(load, took_s=time.monotonic() - started)

    async def frames_alone(self, sessions: int, seconds: float) -> None:
        """The same microphones, answered here: what making the load costs."""
        self._alone = True
        await self.frames(sessions, seconds)
        self._alone = False

    async def calls(self, other: Any, count: int) -> list[float]:
        """Bare actor calls with 1 KB there and back, one after the other: s each."""
        took = []
        for _ in range(count):
            await asyncio.sleep(0.02)
            started = time.monotonic()
            await asyncio.wrap_future(other.echo.remote(bytes(1000)).future())
            took.append(time.monotonic() - started)
        return took

    async def messages(self, size_bytes: int, rate_hz: float, seconds: float) -> Load:
        """Requests of `size_bytes` at `rate_hz`, each by itself."""
        load = Load([], [], [], 0.0)
        started = time.monotonic()
        request = SttRequest(bytes(size_bytes))
        asked = []
        for index in range(int(rate_hz * seconds)):
            await asyncio.sleep(max(0.0, started + index / rate_hz - time.monotonic()))
            asked.append(asyncio.ensure_future(self._timed(f"s{index % 50}", "stt", request, load)))
        await asyncio.gather(*asked)
        return msgspec.structs.replace(load, took_s=time.monotonic() - started)

    async def turns(self, count: int) -> list[float]:
        """The hops of `count` turns, one after the other on an idle machine: s each."""
        took = []
        for _ in range(count):
            await asyncio.sleep(0.02)
            started = time.monotonic()
            await self._ask("t", "vad", VadRequest(bytes(2048), bytes(128), bytes(1024)))
            await self._ask("t", "turn", TurnRequest(bytes(96_000)))
            await self._ask("t", "stt", SttRequest(bytes(96_000)))
            await self._ask(
                "t", "llm", LlmRequest([Message("user", [TextPart("hello " * 50)])], max_tokens=1)
            )
            await self._ask("t", "tts", TtsRequest("A clause of some nine words or so, say."))
            took.append(time.monotonic() - started)
        return took

    async def cancel_storm(self, sessions: int) -> float:
        """Start an endless answer for each session, then cancel all at once; the moment of that, monotonic s."""
        request = LlmRequest([Message("user", [TextPart("go on")])], max_tokens=1_000_000)
        for index in range(sessions):
            self._work += 1
            self._links["llm"].submit(f"c{index}", "storm", self._work, Rank.CONFIRMED, 0.0, request)
        await asyncio.sleep(1.0)
        decided = time.monotonic()
        for index in range(sessions):
            self._links["llm"].cancel(f"c{index}", "storm")
        return decided

    async def stop(self) -> None:
        for link in self._links.values():
            link.stop()

    async def _microphone(self, index: int, offset_s: float, seconds: float, load: Load) -> None:
        session = f"m{index}"
        state, context, frame = bytes(2048), bytes(128), bytes(1024)
        begun = time.monotonic() + offset_s
        sent = 0
        while sent * FRAME_S < seconds:
            await asyncio.sleep(max(0.0, begun + sent * FRAME_S - time.monotonic()))
            there = max(1, int((time.monotonic() - begun) / FRAME_S) - sent + 1)
            result = await self._timed(session, "vad", VadRequest(state, context, frame * there), load)
            assert isinstance(result, VadResult)
            state, context = result.state, result.context
            sent += there

    async def _timed(self, session: str, stage: str, request: Request, load: Load) -> Result:
        asked = time.monotonic()
        result = await self._ask(session, stage, request)
        now = time.monotonic()
        match result:
            case VadResult(probabilities=[at, *_]) | SttResult(logprob=float(at)):
                load.out.append(at - asked)
                load.back.append(now - at)
        load.round_trip.append(now - asked)
        return result

    async def _ask(self, session: str, stage: str, request: Request) -> Result:
        """The first result."""
        self._work += 1
        loop = asyncio.get_running_loop()
        first: asyncio.Future[Result] = loop.create_future()
        self._first[session, self._work] = first
        if self._alone:
            loop.call_later(0.005, self._deliver, session, self._work, VadResult([0.0], b"", b""))
            return await first
        self._links[stage].submit(session, "g", self._work, Rank.CONFIRMED, 0.0, request)
        return await first

    def _deliver(self, session: str, work: int, result: Result) -> None:
        first = self._first.pop((session, work), None)
        if first is not None:
            first.set_result(result)

    def _dead(self, replica: str, reason: str) -> None:
        raise RuntimeError(f"bench: replica {replica} was lost: {reason}")
