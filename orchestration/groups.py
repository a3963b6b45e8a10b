"""The plan as Ray placement groups: one a node with one bundle a GPU slot, and one more bundle for its CPU stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestration.asks import Ask
from orchestration.placement import Plan, Slot

_SMALLEST_BUNDLE_CPUS = 0.001
"""Ray refuses an empty bundle."""


@dataclass(frozen=True)
class Group:
    """What one placement group reserves, and which bundle each replica uses."""

    node: str
    bundles: tuple[dict[str, float], ...]
    labels: dict[str, str]
    """Labels that its node must have."""
    of: dict[str, int] = field(default_factory=dict)
    """Bundle by the slot's name."""


def plan_groups(plan: Plan) -> list[Group]:
    """The groups of the minimum plan, one a node."""
    nodes = dict.fromkeys(slot.node for slot in plan.slots)
    asks = {ask.stage: ask for ask in plan.asks}
    return [_group([slot for slot in plan.slots if slot.node == node], asks) for node in nodes]


def single_group(slot: Slot, ask: Ask) -> Group:
    """The one-bundle group of a replica beyond the minimum."""
    return _group([slot], {slot.stage: ask})


def _group(slots: Sequence[Slot], asks: Mapping[str, Ask]) -> Group:
    first = slots[0]
    places: list[tuple[tuple[int, ...], list[Slot]]] = []
    for gpus in _gpu_sets(slots):
        places.append((gpus, [slot for slot in slots if set(slot.gpus) & set(gpus)]))
    unnumbered = [slot for slot in slots if not slot.gpus]
    if unnumbered:
        places.append(((), unnumbered))
    labels = {"ray.io/node-id": first.node_id} if first.node_id else dict(asks[first.stage].labels)
    of = {slot.name: number for number, (_, members) in enumerate(places) for slot in members}
    bundles = tuple(_bundle(gpus, members, asks) for gpus, members in places)
    return Group(first.node, bundles, labels, of)


def _gpu_sets(slots: Sequence[Slot]) -> list[tuple[int, ...]]:
    """GPUs of one node in sets that share no replica, by their first number."""
    sets: list[set[int]] = []
    for slot in slots:
        joined = set(slot.gpus)
        if joined:
            for other in [other for other in sets if other & joined]:
                joined |= other
                sets.remove(other)
            sets.append(joined)
    return sorted(tuple(sorted(gpus)) for gpus in sets)


def _bundle(gpus: tuple[int, ...], members: Sequence[Slot], asks: Mapping[str, Ask]) -> dict[str, float]:
    bundle: dict[str, float] = {}
    cpus = round(sum(slot.cpus for slot in members), 4)
    if gpus or any(slot.device == "mps" for slot in members):
        bundle["GPU"] = float(len(gpus) or 1)
    if cpus or not bundle:
        bundle["CPU"] = cpus or _SMALLEST_BUNDLE_CPUS
    for slot in members:
        for name, amount in asks[slot.stage].resources.items():
            bundle[name] = bundle.get(name, 0.0) + amount
    return bundle


def replica_options(slot: Slot, ask: Ask) -> dict[str, Any]:
    """Ray's actor options for a replica in `slot`, but for its placement group.

    The replica sees exactly its own GPUs: CUDA_VISIBLE_DEVICES is set from the plan (empty on the CPU, where Ray would
    leave it alone), so that a pin survives restarts and Ray's own numbering never matters.
    """
    environment: dict[str, str] = {}
    if not slot.gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    elif slot.cuda_ids:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(slot.cuda_ids)
        environment["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"] = "1"
    if slot.device == "mps":
        # What torch has not for MPS is computed on the CPU, instead of an error.
        environment["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    runtime_env: dict[str, Any] = {"env_vars": environment}
    if ask.python:
        runtime_env["py_executable"] = ask.python
    return {
        "num_cpus": slot.cpus,
        "num_gpus": slot.gpu_share,
        "resources": dict(ask.resources) or None,
        "runtime_env": runtime_env,
        "max_restarts": 0,
        "max_task_retries": 0,
    }
