"""`bench queue`: what the object-store queue costs, in time and CPU, with no model behind it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any

from actors.messages import Rank, SttRequest, SttResult
from actors.queue.core import Inbox, Producer
from actors.queue.items import Returns, decode_delivery
from actors.queue.link import Replica
from s2s.bench import bounds
from s2s.config import Config

SECONDS = 5.0
"""How long each load runs."""
SESSIONS = 50
TURNS = 100


def run(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Measure, and hold the figures to `bounds.QUEUE`: `broken` names each one that is not kept.

    Starts a Ray of its own unless one runs.
    """
    import ray

    own = not ray.is_initialized()
    if own:
        _init(ray)
    try:
        with _Bench(ray) as bench:
            figures = bench.measure()
    finally:
        if own:
            ray.shutdown()
    figures.update(deadlines())
    return {"bench": "queue", "figures": figures, "broken": bounds.broken(figures, bounds.QUEUE)}


class _Bench:
    """The actors, and the loads that they bear."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._made: list[Any] = []

    def __enter__(self) -> _Bench:
        from s2s.bench.queue_actors import BenchGateway

        self._stages = {stage: [self._stage(stage, index) for index in range(2)] for stage in ("vad", "stt")}
        self._stages |= {stage: [self._stage(stage, 0)] for stage in ("turn", "llm", "tts")}
        self._ray.get([actor.load.remote() for actor in self._made], timeout=120)
        one = {stage: [Replica(f"{stage}-0", pool[0], 64)] for stage, pool in self._stages.items()}
        two = {
            stage: [Replica(f"{stage}-{index}", actor, 64) for index, actor in enumerate(pool)]
            for stage, pool in self._stages.items()
        }
        self._gateway = self._actor(BenchGateway, "one", one)
        self._pair = [self._actor(BenchGateway, name, two) for name in ("two", "three")]
        for gateway in (self._gateway, *self._pair):
            self._ray.get(gateway.start.remote(gateway), timeout=60)
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._made:
            self._ray.kill(actor)

    def measure(self) -> dict[str, float]:
        figures = self._calls()
        figures |= _spread("turn_hops", self._ray.get(self._gateway.turns.remote(TURNS)))
        figures |= self._frames()
        figures |= self._messages("message_1kb", [self._gateway], 1_000, 300.0)
        figures |= self._messages("message_100kb", [self._gateway], 99_000, 20.0)
        figures |= self._messages("message_1mb", [self._gateway], 1_000_000, 20.0)
        figures |= self._messages("two_by_two_1kb", self._pair, 1_000, 150.0)
        return figures | self._storm()

    def _calls(self) -> dict[str, float]:
        """What a bare call costs on this machine now: the measure of the rest."""
        actors = [self._gateway, self._stages["vad"][0]]
        before = self._cpu_s(actors)
        took = self._ray.get(self._gateway.calls.remote(actors[1], TURNS))
        return {
            **_spread("bare_call", took),
            "bare_call_cpu_ms": 1e3 * (self._cpu_s(actors) - before) / TURNS,
        }

    def _frames(self) -> dict[str, float]:
        actors = [self._gateway, self._stages["vad"][0]]
        before = self._cpu_s(actors)
        load = self._ray.get(self._gateway.frames.remote(SESSIONS, SECONDS))
        cpu_s = self._cpu_s(actors) - before
        before = self._cpu_s(actors)
        self._ray.get(self._gateway.frames_alone.remote(SESSIONS, SECONDS))
        cpu_s -= self._cpu_s(actors) - before
        return {
            **_spread("frames_out", load.out),
            **_spread("frames_back", load.back),
            "frames_cores": cpu_s / load.took_s,
            "frames_cpu_ms_each": 1e3 * cpu_s * 0.032 / (SESSIONS * SECONDS),
        }

    def _messages(
        self, name: str, gateways: Sequence[Any], size_bytes: int, rate_hz: float
    ) -> dict[str, float]:
        actors = [*gateways, *self._stages["stt"]]
        before = self._cpu_s(actors)
        loads = self._ray.get([gate.messages.remote(size_bytes, rate_hz, SECONDS) for gate in gateways])
        cpu_s = self._cpu_s(actors) - before
        count = sum(len(load.round_trip) for load in loads)
        return {
            **_spread(f"{name}_out", [value for load in loads for value in load.out]),
            **_spread(f"{name}_back", [value for load in loads for value in load.back]),
            f"{name}_cpu_ms_each": 1e3 * cpu_s / count,
        }

    def _storm(self) -> dict[str, float]:
        actors = [self._gateway, self._stages["llm"][0]]
        decided = self._ray.get(self._gateway.cancel_storm.remote(SESSIONS))
        before = self._cpu_s(actors)
        time.sleep(0.5)
        last = self._ray.get(self._stages["llm"][0].last_step.remote())
        return {
            "cancel_storm_ms": max(0.0, 1e3 * (last - decided)),
            "cancel_storm_cpu_ms_each": 1e3 * (self._cpu_s(actors) - before) / SESSIONS,
        }

    def _cpu_s(self, actors: Sequence[Any]) -> float:
        return float(sum(self._ray.get([actor.cpu_s.remote() for actor in actors])))

    def _stage(self, stage: str, index: int) -> Any:
        from s2s.bench.queue_actors import BenchStage

        options = {"step_s": 0.01}
        return self._actor(
            BenchStage, stage, "s2s.bench.echo:Echo", options, "cpu", "auto", 1, f"{stage}-{index}"
        )

    def _actor(self, cls: type, *arguments: Any) -> Any:
        remote = self._ray.remote(cls).options(num_cpus=0, max_restarts=0, max_concurrency=1000)
        actor = remote.remote(*arguments)
        self._made.append(actor)
        return actor


def deadlines() -> dict[str, float]:
    """Bursts of short and patient work through one busy replica, in simulated time: the share that is late when the
    earliest deadline goes first, and when whoever came first does."""
    return {"late_share_edf": _late_share(edf=True), "late_share_fifo": _late_share(edf=False)}


def _late_share(edf: bool) -> float:
    """Each second 8 clauses due in 6 s arrive together and 4 due at once right after; each takes 80 ms."""
    producer, inbox = Producer("tts", "bench"), Inbox(1)
    producer.set_pool(1, {"a": 1}, 0.0)
    late = done = 0
    due: dict[int, float] = {}
    for step in range(30_000):
        now = step / 1000
        if step % 1000 == 0:
            for index in range(12):
                work = step + index
                patience = 6.0 if index < 8 else 0.4
                due[work] = now + patience
                request = SttRequest(work.to_bytes(4, "little"))
                producer.submit("s", "g", work, Rank.CONFIRMED, patience if edf else 0.0, request, now)
        for outgoing in producer.take(now):
            inbox.receive("bench", outgoing.number, decode_delivery(outgoing.batch).items, now)
            producer.answered("a", Returns("a", inbox.limit("bench")), now)
        if step % 80 == 0:
            for held in inbox.take(now):
                result = inbox.result(held.key, SttResult(""))
                assert result is not None
                outcomes = producer.returned(Returns("a", inbox.limit("bench"), [result]), now)
                done += len(outcomes)
                late += sum(now > due[outcome.work] for outcome in outcomes)
    return late / done


def _spread(name: str, values_s: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 in ms."""
    ordered = sorted(values_s)
    return {
        f"{name}_p{share}_ms": 1e3 * ordered[round(share / 100 * (len(ordered) - 1))]
        for share in (50, 95, 99)
    }


def _init(ray: Any) -> None:
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 -- Ray's own spelling
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init(
        include_dashboard=False,
        num_cpus=2,
        object_store_memory=256 * 2**20,
        log_to_driver=False,
        _system_config={"enable_metrics_collection": False, "prestart_worker_first_driver": False},
    )
