"""Growth takes its place before it asks Ray, and waits long enough for a node that is still to come."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from actors.queue.pace import Counts
from orchestration import supervisor
from orchestration.asks import Ask
from orchestration.groups import Group
from orchestration.inventory import Inventory, Node
from orchestration.placement import PlacementError, Plan, Slot
from orchestration.replicas import Drain, End, GaveUp, Replicas
from orchestration.reservations import NotReserved, Reservations
from orchestration.scaling import Load, Work
from orchestration.supervisor import Supervisor, _Running

PRESENT = Node("head", 1.0, 10**10)
TO_COME = Node("worker-0", 4.0, 10**10, pending=True)
JOINED = Node("ip-10-0-0-7", 4.0, 10**10, node_id="7a")


class Growing(Supervisor):
    """Starts nothing, and notes what Ray is asked for."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan, self._replicas = plan, Replicas(plan.slots)
        self._reservations = Asked(self)
        self.asked: list[tuple[str, bool]] = []
        self.planned: list[str] = []
        self.refuses = False
        self.ended: list[Any] = []

    def note(self, group: Group, pending: bool) -> None:
        self.asked.append((group.node, pending))
        self.planned = [slot.name for slot in self._plan.slots]
        if self.refuses:
            raise NotReserved("no")

    def _carry_out(self, actions: list[Any]) -> None:
        self.ended += [action.replica for action in actions if isinstance(action, End)]

    def _create(self, slot: Slot, name: str, ask: Ask) -> Any:
        raise AssertionError(f"{name} was made")


class Asked(Reservations):
    """Ray reserves at once, on the node that has joined, or refuses."""

    def __init__(self, growing: Growing) -> None:
        super().__init__()
        self._growing = growing

    async def reserve(self, group: Group, pending: bool) -> None:
        self._growing.note(group, pending)

    async def node_of(self, slot: str) -> str | None:
        return JOINED.node_id


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> Growing:
    monkeypatch.setattr(supervisor, "ray_inventory", lambda _: Inventory((PRESENT, TO_COME)))
    made = Growing(Plan((), (Ask("stt", "model", "cpu", cpus=2.0, max_replicas=2),)))
    made._replicas._wanted["stt"] = 0
    return made


async def test_a_node_that_is_still_to_come_is_waited_for_as_such(growing: Growing) -> None:
    assert await growing.grow("stt") == "stt-0"
    assert growing.asked == [("worker-0", True)]


async def test_what_grew_on_a_node_to_come_is_counted_on_the_node_that_came(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventories = iter([Inventory((PRESENT, TO_COME)), Inventory((PRESENT, JOINED))])
    monkeypatch.setattr(
        supervisor, "ray_inventory", lambda _: next(inventories, Inventory((PRESENT, JOINED)))
    )
    await growing.grow("stt")
    [slot] = growing._plan.slots
    assert (slot.node, slot.node_id, slot.pending) == ("ip-10-0-0-7", "7a", False)
    assert growing._replicas.all()[0].slot == slot
    await growing.grow("stt")
    assert growing.asked == [("worker-0", True), ("ip-10-0-0-7", False)]
    with pytest.raises(PlacementError, match="ip-10-0-0-7 has 0 of 4 CPUs unreserved"):
        await growing.grow("stt")


async def test_its_place_is_taken_while_it_is_asked_for_and_given_back_if_it_is_refused(
    growing: Growing,
) -> None:
    growing.refuses = True
    with pytest.raises(NotReserved):
        await growing.grow("stt")
    assert growing.planned == ["stt-0"], "another stage that grows meanwhile looks elsewhere"
    assert not growing._plan.slots


async def test_a_replica_that_still_loads_when_it_is_to_go_is_not_asked_to_finish(growing: Growing) -> None:
    growing._replicas._wanted["stt"] = 1
    name = await growing.grow("stt")
    assert growing._replicas.shrink("stt") == [Drain(name)]
    growing._running[name] = SimpleNamespace(loaded=None)  # type: ignore[assignment]
    await growing._drain(name)
    assert growing.ended == [name]


async def test_a_replica_that_is_to_go_before_its_process_is_made_is_never_made(growing: Growing) -> None:
    growing._replicas._wanted["stt"] = 1
    name = await growing.grow("stt")

    async def placed_again(slot: Slot) -> Slot:
        for action in growing._replicas.shrink("stt"):
            assert isinstance(action, Drain)
            await growing._drain(action.replica)
        return slot

    growing._place_again = placed_again  # type: ignore[method-assign]
    await growing._start(growing._plan.slots[0], name)
    assert growing.ended == [name] and not growing._running
    await growing._end(name)
    assert not growing._plan.slots, "its place is given back"


async def test_a_place_that_ray_cannot_be_asked_for_is_tried_again_later(growing: Growing) -> None:
    name = await growing.grow("stt")

    async def placed_again(slot: Slot) -> Slot:
        raise ConnectionError("no answer of the head")

    growing._place_again = placed_again  # type: ignore[method-assign]
    await growing._start(growing._plan.slots[0], name)
    [replica] = growing._replicas.all()
    assert (replica.state, replica.reason) == ("waiting", "ConnectionError: no answer of the head")


async def test_at_the_start_a_place_that_cannot_be_had_is_a_failure(growing: Growing) -> None:
    name = await growing.grow("stt")
    growing._failed = asyncio.get_running_loop().create_future()

    async def placed_again(slot: Slot) -> Slot:
        raise PlacementError("no room")

    growing._place_again = placed_again  # type: ignore[method-assign]
    await growing._start(growing._plan.slots[0], name)
    assert growing._failed.result() == "stt: model on cpu: no room"


async def test_a_place_is_given_back_when_its_process_is_gone_and_not_before(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.kill", lambda _: None)
    growing._replicas._wanted["stt"] = 1
    name = await growing.grow("stt")
    loop = asyncio.get_running_loop()
    gone, born = loop.create_future(), loop.create_future()
    born.set_exception(ConnectionError("killed before it answered"))
    growing._running[name] = _Running(growing._plan.slots[0], None, watched=gone, born=born)  # type: ignore[arg-type]
    growing._replicas.lost(name, "cannot load", 0.0)
    ending = asyncio.ensure_future(growing._end(name))
    await asyncio.sleep(0)
    assert growing._replicas.shrink("stt") == [End(name)]
    await growing._end(name)
    assert [slot.name for slot in growing._plan.slots] == [name], "its process still ends"
    gone.set_result(None)
    await ending
    assert not growing._plan.slots


class Told:
    """An actor whose `figures` come; without any, never."""

    def __init__(self, figures: Any = None) -> None:
        self._figures = figures
        self.figures = SimpleNamespace(remote=lambda: self)

    def future(self) -> Future[Any]:
        coming: Future[Any] = Future()
        if self._figures is not None:
            coming.set_result(self._figures)
        return coming


async def test_one_that_tells_no_figures_does_not_keep_a_pool_as_it_is(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIGURES_TIMEOUT_S", 0.01)
    growing._gateways = [Told(), Told({"stt": Counts().figures(1, 0, 3.0, 3.0)})]
    assert await growing._load("stt", Work()) == Load(3.0, 0.0)


async def test_a_stage_that_could_not_grow_waits_before_it_tries_again(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SCALE_EVERY_S", 0.0)
    Supervisor._carry_out(growing, [GaveUp("stt", "out of memory")])
    looks = iter([1, 1, 1])

    def decide(*_: Any) -> int:
        growing._stopping = (step := next(looks, None)) is None
        return step or 0

    await growing._scale("stt", SimpleNamespace(decide=decide))  # type: ignore[arg-type]
    assert not growing.asked
    growing._stopping = False
    monkeypatch.setitem(growing._grows_from_s, "stt", 0.0)
    looks = iter([1])
    await growing._scale("stt", SimpleNamespace(decide=decide))  # type: ignore[arg-type]
    assert growing.asked


async def test_growth_that_ray_hinders_is_tried_again(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SCALE_EVERY_S", 0.0)
    monkeypatch.setattr(supervisor, "NO_ROOM_S", 0.0)
    tries = []

    async def grow(stage: str) -> str:
        tries.append(stage)
        growing._stopping = len(tries) == 2
        raise ConnectionError("no answer of the head")

    scaler = SimpleNamespace(decide=lambda *_: 1)
    growing.grow = grow  # type: ignore[method-assign]
    await growing._scale("stt", scaler)  # type: ignore[arg-type]
    assert tries == ["stt", "stt"]
