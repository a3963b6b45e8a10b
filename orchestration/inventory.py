"""What machines there are: CPUs, GPUs, memory and labels of every node."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Gpu:
    """One GPU in the user's numbering: the index counts the GPUs that CUDA_VISIBLE_DEVICES leaves visible."""

    index: int
    name: str = "GPU"
    total_bytes: int = 0
    """0: unknown."""
    free_bytes: int = 0
    visible_id: str = ""
    """What CUDA_VISIBLE_DEVICES must hold for a process to see just this one; empty: the index."""

    @property
    def cuda_id(self) -> str:
        return self.visible_id or str(self.index)


@dataclass(frozen=True)
class Node:
    """One machine, or one that the cluster may still add."""

    name: str
    cpus: float
    memory_bytes: int = 0
    """RAM that may be used now; 0: unknown."""
    gpus: tuple[Gpu, ...] = ()
    mps: bool = False
    system: Literal["linux", "macos"] = "linux"
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    node_id: str | None = None
    """Ray's id, where it runs."""
    pending: bool = False
    """A node type that the autoscaler may add."""


@dataclass(frozen=True)
class Inventory:
    nodes: tuple[Node, ...]

    @property
    def system(self) -> str:
        return self.nodes[0].system if self.nodes else "linux"


def local_node(environ: Mapping[str, str] | None = None) -> Node:
    """This machine, read without starting anything."""
    import psutil

    mac = platform.system() == "Darwin"
    environ = os.environ if environ is None else environ
    return Node(
        name=platform.node() or "localhost",
        cpus=float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1),
        memory_bytes=min(psutil.virtual_memory().available, _cgroup_room()),
        gpus=() if mac else visible_gpus(_nvidia_smi(), environ.get("CUDA_VISIBLE_DEVICES")),
        mps=mac and platform.machine() == "arm64",
        system="macos" if mac else "linux",
    )


def _cgroup_room() -> int:
    """Bytes left below the container's memory limit."""
    for limit in _CGROUP_LIMITS:
        try:
            most = int(limit.read_text())
            usage = limit.with_name(
                "memory.current" if limit.name == "memory.max" else "memory.usage_in_bytes"
            )
            return max(0, most - int(usage.read_text()))
        except (OSError, ValueError):
            continue
    return 1 << 62


def _nvidia_smi() -> list[tuple[Gpu, str]]:
    """All GPUs of this machine by the driver's numbering, each with its UUID; empty without an NVIDIA driver."""
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    query = "--query-gpu=index,uuid,name,memory.total,memory.free"
    try:
        answer = subprocess.run(
            [program, query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return parse_nvidia_smi(answer.stdout)


def parse_nvidia_smi(text: str) -> list[tuple[Gpu, str]]:
    """Lines of `index, uuid, name, total MiB, free MiB`."""
    found = []
    for line in text.strip().splitlines():
        index, uuid, name, total, free = (part.strip() for part in line.split(","))
        total_bytes, free_bytes = (int(part) * 2**20 if part.isdigit() else 0 for part in (total, free))
        found.append((Gpu(int(index), name, total_bytes, free_bytes), uuid))
    return found


def visible_gpus(all_gpus: list[tuple[Gpu, str]], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES (`visible`) leaves, renumbered in its order as CUDA does."""
    if visible is None:
        return tuple(gpu for gpu, _ in all_gpus)
    chosen: list[Gpu] = []
    for mark in (part.strip() for part in visible.split(",")):
        match = [gpu for gpu, uuid in all_gpus if mark == str(gpu.index) or (mark and uuid.startswith(mark))]
        if not match:
            break  # CUDA ignores everything after the first one that it does not know.
        gpu = match[0]
        chosen.append(Gpu(len(chosen), gpu.name, gpu.total_bytes, gpu.free_bytes, mark))
    return tuple(chosen)


def ray_nodes() -> list[Node]:
    """The nodes of the Ray cluster that this process is connected to, each read on the spot."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    alive = [node for node in ray.nodes() if node["Alive"]]
    here = ray.get_runtime_context().get_node_id()
    read = ray.remote(num_cpus=0, max_retries=0)(local_node)
    asked = {
        node["NodeID"]: read.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in alive
        if node["NodeID"] != here
    }
    found = dict(zip(asked, ray.get(list(asked.values())), strict=True)) | {here: local_node()}
    return _with_own_names([_joined(node, found[node["NodeID"]]) for node in alive])


def _with_own_names(nodes: list[Node]) -> list[Node]:
    """Several nodes of one name (Ray started twice on a machine) are told apart by their ids."""
    names = [node.name for node in nodes]
    return [
        replace(node, name=f"{node.name}/{(node.node_id or '')[:6]}") if names.count(node.name) > 1 else node
        for node in nodes
    ]


def _joined(node: dict[str, Any], found: Node) -> Node:
    """What Ray knows of a node and what was read on it."""
    resources: dict[str, float] = node["Resources"]
    count = 0 if found.mps else int(resources.get("GPU", 0))
    gpus = found.gpus[:count] or tuple(Gpu(index) for index in range(count))
    system_made = ("CPU", "GPU", "memory", "object_store_memory", "node:", "accelerator_type:")
    return Node(
        name=node["NodeManagerHostname"],
        cpus=resources.get("CPU", 0.0),
        memory_bytes=found.memory_bytes,
        gpus=gpus,
        mps=found.mps and resources.get("GPU", 0) > 0,
        system=found.system,
        labels=dict(node.get("Labels") or {}),
        resources={key: value for key, value in resources.items() if not key.startswith(system_made)},
        node_id=node["NodeID"],
    )
