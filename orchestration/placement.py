"""What runs where: asks and an inventory in, a plan out.  Pure: nothing is started, nothing is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from actors.registry import STAGES
from orchestration.asks import KINDS, Ask, DeviceAsk, parse_device, show_bytes
from orchestration.inventory import Inventory, Node
from orchestration.ledger import (
    LIGHT_STAGES,
    GpuUse,
    NodeUse,
    cpus_for,
    gpu_bytes,
    gpu_fraction,
    ram_bytes,
    threads_for,
)


class PlacementError(ValueError):
    """An ask that cannot be met; names the stage, the flag, the ask, what exists and the nearest plan that fits."""


@dataclass(frozen=True)
class Slot:
    """The place of one replica; its replacements get the same one."""

    name: str
    """`stt-0`."""
    stage: str
    backend: str
    node: str
    node_id: str | None
    device: str
    """In the user's numbering: `cpu`, `mps`, `cuda:1`, `cuda:0+cuda:1`."""
    threads: int
    cpus: float
    memory_bytes: int
    """RAM, estimated."""
    gpus: tuple[int, ...] = ()
    cuda_ids: tuple[str, ...] = ()
    """What CUDA_VISIBLE_DEVICES holds in the replica; empty also for a node that is still pending."""
    gpu_share: float = 0.0
    """GPUs that Ray reserves for it: a fraction of one, or a whole number."""
    gpu_memory_bytes: int = 0
    standby: bool = False
    pending: bool = False
    why: str = ""
    rejected: tuple[str, ...] = ()
    """Places that were looked at before and why they were not taken."""

    @property
    def local_device(self) -> str:
        """The device as the replica itself sees it."""
        return "+".join(f"cuda:{index}" for index in range(len(self.gpus))) if self.gpus else self.device

    def on(self, node: Node) -> Slot:
        """The same place on `node`, which was still to come when it was planned."""
        ids = {gpu.index: gpu.cuda_id for gpu in node.gpus}
        known = all(index in ids for index in self.gpus)  # the cluster file may have promised more
        cuda_ids = tuple(ids[index] for index in self.gpus) if known else ()
        return replace(self, node=node.name, node_id=node.node_id, cuda_ids=cuda_ids, pending=False)


@dataclass(frozen=True)
class Plan:
    """Every replica's place."""

    slots: tuple[Slot, ...]
    asks: tuple[Ask, ...]
    notes: tuple[str, ...] = ()

    def ask(self, stage: str) -> Ask:
        return next(ask for ask in self.asks if ask.stage == stage)

    def with_slots(self, slots: Sequence[Slot]) -> Plan:
        """The plan with `slots` in place of those of the same names."""
        new = {slot.name: slot for slot in slots}
        return replace(self, slots=tuple(new.get(slot.name, slot) for slot in self.slots))

    def of(self, stage: str) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if slot.stage == stage)


def make_plan(asks: Sequence[Ask], inventory: Inventory) -> Plan:
    """Place every stage's minimum replicas and standbys.  Raises `PlacementError`."""
    try:
        return _plan(asks, inventory)
    except _NoPlaceError as error:
        raise PlacementError(f"{error} {_nearest(error.ask, asks, inventory)}") from None


def extend(plan: Plan, inventory: Inventory, stage: str, name: str) -> Slot:
    """A place for one replica of `stage` more, called `name`, beside what `plan` holds.  Raises `PlacementError`."""
    uses = [NodeUse.empty(node) for node in inventory.nodes]
    there = {use.node.name: use for use in uses}
    for slot in plan.slots:
        if slot.node in there:
            _take(there[slot.node], plan.ask(slot.stage), slot)
    ask = plan.ask(stage)
    wanted = parse_device(ask.device)
    grown = DeviceAsk(wanted[0].kind) if len(wanted) == 1 else wanted[len(plan.of(stage)) % len(wanted)]
    try:
        return _place(ask, grown, name, uses, standby=False)
    except _NoPlaceError as error:
        raise PlacementError(str(error)) from None


class _NoPlaceError(Exception):
    def __init__(self, ask: Ask, text: str) -> None:
        super().__init__(text)
        self.ask = ask


def _plan(asks: Sequence[Ask], inventory: Inventory) -> Plan:
    uses = [NodeUse.empty(node) for node in inventory.nodes]
    slots: list[Slot] = []
    for ask, device, standby in _order(asks):
        number = sum(slot.stage == ask.stage for slot in slots)
        slots.append(_place(ask, device, f"{ask.stage}-{number}", uses, standby))
    slots.sort(key=lambda slot: (STAGES.index(slot.stage), slot.name))
    return Plan(tuple(slots), tuple(asks), tuple(_notes(uses)))


def _order(asks: Sequence[Ask]) -> Iterator[tuple[Ask, DeviceAsk, bool]]:
    """Each replica to place: those with the least choice and the largest first, standbys after all others."""

    def choice(ask: Ask) -> tuple[bool, bool, int, int]:
        wanted = parse_device(ask.device)
        return (
            not any(device.gpus for device in wanted),
            wanted[0].kind == "auto",
            -ask.memory_bytes.get("cuda", 0),
            STAGES.index(ask.stage),
        )

    ordered = sorted(asks, key=choice)
    for ask in ordered:
        wanted = parse_device(ask.device)
        for number in range(max(ask.min_replicas, len(wanted))):
            yield ask, wanted[number % len(wanted)], False
    for ask in ordered:
        wanted = parse_device(ask.device)
        for number in range(ask.standby):
            yield ask, wanted[-1 - number % len(wanted)], True


def _place(ask: Ask, device: DeviceAsk, name: str, uses: list[NodeUse], standby: bool) -> Slot:
    _refuse_impossible(ask, device, uses)
    rejected: list[str] = []
    for kind in _kinds(ask, device):
        accepted: list[tuple[tuple[float, ...], NodeUse, tuple[GpuUse, ...]]] = []
        for order, use in enumerate(uses):
            refusal = use.refuse_node(ask, ram_bytes(ask, kind))
            if refusal:
                rejected.append(f"{kind}: {refusal}")
                continue
            for gpus in _gpu_choices(use, kind, device, rejected):
                reason = use.refuse_gpus(ask, gpus) if kind == "cuda" else _refuse_mps(ask, use, kind)
                if reason:
                    rejected.append(reason)
                else:
                    accepted.append((_preference(order, use, gpus), use, gpus))
        if accepted:
            _, use, gpus = min(accepted, key=lambda choice: choice[0])
            why = _why(ask, device, kind, use, gpus)
            slot = _slot(ask, name, kind, use, gpus, standby, why, tuple(rejected))
            _take(use, ask, slot)
            return slot
    exists = "; ".join(use.describe() for use in uses) or "no node"
    asked = f"{ask.flag} {device}" + ("" if not ask.labels else f" with labels {dict(ask.labels)}")
    raise _NoPlaceError(
        ask,
        f"{ask.stage} ({ask.backend}, {name}) has no place: asked {asked} ({ask.device_from}). "
        f"{'; '.join(dict.fromkeys(rejected)) or 'No node has such a device'}. There is: {exists}.",
    )


def _refuse_impossible(ask: Ask, device: DeviceAsk, uses: list[NodeUse]) -> None:
    """Errors that are better said in words of their own than as a list of places that don't fit."""
    nodes = [use.node for use in uses if not use.refuse_node(replace(ask, cpus=0), 0)]
    head = f"{ask.stage}: {ask.flag} {device} ({ask.device_from})"
    systems = {node.system for node in nodes}
    if device.kind == "cuda" and systems == {"macos"}:
        raise _NoPlaceError(ask, f"{head}: macOS has no CUDA; use mps, cpu or auto.")
    if device.kind == "mps" and systems == {"linux"}:
        raise _NoPlaceError(ask, f"{head}: Linux has no MPS, which is Apple's; use cuda, cpu or auto.")
    if device.kind not in ("auto", *ask.supports) and ask.own_device:
        raise _NoPlaceError(ask, f"{head}: backend {ask.backend} runs on {', '.join(ask.supports)} only.")
    with_gpus = [node for node in nodes if node.gpus]
    if device.gpus and len(with_gpus) > 1:
        names = ", ".join(node.name for node in with_gpus)
        raise _NoPlaceError(
            ask,
            f"{head}: ambiguous, as nodes {names} all have GPUs; name one by --{ask.stage}_labels (GPU numbers "
            "count on one node), or ask for cuda.",
        )


def _kinds(ask: Ask, device: DeviceAsk) -> tuple[str, ...]:
    if device.kind == "auto":
        return ("cpu",) if ask.stage in LIGHT_STAGES else tuple(k for k in KINDS if k in ask.supports)
    if device.kind not in ask.supports and not ask.own_device:
        return ("cpu",)
    return (device.kind,)


def _gpu_choices(
    use: NodeUse, kind: str, device: DeviceAsk, rejected: list[str]
) -> Iterator[tuple[GpuUse, ...]]:
    """The GPU sets of a node worth a look; one empty set for devices that are not numbered."""
    if kind == "cpu":
        yield ()
    elif kind == "mps":
        if use.node.mps:
            yield ()
    elif device.gpus:
        there = {gpu.gpu.index: gpu for gpu in use.gpus}
        missing = [f"cuda:{index}" for index in device.gpus if index not in there]
        if missing:
            rejected.append(f"node {use.node.name} has no {', '.join(missing)}")
        else:
            yield tuple(there[index] for index in device.gpus)
    else:
        yield from ((gpu,) for gpu in use.gpus)


def _refuse_mps(ask: Ask, use: NodeUse, kind: str) -> str | None:
    share = ask.gpu_fraction or (1.0 if kind == "cpu" else 0.2)
    if kind == "mps" and use.mps_fraction + share > 1 + 1e-9:
        return f"mps of {use.node.name} has {1 - use.mps_fraction:.0%} unreserved, {share:.0%} asked"
    return None


def _preference(order: int, use: NodeUse, gpus: tuple[GpuUse, ...]) -> tuple[float, ...]:
    """Smaller is better: present nodes, then nodes to come that are needed anyway, then GPUs with few replicas on
    them, then large ones, then the first."""
    pending = float(use.node.pending) * (1.0 if use.replicas else 2.0)
    if gpus:
        busy = max(len(gpu.replicas) for gpu in gpus)
        return (pending, busy, -min(gpu.gpu.total_bytes for gpu in gpus), order, gpus[0].gpu.index)
    return (pending, use.threads / max(use.node.cpus, 1.0), order)


def _why(ask: Ask, device: DeviceAsk, kind: str, use: NodeUse, gpus: tuple[GpuUse, ...]) -> str:
    if device.kind == kind:
        numbered = "" if device.gpus or kind != "cuda" else f": {_gpu_reason(gpus)}"
        return f"asked by {ask.device_from}{numbered}"
    if device.kind != "auto":
        return f"{ask.backend} runs on {', '.join(ask.supports)} only, so {ask.device_from} does not apply"
    if ask.stage in LIGHT_STAGES:
        return "auto: a small model stays on the CPU"
    if kind == "cuda":
        return f"auto: {_gpu_reason(gpus)}"
    missing = [k for k in KINDS[: KINDS.index(kind)]]
    cannot = [k for k in missing if k not in ask.supports]
    reasons = [f"{ask.backend} does not run on {', '.join(cannot)}"] if cannot else []
    absent = [k for k in missing if k in ask.supports]
    if absent:
        reasons.append(f"no {' or '.join(absent)} with room")
    return f"auto: {' and '.join(reasons) or 'the first choice'}"


def _gpu_reason(gpus: tuple[GpuUse, ...]) -> str:
    beside = gpus[0].replicas
    return f"it fits beside {', '.join(beside)}" if beside else "a GPU of its own"


def _slot(
    ask: Ask,
    name: str,
    kind: str,
    use: NodeUse,
    gpus: tuple[GpuUse, ...],
    standby: bool,
    why: str,
    rejected: tuple[str, ...],
) -> Slot:
    node = use.node
    share = sum(gpu_fraction(ask, gpu.gpu, len(gpus)) for gpu in gpus)
    if kind == "mps":
        share = ask.gpu_fraction or 0.2
    return Slot(
        name=name,
        stage=ask.stage,
        backend=ask.backend,
        node=node.name,
        node_id=node.node_id,
        device="+".join(f"cuda:{gpu.gpu.index}" for gpu in gpus) or kind,
        threads=threads_for(ask, node),
        cpus=cpus_for(ask),
        memory_bytes=ram_bytes(ask, kind),
        gpus=tuple(gpu.gpu.index for gpu in gpus),
        cuda_ids=() if node.pending else tuple(gpu.gpu.cuda_id for gpu in gpus),
        gpu_share=round(share, 4),
        gpu_memory_bytes=gpu_bytes(ask, gpus[0].gpu) if gpus else 0,
        standby=standby,
        pending=node.pending,
        why=why,
        rejected=rejected,
    )


def _take(use: NodeUse, ask: Ask, slot: Slot) -> None:
    """Enter `slot` in the ledger."""
    use.cpus += slot.cpus
    use.threads += slot.threads
    use.bytes += slot.memory_bytes
    use.replicas.append(slot.name)
    for name, amount in ask.resources.items():
        use.resources[name] = use.resources.get(name, 0.0) + amount
    if slot.device == "mps":
        use.mps_fraction += slot.gpu_share
    for gpu in use.gpus:
        if gpu.gpu.index in slot.gpus:
            gpu.fraction += slot.gpu_share / len(slot.gpus)
            gpu.bytes += slot.gpu_memory_bytes // len(slot.gpus)
            gpu.replicas.append(slot.name)


def _notes(uses: list[NodeUse]) -> Iterator[str]:
    for use in uses:
        if use.replicas and use.threads > use.node.cpus:
            yield (
                f"{use.node.name}: {use.threads} threads on {use.node.cpus:g} cores; "
                "the stages of a turn take turns"
            )


def _nearest(failed: Ask, asks: Sequence[Ask], inventory: Inventory) -> str:
    """The smallest change of the failed stage's ask that gives a plan, as flags."""
    at = f"--{failed.stage}"
    free: dict[str, object] = {"gpu_fraction": None, "gpu_memory_bytes": None}
    one: dict[str, object] = {"min_replicas": 1, "standby": 0}
    steps: list[tuple[str, dict[str, object]]] = []
    for device in dict.fromkeys((failed.device, "cuda", "mps", "auto", "cpu")):
        wanted = {"device": device, "own_device": True}
        flag = "" if device == failed.device else f"{at}_device {device}"
        steps.append((flag, wanted))
        steps.append((f"{flag} {at}_replicas 1 {at}_standby 0", {**wanted, **one}))
        steps.append((f"{flag} without {at}_gpu_fraction and {at}_gpu_memory", {**wanted, **free}))
    steps.append((f"{at}_cpus 0", {"cpus": 0.0}))
    steps.append((f"without {at}_labels and {at}_resources", {"labels": {}, "resources": {}}))
    trials = [
        (words, [trial if ask.stage == failed.stage else ask for ask in asks])
        for words, change in steps
        if (trial := replace(failed, **change))  # type: ignore[arg-type]  # names of Ask's own fields
        != replace(failed, own_device=trial.own_device)
    ]
    trials.append(("--device auto", [a if a.own_device else replace(a, device="auto") for a in asks]))
    for words, changed in trials:
        try:
            plan = _plan(changed, inventory)
        except _NoPlaceError:
            continue
        places = ", ".join(f"{slot.name} on {slot.device} of {slot.node}" for slot in plan.of(failed.stage))
        return f"Nearest plan that fits: {words.strip()} ({places})."
    need = max(failed.memory_bytes.values(), default=0)
    size = f" It needs about {show_bytes(need)}." if need else ""
    return f"No change of {failed.stage} alone gives a plan that fits.{size}"
