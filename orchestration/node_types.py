"""Nodes that a cluster may still add, from its cluster file: they count as available, and are shown as pending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.asks import parse_bytes
from orchestration.cluster import will_join
from orchestration.cluster_settings import RaySettings
from orchestration.inventory import Gpu, Inventory, Node, ray_nodes

BOOTSTRAP_FILE = Path("~/ray_bootstrap_config.yaml")
"""Where `ray up` puts the cluster file on the head."""
NODE_GROUP_LABEL = "ray.io/node-group"
"""Ray's own label with the node type's name."""
GPU_MEMORY_LABEL = "s2s-gpu-memory"
"""Our label of a node type: memory of each of its GPUs, such as 24GB, which Ray doesn't know before it runs."""


def ray_inventory(cluster_file: Path | None = None) -> Inventory:
    """The nodes of the connected Ray, and those that `cluster_file` lets it add (None: it can add none)."""
    present = ray_nodes()
    cluster = read_cluster_file(cluster_file) if cluster_file else {}
    return Inventory((*present, *pending_nodes(cluster, present)))


def cluster_file(settings: RaySettings) -> Path | None:
    """The cluster file of a joined cluster; None where Ray is started here."""
    if not will_join(settings):
        return None
    return Path(settings.cluster_file) if settings.cluster_file else BOOTSTRAP_FILE


def read_cluster_file(path: Path) -> Mapping[str, Any]:
    """The cluster file as `ray up` takes it; empty where there is none."""
    import yaml

    if not path.expanduser().is_file():
        return {}
    tree: Mapping[str, Any] = yaml.safe_load(path.expanduser().read_text()) or {}
    return tree


def pending_nodes(cluster: Mapping[str, Any], present: Sequence[Node]) -> tuple[Node, ...]:
    """The workers that `cluster` may add to `present`, each as one node."""
    room = int(cluster.get("max_workers", 0)) - sum(
        _type_of(node) != cluster.get("head_node_type") for node in present
    )
    pending: list[Node] = []
    for name, kind in dict(cluster.get("available_node_types", {})).items():
        if name == cluster.get("head_node_type"):
            continue
        running = sum(_type_of(node) == name for node in present)
        most = int(kind.get("max_workers", kind.get("min_workers", 0)))
        for number in range(running, most):
            if len(pending) < room:
                pending.append(_node(f"{name}-{number}", kind))
    return tuple(pending)


def _type_of(node: Node) -> str | None:
    return node.labels.get(NODE_GROUP_LABEL)


def _node(name: str, kind: Mapping[str, Any]) -> Node:
    resources = {key: float(value) for key, value in dict(kind.get("resources", {})).items()}
    labels = {key: str(value) for key, value in dict(kind.get("labels", {})).items()}
    memory = parse_bytes(labels[GPU_MEMORY_LABEL]) if GPU_MEMORY_LABEL in labels else 0
    return Node(
        name=name,
        cpus=resources.pop("CPU", 0.0),
        memory_bytes=int(resources.pop("memory", 0)),
        gpus=tuple(Gpu(index, "GPU", memory, memory) for index in range(int(resources.pop("GPU", 0)))),
        labels=labels,
        resources=resources,
        pending=True,
    )
