"""What is taken on each node and GPU while a plan is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestration.asks import Ask, show_bytes
from orchestration.inventory import Gpu, Node

PROCESS_BYTES = 350_000_000
"""RAM of a replica's process before its model: Python, Ray, torch and transformers imported (measured)."""
CUDA_CONTEXT_BYTES = 500_000_000
"""GPU memory that each process takes for its CUDA context and libraries, about."""
UNKNOWN_GPU_FRACTION = 0.2
"""Share of a GPU reserved for a replica where neither the ask nor the sizes known give one."""
LIGHT_STAGES = ("vad", "turn")
"""Stages whose model is so small that one thread is best, and that stay on the CPU unless told otherwise."""
MAX_DEFAULT_THREADS = 4
DEFAULT_CPUS = {"vad": 0.1, "turn": 0.1}
OTHER_DEFAULT_CPUS = 0.25
"""Small Ray reservations: the stages of a turn take turns on the cores."""


@dataclass
class GpuUse:
    gpu: Gpu
    fraction: float = 0.0
    bytes: int = 0
    replicas: list[str] = field(default_factory=list)

    def describe(self) -> str:
        gpu = self.gpu
        text = f"cuda:{gpu.index} ({gpu.name}"
        if gpu.total_bytes:
            text += f", {show_bytes(gpu.total_bytes)}, {show_bytes(gpu.free_bytes - self.bytes)} free"
        text += f", {1 - self.fraction:.0%} unreserved)"
        return text + (f" beside {', '.join(self.replicas)}" if self.replicas else "")


@dataclass
class NodeUse:
    node: Node
    gpus: list[GpuUse]
    cpus: float = 0.0
    threads: int = 0
    bytes: int = 0
    mps_fraction: float = 0.0
    replicas: list[str] = field(default_factory=list)
    resources: dict[str, float] = field(default_factory=dict)

    @classmethod
    def empty(cls, node: Node) -> NodeUse:
        return cls(node, [GpuUse(gpu) for gpu in node.gpus])

    def describe(self) -> str:
        node = self.node
        devices = [use.describe() for use in self.gpus] + (["mps"] if node.mps else [])
        memory = (
            f", {show_bytes(max(0, node.memory_bytes - self.bytes))} RAM free" if node.memory_bytes else ""
        )
        state = " (pending)" if node.pending else ""
        return f"node {node.name}{state}: {node.cpus:g} CPUs{memory}, " + (", ".join(devices) or "no GPU")

    def refuse_node(self, ask: Ask, ram_bytes: int) -> str | None:
        """Why a replica of `ask` that needs `ram_bytes` can't be on this node at all; None: it can."""
        node = self.node
        wrong = [
            f"{key}={value}"
            for key, value in ask.labels.items()
            if not label_matches(value, node.labels.get(key))
        ]
        if wrong:
            return f"node {node.name} lacks the label {', '.join(wrong)}"
        for name, amount in ask.resources.items():
            left = node.resources.get(name, 0.0) - self.resources.get(name, 0.0)
            if left + 1e-9 < amount:
                return f"node {node.name} has {left:g} of resource {name}, {amount:g} asked"
        if node.memory_bytes and self.bytes + ram_bytes > node.memory_bytes:
            return (
                f"node {node.name} has {show_bytes(max(0, node.memory_bytes - self.bytes))} RAM left, "
                f"{show_bytes(ram_bytes)} needed"
            )
        if self.cpus + cpus_for(ask) > node.cpus + 1e-9:
            return (
                f"node {node.name} has {node.cpus - self.cpus:g} of {node.cpus:g} CPUs unreserved, "
                f"{cpus_for(ask):g} asked"
            )
        return None

    def refuse_gpus(self, ask: Ask, chosen: Sequence[GpuUse]) -> str | None:
        """Why a replica can't be on `chosen` GPUs of this node; None: it can."""
        span = len(chosen)
        for use in chosen:
            at = f"cuda:{use.gpu.index} of {self.node.name}"
            need = math.ceil(gpu_bytes(ask, use.gpu) / span)
            budget = ask.gpu_fraction * use.gpu.total_bytes if ask.gpu_fraction else None
            estimate = math.ceil(ask.memory_bytes.get("cuda", 0) / span)
            if budget is not None and use.gpu.total_bytes and estimate > budget:
                return f"{at}: a share of {ask.gpu_fraction:g} is {show_bytes(budget)}, {show_bytes(estimate)} needed"
            if ask.gpu_memory_bytes and estimate > ask.gpu_memory_bytes:
                return f"{at}: {show_bytes(ask.gpu_memory_bytes)} asked, {show_bytes(estimate)} needed"
            if use.gpu.total_bytes and use.bytes + need > use.gpu.free_bytes:
                return (
                    f"{at} has {show_bytes(max(0, use.gpu.free_bytes - use.bytes))} of "
                    f"{show_bytes(use.gpu.total_bytes)} free, {show_bytes(need)} needed"
                )
            fraction = gpu_fraction(ask, use.gpu, span)
            if use.fraction + fraction > 1 + 1e-9:
                return f"{at} has {1 - use.fraction:.0%} unreserved, {fraction:.0%} asked"
        return None


def label_matches(asked: str, found: str | None) -> bool:
    """Ray's label selectors: `value`, `!value`, `in(a,b)`, `!in(a,b)`."""
    wanted, negated = (asked[1:], True) if asked.startswith("!") else (asked, False)
    if wanted.startswith("in(") and wanted.endswith(")"):
        matched = found in [part.strip() for part in wanted[3:-1].split(",")]
    else:
        matched = found == wanted
    return matched != negated


def threads_for(ask: Ask, node: Node) -> int:
    if ask.threads:
        return ask.threads
    return 1 if ask.stage in LIGHT_STAGES else max(1, min(MAX_DEFAULT_THREADS, int(node.cpus)))


def cpus_for(ask: Ask) -> float:
    return DEFAULT_CPUS.get(ask.stage, OTHER_DEFAULT_CPUS) if ask.cpus is None else ask.cpus


def gpu_bytes(ask: Ask, gpu: Gpu) -> int:
    """GPU memory that one replica takes (over all GPUs it spans); 0: unknown."""
    if ask.gpu_memory_bytes:
        return ask.gpu_memory_bytes
    if ask.gpu_fraction:
        return int(ask.gpu_fraction * gpu.total_bytes)
    estimate = ask.memory_bytes.get("cuda", 0)
    return estimate + CUDA_CONTEXT_BYTES if estimate else 0


def gpu_fraction(ask: Ask, gpu: Gpu, span: int = 1) -> float:
    """Share of each GPU that Ray reserves for one replica; a replica over several takes them whole."""
    if span > 1:
        return 1.0
    if ask.gpu_fraction:
        return ask.gpu_fraction
    need = gpu_bytes(ask, gpu)
    if need and gpu.total_bytes:
        return min(1.0, max(0.01, math.ceil(100 * need / gpu.total_bytes) / 100))
    return UNKNOWN_GPU_FRACTION


def ram_bytes(ask: Ask, kind: str) -> int:
    """RAM of one replica on a device of `kind`; mps shares the machine's memory."""
    return PROCESS_BYTES + (0 if kind == "cuda" else ask.memory_bytes.get(kind, 0))
