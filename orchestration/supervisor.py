"""The supervisor: an actor that starts the replicas, watches each one, and replaces what dies.

Decisions are `replicas.Replicas`; this is their driver.  Every replica has `max_restarts=0` and one call that never
returns: its failure is the death notice, in milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from orchestration.asks import Ask
from orchestration.groups import plan_groups, replica_options, single_group
from orchestration.node_types import ray_inventory
from orchestration.placement import PlacementError, Plan, Slot, extend
from orchestration.progress import Progress, StageProgress
from orchestration.replicas import Action, Drain, End, GaveUp, Publish, Replicas, Start, Wake, place
from orchestration.reservations import NotReserved, Reservations
from orchestration.scaling import Load, Scaler, Work

log = logging.getLogger(__name__)

END_TIMEOUT_S = 5.0
SCALE_EVERY_S = 1.0
FIGURES_TIMEOUT_S = 2.0
NO_ROOM_S = 60.0
"""Until growth is tried again where there was no room for it, or it could not be loaded."""
_CONCURRENT_CALLS = 1000


class StageFailedError(RuntimeError):
    """A stage could not be started; names stage, backend and cause."""


class PlacementRow(TypedDict):
    """Where one replica runs, as `ask --json` prints it."""

    stage: str
    replica: str
    backend: str
    node: str
    device: str
    threads: int
    pid: int
    memory_mb: int


@dataclass
class _Running:
    """One process of a replica."""

    slot: Slot
    handle: Any
    watched: asyncio.Task[None]
    born: asyncio.Task[tuple[str, int]]
    """Its node and pid, once it answers."""
    loaded: Any = None


class Supervisor:
    """Starts, watches, replaces and ends the replicas of a plan.  An actor: `start_supervisor`."""

    def __init__(self, cluster_file: Path | None = None) -> None:
        self._cluster_file = cluster_file
        self._plan = Plan((), ())
        self._replicas = Replicas(())
        self._running: dict[str, _Running] = {}
        self._ending: set[str] = set()
        """Processes that are about to be gone."""
        self._grows_from_s: dict[str, float] = {}
        """When a stage that could not grow may try again, monotonic s."""
        self._gateways: list[Any] = []
        self._reservations = Reservations()
        self._progress = Progress()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[str] | None = None
        self._stopping = False

    async def start(self, plan: Plan) -> None:
        """Start every replica of `plan` side by side; returns when all are loaded.

        The first failure ends everything and raises `StageFailedError`.
        """
        self._plan = plan
        self._replicas = Replicas(plan.slots)
        self._failed = asyncio.get_running_loop().create_future()
        reserving = asyncio.ensure_future(self._begin(plan))
        waiting: set[asyncio.Future[Any]] = {reserving, self._failed}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        cause = self._failed.result() if self._failed.done() else None
        if cause is None and reserving.done() and (error := reserving.exception()):
            cause = str(error)
        self._failed = None
        if cause is not None:
            reserving.cancel()
            await self.stop()
            raise StageFailedError(cause)
        for ask in plan.asks:
            if ask.min_replicas < ask.max_replicas:
                self._spawn(self._scale(ask.stage, Scaler(ask.min_replicas, ask.max_replicas)))

    async def _begin(self, plan: Plan) -> None:
        pending = {slot.node for slot in plan.slots if slot.pending}
        await asyncio.gather(
            *(self._reservations.reserve(group, group.node in pending) for group in plan_groups(plan))
        )
        for slot in await self._joined(plan.slots):
            self._replicas.move(slot)
        starts = self._replicas.begin()
        await asyncio.gather(
            *(self._start(start.slot, start.replica) for start in starts if isinstance(start, Start))
        )

    async def add_gateway(self, gateway: Any) -> None:
        """Tell `gateway` every pool, now and at each change, by `gateway.pool(stage, version, replicas)`."""
        self._gateways.append(gateway)
        for stage in self._replicas.stages():
            self._push(gateway, stage)

    async def remove_gateway(self, gateway: Any) -> None:
        self._gateways = [other for other in self._gateways if other != gateway]

    async def report_dead(self, replica: str, reason: str) -> None:
        """A gateway's call to `replica` failed, or it makes no progress: replace it."""
        self._lost(replica, f"reported by a gateway: {reason}")

    async def progress(self) -> list[StageProgress]:
        """The state of every replica, in the plan's order."""
        return self._progress.rows(self._replicas.all(), self._running, time.monotonic())

    async def placement(self) -> list[PlacementRow]:
        """Every loaded replica with its process."""
        order = [replica.name for replica in self._replicas.all()]
        loaded = [
            (name, self._running[name])
            for name in order
            if name in self._running and self._running[name].loaded is not None
        ]
        now = await _figures([running.handle for _, running in loaded])
        return [
            PlacementRow(
                stage=running.slot.stage,
                replica=name,
                backend=running.slot.backend,
                node=running.slot.node,
                device=running.slot.device,
                threads=running.slot.threads,
                pid=running.born.result()[1],
                memory_mb=round(figures.memory_mb),
            )
            for (name, running), figures in zip(loaded, now, strict=True)
            if not isinstance(figures, BaseException)  # died this very moment, or hangs
        ]

    async def loaded(self) -> dict[str, Any]:
        """What each loaded replica said of itself (`actors.stage.Loaded`), by its name."""
        return {name: running.loaded for name, running in self._running.items() if running.loaded}

    async def grow(self, stage: str) -> str:
        """Start one replica of `stage` more, in a group of its own; returns its name.  Raises `PlacementError` or
        `NotReserved`."""
        inventory = await asyncio.to_thread(ray_inventory, self._cluster_file)
        taken = {slot.name for slot in self._plan.slots}
        number = next(n for n in range(len(taken) + 1) if f"{stage}-{n}" not in taken)
        slot = extend(self._plan, inventory, stage, f"{stage}-{number}")
        self._plan = replace(self._plan, slots=(*self._plan.slots, slot))  # others must not take its place
        try:
            await self._reservations.reserve(single_group(slot, self._plan.ask(stage)), slot.pending)
            [slot] = await self._joined([slot])
        except Exception:
            self._release(slot.name)
            raise
        self._carry_out(self._replicas.grow(slot))
        return slot.name

    async def shrink(self, stage: str) -> None:
        """Let one replica of `stage` finish its work and go; never the last one."""
        self._carry_out(self._replicas.shrink(stage))

    async def _scale(self, stage: str, scaler: Scaler) -> None:
        """Grow and shrink the pool of `stage` as its load asks."""
        work = Work()
        while not self._stopping:
            await asyncio.sleep(SCALE_EVERY_S)
            load = await self._load(stage, work)
            serving, wanted = len(self._replicas.pool(stage)), self._replicas.wanted(stage)
            step = scaler.decide(load, serving, wanted, time.monotonic())
            try:
                if step > 0 and time.monotonic() >= self._grows_from_s.get(stage, 0.0):
                    log.info(
                        "%s is %.1f s late: %s is started", stage, load.overdue_s, await self.grow(stage)
                    )
                elif step < 0:
                    log.info("%s has too little to do: one replica goes", stage)
                    await self.shrink(stage)
            except Exception as error:  # Ray's own included: the next look may go better
                self._cannot_grow(stage, str(error))

    def _cannot_grow(self, stage: str, reason: str) -> None:
        log.warning("%s cannot grow, which is tried again in %.0f s: %s", stage, NO_ROOM_S, reason)
        self._grows_from_s[stage] = time.monotonic() + NO_ROOM_S

    async def _load(self, stage: str, work: Work) -> Load:
        serving = [self._running[name].handle for name in self._replicas.pool(stage) if name in self._running]
        told, queues = await asyncio.gather(_figures(serving), _figures(self._gateways))
        replicas = [figures for figures in told if not isinstance(figures, BaseException)]
        overdue = [figures.queue.overdue_s for figures in replicas]
        overdue += [queue[stage].overdue_s for queue in queues if isinstance(queue, dict) and stage in queue]
        worked_s = {figures.replica: figures.busy_s for figures in replicas}
        return Load(max(overdue, default=0.0), work.busy(worked_s, time.monotonic()))

    async def stop(self) -> None:
        """End every replica; returns when their processes are gone."""
        self._stopping = True

        for task in self._tasks:
            task.cancel()
        self._replicas.stop()
        await asyncio.gather(*(self._end(name) for name in list(self._running)))
        self._reservations.clear()

    async def _joined(self, slots: Sequence[Slot]) -> Sequence[Slot]:
        """`slots` of the plan, whose groups are reserved, on the nodes that have joined for them: what is planned next
        sees there what they take."""
        if not any(slot.pending for slot in slots):
            return slots
        inventory = await asyncio.to_thread(ray_inventory, self._cluster_file)
        there = {node.node_id: node for node in inventory.nodes if not node.pending}
        got = {
            slot.name: there.get(await self._reservations.node_of(slot.name))
            for slot in slots
            if slot.pending
        }
        joined = [slot.on(node) if (node := got.get(slot.name)) else slot for slot in slots]
        self._plan = self._plan.with_slots(joined)
        return joined

    async def _start(self, slot: Slot, name: str) -> None:
        """Start the process `name`, load its model, and enter the outcome."""
        ask = self._plan.ask(slot.stage)
        try:
            slot = await self._place_again(slot)
        except (PlacementError, NotReserved) as error:
            self._lost(name, str(error))
            return
        except Exception as error:  # Ray's own: a node that dies while it is looked at
            self._lost(name, _cause(error))
            return
        if not self._replicas.loads(name):  # it was to go meanwhile
            self._carry_out(self._replicas.drained(name))
            return
        handle = self._create(slot, name, ask)
        running = self._running[name] = _Running(
            slot,
            handle,
            watched=asyncio.ensure_future(self._watch(name, handle)),
            born=asyncio.ensure_future(_call(handle.process.remote())),
        )
        try:
            running.loaded = await _call(handle.load.remote())
        except Exception as error:
            self._lost(name, _cause(error))
            return
        self._carry_out(self._replicas.loaded(name))

    async def _place_again(self, slot: Slot) -> Slot:
        """`slot` itself, or another place for it where its node is gone."""
        import ray

        nodes = await asyncio.to_thread(ray.nodes)
        if slot.node_id is None or any(n["Alive"] and n["NodeID"] == slot.node_id for n in nodes):
            return slot
        inventory = await asyncio.to_thread(ray_inventory, self._cluster_file)
        others = replace(self._plan, slots=tuple(s for s in self._plan.slots if s.name != slot.name))
        moved = replace(extend(others, inventory, slot.stage, slot.name), standby=slot.standby)
        self._reservations.forget(slot.name)
        await self._reservations.reserve(single_group(moved, self._plan.ask(slot.stage)), moved.pending)
        self._plan = replace(others, slots=(*others.slots, moved))
        [moved] = await self._joined([moved])
        self._replicas.move(moved)
        return moved

    def _create(self, slot: Slot, name: str, ask: Ask) -> Any:
        import ray

        from actors.stage import Stage

        return (
            ray.remote(Stage)
            .options(
                **replica_options(slot, ask),
                max_concurrency=_CONCURRENT_CALLS,
                scheduling_strategy=self._reservations.strategy(slot.name),
            )
            .remote(
                slot.stage,
                slot.backend,
                dict(ask.options),
                slot.local_device,
                ask.dtype,
                slot.threads,
                name,
            )
        )

    async def _watch(self, name: str, handle: Any) -> None:
        try:
            await _call(handle.watch.remote())
            reason = "its process ended"
        except Exception as error:
            reason = _cause(error)
        self._lost(name, reason)

    def _lost(self, name: str, reason: str) -> None:
        if self._stopping:
            return
        slot = next((replica.slot for replica in self._replicas.all() if replica.name == name), None)
        if self._failed is not None and slot is not None and not self._failed.done():
            named = (
                reason
                if reason.startswith(f"{slot.stage}: ")
                else f"{slot.stage}: {slot.backend} on {slot.device}: {reason}"
            )
            self._failed.set_result(named)
            return
        self._carry_out(self._replicas.lost(name, reason, time.monotonic()))

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Publish(stage):
                    for gateway in self._gateways:
                        self._push(gateway, stage)
                case Start(slot, replica):
                    self._spawn(self._start(slot, replica))
                case End(replica):
                    self._spawn(self._end(replica))
                case Drain(replica):
                    self._spawn(self._drain(replica))
                case Wake(at_s):
                    self._spawn(self._wake(at_s))
                case GaveUp(stage, reason):
                    self._cannot_grow(stage, reason)

    def _push(self, gateway: Any, stage: str) -> None:
        from actors.queue.link import Replica

        pool = [
            Replica(name, self._running[name].handle, self._running[name].loaded.capabilities.max_batch)
            for name in self._replicas.pool(stage)
        ]
        call = gateway.pool.remote(stage, self._replicas.version(stage), pool)
        self._spawn(self._pushed(gateway, call))

    async def _pushed(self, gateway: Any, call: Any) -> None:
        """A gateway that is gone needs no more news."""
        from ray.exceptions import RayActorError

        try:
            await _call(call)
        except RayActorError:
            await self.remove_gateway(gateway)

    async def _drain(self, name: str) -> None:
        """Let `name` finish; where its process is still to be made, `_start` sees that it is not wanted."""
        running = self._running.get(name)
        if running is not None:
            if running.loaded is not None:
                await _call(running.handle.drain.remote())
            self._carry_out(self._replicas.drained(name))

    async def _end(self, name: str) -> None:
        """End the process `name` and wait until it is gone; one that is still being made is awaited first."""
        import ray

        running = self._running.pop(name, None)
        if running is not None:
            self._ending.add(name)
            await asyncio.wait({running.born}, timeout=END_TIMEOUT_S)
            ray.kill(running.handle)
            await asyncio.wait({running.watched}, timeout=END_TIMEOUT_S)
            if running.born.done() and running.born.exception() is None:
                node, pid = running.born.result()
                if node == ray.get_runtime_context().get_node_id():
                    await _gone(pid)
            self._ending.discard(name)
        if name not in self._ending:
            self._release(place(name))

    def _release(self, slot: str) -> None:
        """Give back the place `slot` where no replica has it."""
        if any(replica.slot.name == slot for replica in self._replicas.all()) or self._stopping:
            return
        self._plan = replace(self._plan, slots=tuple(s for s in self._plan.slots if s.name != slot))
        self._reservations.forget(slot)

    async def _wake(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, at_s - time.monotonic()))
        self._carry_out(self._replicas.tick(time.monotonic()))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _call(ref: Any) -> Any:
    """Await a Ray call (awaiting the reference itself leaks, ray#45895)."""
    return await asyncio.wrap_future(ref.future())


async def _figures(actors: Sequence[Any]) -> list[Any]:
    """The figures of each of `actors`, or the exception of one that tells none in time."""
    told = (asyncio.wait_for(_call(actor.figures.remote()), FIGURES_TIMEOUT_S) for actor in actors)
    return await asyncio.gather(*told, return_exceptions=True)


async def _gone(pid: int) -> None:
    """Wait until process `pid` of this node is gone: Ray calls an actor dead a little before."""
    import psutil

    deadline = time.monotonic() + END_TIMEOUT_S
    while psutil.pid_exists(pid) and time.monotonic() < deadline:  # noqa: ASYNC110 -- nothing tells of it
        await asyncio.sleep(0.01)


def _cause(error: BaseException) -> str:
    """What really happened, without the traceback; a stage's own error speaks for itself."""
    from actors.stage import StageError

    cause = getattr(error, "cause", None) or error
    text = str(cause).strip()
    if isinstance(cause, StageError):
        return text
    return f"{type(cause).__name__}: {(text.splitlines() or [''])[0]}"


def start_supervisor(cluster_file: Path | None = None) -> Any:
    """The supervisor as an actor of the Ray that this process is connected to; it ends with this process."""
    import ray

    actor = ray.remote(Supervisor)
    return actor.options(num_cpus=0, max_restarts=0, max_concurrency=_CONCURRENT_CALLS).remote(cluster_file)
