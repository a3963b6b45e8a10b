"""Which replica serves, waits, is replaced or drained: pure decisions, time passed in.

The supervisor tells what happened and carries out the actions that come back, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestration.placement import Slot

State = Literal["loading", "serving", "standby", "draining", "waiting"]
FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
GROWTH_TRIES = 3
"""Loads in a row that may fail before a replica beyond the minimum is given up."""


def place(replica: str) -> str:
    """The name of the slot that `replica` runs in."""
    return replica.partition(".")[0]


@dataclass(frozen=True)
class Start:
    """Start a replica in `slot` and load it."""

    slot: Slot
    replica: str


@dataclass(frozen=True)
class End:
    """Make sure that the process of `replica` is gone; a place that is nobody's then is given back."""

    replica: str


@dataclass(frozen=True)
class Drain:
    """Let `replica` finish what it has, then call `Replicas.drained`."""

    replica: str


@dataclass(frozen=True)
class Publish:
    """Tell every gateway the pool of `stage`: `Replicas.pool(stage)` in its `version`."""

    stage: str


@dataclass(frozen=True)
class Wake:
    """Call `Replicas.tick` at `at_s`."""

    at_s: float


@dataclass(frozen=True)
class GaveUp:
    """`stage` does without a replica by which it had grown: it cannot be loaded."""

    stage: str
    reason: str


Action = Start | End | Drain | Publish | Wake | GaveUp


@dataclass
class Replica:
    """One place and the process that now fills it."""

    slot: Slot
    name: str
    """`stt-0`, then `stt-0.1` for its first replacement: one name is one process."""
    state: State
    number: int = 0
    """Processes that this place has had before."""
    failed_loads: int = 0
    """In a row."""
    reason: str = ""
    """Why the last one ended."""
    retry_at_s: float = 0.0
    grown: bool = False
    """Whether it is beyond the minimum."""


class Replicas:
    """The replicas of all stages."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._all = [Replica(slot, slot.name, "loading") for slot in slots]
        self._wanted: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        for replica in self._all:
            stage = replica.slot.stage
            self._wanted[stage] = self._wanted.get(stage, 0) + (not replica.slot.standby)
        self._stopped = False

    def begin(self) -> list[Action]:
        """Start everything, side by side."""
        return [Start(replica.slot, replica.name) for replica in self._all]

    def pool(self, stage: str) -> list[str]:
        """Names of the replicas that take work."""
        return [r.name for r in self._all if r.slot.stage == stage and r.state == "serving"]

    def wanted(self, stage: str) -> int:
        """How many are to take work."""
        return self._wanted.get(stage, 0)

    def version(self, stage: str) -> int:
        """Grows with every `Publish` of `stage`."""
        return self._versions.get(stage, 0)

    def stages(self) -> list[str]:
        return list(self._wanted)

    def all(self) -> tuple[Replica, ...]:
        return tuple(self._all)

    def loaded(self, name: str) -> list[Action]:
        """`name` is ready: it serves where the pool is short of one, otherwise it stands by."""
        replica = self._find(name)
        if replica is None or replica.state != "loading":
            return []
        replica.failed_loads, replica.reason = 0, ""
        stage = replica.slot.stage
        if len(self.pool(stage)) >= self._wanted[stage]:
            replica.state = "standby"
            return []
        replica.state = "serving"
        return [self._publish(stage)]

    def lost(self, name: str, reason: str, now_s: float) -> list[Action]:
        """The process `name` died, or could not load: stand-in first, then replacement.

        A load that fails again and again is tried at growing intervals (1 s, 2 s, … 60 s), or, of a replica beyond the
        minimum, given up: as long as one is awaited its stage neither grows nor shrinks.
        """
        replica = self._find(name)
        if replica is None or replica.state == "waiting":
            return []
        was, stage = replica.state, replica.slot.stage
        actions: list[Action] = [End(name)]
        replica.reason = reason
        if was == "draining" or self._stopped:
            self._all.remove(replica)
            return actions
        replica.state = "waiting"
        if was == "serving":
            self._promote(stage)
            actions.insert(0, self._publish(stage))
        if was == "loading":
            replica.failed_loads += 1
            if replica.grown and replica.failed_loads >= GROWTH_TRIES:
                self._all.remove(replica)
                self._wanted[stage] -= 1
                return [*actions, GaveUp(stage, reason)]
            delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (replica.failed_loads - 1))
            replica.retry_at_s = now_s + delay_s
            return [*actions, Wake(replica.retry_at_s)]
        return [*actions, self._start(replica)]

    def tick(self, now_s: float) -> list[Action]:
        """Start what has waited long enough."""
        due = [r for r in self._all if r.state == "waiting" and r.retry_at_s <= now_s]
        return [] if self._stopped else [self._start(replica) for replica in due]

    def loads(self, name: str) -> bool:
        """Whether the process `name` is to be made and loaded, still."""
        replica = self._find(name)
        return replica is not None and replica.state == "loading"

    def move(self, slot: Slot) -> None:
        """The place of that name is now this one."""
        for replica in self._all:
            if replica.slot.name == slot.name:
                replica.slot = slot

    def grow(self, slot: Slot) -> list[Action]:
        """One serving replica more, in `slot`."""
        replica = Replica(slot, slot.name, "loading", grown=True)
        self._all.append(replica)
        self._wanted[slot.stage] += 1
        return [Start(slot, replica.name)]

    def shrink(self, stage: str) -> list[Action]:
        """One serving replica fewer: the newest place leaves the pool at once and goes when it is done.

        Nothing where only one is wanted.
        """
        if self._wanted.get(stage, 0) <= 1:
            return []
        candidates = [r for r in self._all if r.slot.stage == stage and r.state != "draining"]
        leaving = next((r for r in reversed(candidates) if not r.slot.standby), candidates[-1])
        self._wanted[stage] -= 1
        was = leaving.state
        if was == "waiting":
            self._all.remove(leaving)
            return [End(leaving.name)]
        leaving.state = "draining"
        if was != "serving":
            return [Drain(leaving.name)]
        self._promote(stage)
        return [self._publish(stage), Drain(leaving.name)]

    def drained(self, name: str) -> list[Action]:
        """`name`, which was to finish, has nothing left to do."""
        replica = self._find(name)
        if replica is None or replica.state != "draining":
            return []
        self._all.remove(replica)
        return [End(name)]

    def stop(self) -> list[Action]:
        """End everything; nothing is replaced from now on."""
        self._stopped = True
        ending: list[Action] = [End(replica.name) for replica in self._all if replica.state != "waiting"]
        self._all.clear()
        return ending

    def _find(self, name: str) -> Replica | None:
        return next((replica for replica in self._all if replica.name == name), None)

    def _start(self, replica: Replica) -> Start:
        replica.number += 1
        replica.name = f"{replica.slot.name}.{replica.number}"
        replica.state = "loading"
        return Start(replica.slot, replica.name)

    def _promote(self, stage: str) -> None:
        """A loaded stand-by serves from now on, where the pool is short."""
        standby = [r for r in self._all if r.slot.stage == stage and r.state == "standby"]
        if standby and len(self.pool(stage)) < self._wanted[stage]:
            standby[0].state = "serving"

    def _publish(self, stage: str) -> Publish:
        self._versions[stage] = self.version(stage) + 1
        return Publish(stage)
