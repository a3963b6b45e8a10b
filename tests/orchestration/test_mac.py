"""Apple silicon, on a machine that only says so."""

from __future__ import annotations

import platform
from typing import Any

import pytest

from actors import registry
from orchestration import inventory
from orchestration.asks import Ask
from orchestration.groups import plan_groups, replica_options
from orchestration.inventory import Inventory, Node, local_node
from orchestration.placement import PlacementError, make_plan
from s2s.asks import plan_for
from s2s.layers import load

GB = 1_000_000_000
MAC = Inventory((Node("mac", 10, 32 * GB, mps=True, system="macos"),))


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(inventory, "_nvidia_smi", lambda: pytest.fail("a Mac has no NVIDIA driver"))


def joined(resources: dict[str, float]) -> Node:
    """The node as Ray tells of it."""
    node: dict[str, Any] = {"NodeManagerHostname": "mac", "NodeID": "n1", "Resources": resources}
    return inventory._joined(node, local_node())


@pytest.mark.usefixtures("mac")
def test_apple_silicon_has_mps_and_no_cuda() -> None:
    node = local_node()
    assert (node.mps, node.system, node.gpus) == (True, "macos", ())


@pytest.mark.usefixtures("mac")
def test_an_intel_mac_has_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert (local_node().mps, local_node().gpus) == (False, ())


@pytest.mark.usefixtures("mac")
def test_rays_gpu_entry_of_a_mac_is_mps_and_no_numbered_gpu() -> None:
    node = joined({"CPU": 10.0, "GPU": 1.0, "accelerator_type:Apple M4": 1.0, "memory": 1.0})
    assert (node.mps, node.gpus, node.resources) == (True, (), {})
    assert not joined({"CPU": 10.0}).mps


def test_the_mac_profile_shares_the_gpu_between_mps_and_mlx_by_fractions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry.Entry, "lacks", lambda self, kind: self.needs.get(kind))
    plan = plan_for(load([("mac-optimal-settings", None)]), MAC)
    assert [f"{slot.name} {slot.backend} {slot.device} {slot.gpu_share}" for slot in plan.slots] == [
        "vad-0 silero cpu 0",
        "turn-0 smart-turn cpu 0",
        "stt-0 whisper mps 0.2",
        "llm-0 mlx-lm mps 0.2",
        "tts-0 kokoro cpu 0",
    ]
    [group] = plan_groups(plan)
    assert [bundle.get("GPU") for bundle in group.bundles] == [1]
    options = replica_options(plan.of("stt")[0], plan.ask("stt"))
    assert options["num_gpus"] == 0.2
    assert options["runtime_env"]["env_vars"] == {
        "CUDA_VISIBLE_DEVICES": "",
        "PYTORCH_ENABLE_MPS_FALLBACK": "1",
    }


def test_with_its_library_kokoro_is_on_the_gpu_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.Entry, "lacks", lambda self, kind: None)
    [slot] = plan_for(load([("local_mac_optimal_settings", None)]), MAC).of("tts")
    assert slot.device == "mps"


def test_explicit_flags_win_over_the_mac_profile() -> None:
    plan = plan_for(load([("mac-optimal-settings", None), ("stt_device", "cpu"), ("llm", "llama-cpp")]), MAC)
    assert plan.of("stt")[0].device == "cpu"
    assert plan.of("llm")[0].backend == "llama-cpp"


def test_shares_of_the_one_gpu_do_not_go_over_it() -> None:
    asks = [
        Ask("stt", "a", "mps", gpu_fraction=0.7),
        Ask("llm", "b", "mps", gpu_fraction=0.7, device_from="flag --llm_device"),
    ]
    with pytest.raises(PlacementError, match=r"mps of mac has 30% unreserved, 70% asked"):
        make_plan(asks, MAC)


def test_mps_and_mlx_models_share_the_machines_memory() -> None:
    asks = [
        Ask("stt", "a", "mps", memory_bytes={"mps": 20 * GB}),
        Ask("llm", "b", "mps", memory_bytes={"mps": 20 * GB}),
    ]
    with pytest.raises(PlacementError, match=r"node mac has 11\.\d GB RAM left, 20\.\d GB needed"):
        make_plan(asks, MAC)


@pytest.mark.parametrize("flag", ["stt_device", "llm_device", "device"])
def test_cuda_on_a_mac_is_an_error_before_anything_loads(flag: str) -> None:
    with pytest.raises(PlacementError, match="macOS has no CUDA; use mps, cpu or auto"):
        plan_for(load([("profile", "laptop"), (flag, "cuda")]), MAC)
