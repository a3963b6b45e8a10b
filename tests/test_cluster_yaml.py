"""cluster.yaml is valid by Ray's own schema, and the cluster profile finds its place there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.registry import find
from orchestration.asks import Ask, parse_replicas
from orchestration.inventory import Inventory, Node
from orchestration.node_types import pending_nodes
from orchestration.placement import make_plan
from s2s.layers import load

GB = 1_000_000_000
FILE = Path(__file__).parents[1] / "cluster.yaml"


@pytest.fixture
def cluster() -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return tree


def validate(cluster: dict[str, Any]) -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    util.validate_config(util.prepare_config(copy.deepcopy(cluster)))


@pytest.mark.e2e
def test_rays_own_schema_takes_it(cluster: dict[str, Any]) -> None:
    validate(cluster)


@pytest.mark.e2e
def test_rays_own_schema_would_refuse_a_wrong_one(cluster: dict[str, Any]) -> None:
    cluster["available_node_types"]["gpu"]["resources"]["GPU"] = "two"
    with pytest.raises(Exception, match="two"):
        validate(cluster)


def head(cluster: dict[str, Any]) -> Node:
    kind = cluster["available_node_types"]["head"]
    labels = {"ray.io/node-group": "head", **kind["labels"]}
    return Node("head", kind["resources"]["CPU"], 64 * GB, labels=labels, node_id="h")


def profile_asks() -> list[Ask]:
    """The profile's asks with sizes as their models have them (Whisper large v3 turbo and a 7B LLM in float16)."""
    config = load([("profile", "cluster")])
    sizes = {"stt": 2 * GB, "llm": 16 * GB}
    asks = []
    for stage in config.stages:
        wanted, size = config.stage(stage), sizes.get(stage)
        least, most = parse_replicas(wanted.replicas)
        asks.append(
            Ask(
                stage,
                wanted.backend,
                wanted.device or "auto",
                supports=find(stage, wanted.backend).devices,
                memory_bytes={"cuda": size} if size else {},
                min_replicas=least,
                max_replicas=most,
                standby=wanted.standby,
                labels=wanted.labels,
            )
        )
    return asks


def test_the_cluster_profile_is_planned_on_the_head_and_on_nodes_to_come(cluster: dict[str, Any]) -> None:
    present = head(cluster)
    plan = make_plan(profile_asks(), Inventory((present, *pending_nodes(cluster, [present]))))
    assert [f"{slot.name} {slot.node} {slot.device}" for slot in plan.slots] == [
        "vad-0 head cpu",
        "turn-0 head cpu",
        "stt-0 gpu-0 cuda:0",
        "stt-1 gpu-1 cuda:0",
        "llm-0 gpu-0 cuda:0",
        "llm-1 gpu-1 cuda:0",
        "tts-0 head cpu",
        "tts-1 head cpu",
    ]


def test_nodes_to_come_are_as_many_as_the_file_allows(cluster: dict[str, Any]) -> None:
    running = Node("g", 8, labels={"ray.io/node-group": "gpu"})
    assert [node.name for node in pending_nodes(cluster, [head(cluster), running])] == [
        f"gpu-{number}" for number in range(1, 8)
    ]
    cluster["max_workers"] = 2
    assert [node.name for node in pending_nodes(cluster, [head(cluster), running])] == ["gpu-1"]
    assert pending_nodes(cluster, [head(cluster)])[0].gpus[0].total_bytes == 24 * GB
