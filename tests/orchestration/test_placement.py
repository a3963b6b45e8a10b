"""Asks and an inventory in, a plan out: the tables below read like the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.asks import Ask, parse_bytes, parse_device, parse_replicas
from orchestration.groups import plan_groups, replica_options, single_group
from orchestration.inventory import Gpu, Inventory, Node, parse_nvidia_smi, visible_gpus
from orchestration.placement import PlacementError, Plan, Slot, extend, make_plan

GB = 1_000_000_000
SIZES = {"stt": 2 * GB, "llm": 16 * GB, "tts": 1 * GB, "vad": 0, "turn": 0}


def ask(stage: str, device: str = "auto", **more: Any) -> Ask:
    size = more.pop("size", SIZES[stage])
    supports = more.pop("supports", ("cpu",) if stage in ("vad", "turn") else ("cuda", "mps", "cpu"))
    memory = dict.fromkeys(supports, size) if size else {}
    more.setdefault("device_from", f"flag --{stage}_device")
    return Ask(stage, f"{stage}-model", device, supports=supports, memory_bytes=memory, **more)


def turn_stages(**devices: str) -> list[Ask]:
    return [ask(stage, devices.get(stage, "auto")) for stage in ("vad", "stt", "llm", "tts")]


def gpus(*sizes_gb: float) -> tuple[Gpu, ...]:
    return tuple(Gpu(index, "GPU", int(size * GB), int(size * GB)) for index, size in enumerate(sizes_gb))


def node(name: str = "a", cpus: float = 16, ram_gb: float = 128, **more: Any) -> Node:
    return Node(name, cpus, int(ram_gb * GB), **more)


def on(*nodes: Node) -> Inventory:
    return Inventory(nodes)


def table(plan: Plan) -> list[str]:
    return [f"{slot.name} {slot.node} {slot.device}" for slot in plan.slots]


def test_without_a_gpu_everything_is_on_the_cpu_and_says_why() -> None:
    plan = make_plan(turn_stages(), on(node()))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cpu", "llm-0 a cpu", "tts-0 a cpu"]
    assert plan.of("llm")[0].why == "auto: no cuda or mps with room"
    assert [slot.threads for slot in plan.slots] == [1, 4, 4, 4]


def test_one_gpu_is_shared_as_long_as_memory_lasts() -> None:
    plan = make_plan(turn_stages(), on(node(gpus=gpus(24))))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cuda:0", "llm-0 a cuda:0", "tts-0 a cuda:0"]
    assert sum(slot.gpu_share for slot in plan.slots) <= 1


def test_what_does_not_fit_the_gpu_falls_to_the_cpu_with_a_reason() -> None:
    plan = make_plan(turn_stages(), on(node(gpus=gpus(18))))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cpu", "llm-0 a cuda:0", "tts-0 a cpu"]
    assert plan.of("stt")[0].rejected[0] == "cuda:0 of a has 1.5 GB of 18.0 GB free, 2.5 GB needed"


def test_two_gpus_spread_the_stages_of_a_turn() -> None:
    plan = make_plan(turn_stages(), on(node(gpus=gpus(24, 24))))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cuda:1", "llm-0 a cuda:0", "tts-0 a cuda:0"]


def test_eight_unequal_gpus_the_largest_model_gets_the_largest() -> None:
    plan = make_plan(turn_stages(), on(node(gpus=gpus(8, 8, 24, 8, 48, 8, 80, 8))))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cuda:4", "llm-0 a cuda:6", "tts-0 a cuda:2"]


def test_three_nodes_the_large_model_on_the_large_gpu_and_light_work_on_the_head() -> None:
    cluster = on(node("head", cpus=8), node("g1", gpus=gpus(24)), node("g2", gpus=gpus(48)))
    plan = make_plan(turn_stages(), cluster)
    assert table(plan) == ["vad-0 head cpu", "stt-0 g1 cuda:0", "llm-0 g2 cuda:0", "tts-0 g2 cuda:0"]


def test_a_mac_shares_its_gpu_by_fractions() -> None:
    plan = make_plan(turn_stages(), on(node(mps=True, system="macos", ram_gb=64)))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a mps", "llm-0 a mps", "tts-0 a mps"]
    assert [slot.gpu_share for slot in plan.slots] == [0, 0.2, 0.2, 0.2]
    assert plan_groups(plan)[0].bundles[0]["GPU"] == 1


def test_a_stages_own_device_wins_over_the_default_for_all() -> None:
    asks = [replace(a, device="cuda", own_device=False) for a in turn_stages()]
    asks[2] = ask("llm", "cpu")
    plan = make_plan(asks, on(node(gpus=gpus(24))))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cuda:0", "llm-0 a cpu", "tts-0 a cuda:0"]
    assert plan.of("vad")[0].why == "vad-model runs on cpu only, so flag --vad_device does not apply"


def test_numbered_gpus() -> None:
    plan = make_plan(turn_stages(stt="cuda:1", llm="cuda:0", tts="cpu"), on(node(gpus=gpus(24, 24))))
    assert table(plan) == ["vad-0 a cpu", "stt-0 a cuda:1", "llm-0 a cuda:0", "tts-0 a cpu"]


def test_a_list_of_devices_is_a_replica_each() -> None:
    plan = make_plan([ask("stt", "cuda:0,cuda:1")], on(node(gpus=gpus(24, 24))))
    assert table(plan) == ["stt-0 a cuda:0", "stt-1 a cuda:1"]


def test_a_sum_of_devices_is_one_replica_over_all() -> None:
    plan = make_plan([ask("llm", "cuda:0+cuda:1", size=30 * GB)], on(node(gpus=gpus(24, 24))))
    assert table(plan) == ["llm-0 a cuda:0+cuda:1"]
    slot = plan.slots[0]
    assert (slot.gpu_share, slot.local_device) == (2.0, "cuda:0+cuda:1")


def test_replicas_spread_and_standbys_come_last() -> None:
    asks = [ask("stt", "cuda", min_replicas=2, max_replicas=4, standby=1)]
    plan = make_plan(asks, on(node(gpus=gpus(24, 24))))
    assert table(plan) == ["stt-0 a cuda:0", "stt-1 a cuda:1", "stt-2 a cuda:0"]
    assert [slot.standby for slot in plan.slots] == [False, False, True]


def test_shares_and_memory_of_a_gpu_as_asked() -> None:
    asks = [ask("stt", gpu_fraction=0.5), ask("llm", gpu_memory_bytes=18 * GB, size=0)]
    plan = make_plan(asks, on(node(gpus=gpus(24), cpus=4)))
    assert table(plan) == ["stt-0 a cuda:0", "llm-0 a cpu"]
    assert plan.of("stt")[0].gpu_memory_bytes == 12 * GB
    assert plan.of("llm")[0].rejected[0] == "cuda:0 of a has 12.0 GB of 24.0 GB free, 18.0 GB needed"


def test_labels_choose_the_node_that_numbers_count_on() -> None:
    cluster = on(
        node("a", gpus=gpus(24, 24), labels={"tier": "small"}),
        node("b", gpus=gpus(24, 24), labels={"tier": "big"}),
    )
    plan = make_plan([ask("stt", "cuda:1", labels={"tier": "big"})], cluster)
    assert table(plan) == ["stt-0 b cuda:1"]
    with pytest.raises(
        PlacementError, match="ambiguous, as nodes a, b all have GPUs; name one by --stt_labels"
    ):
        make_plan([ask("stt", "cuda:1")], cluster)


def test_custom_resources_choose_the_node() -> None:
    cluster = on(node("a"), node("b", resources={"mic": 1}))
    plan = make_plan([ask("vad", resources={"mic": 1})], cluster)
    assert table(plan) == ["vad-0 b cpu"]
    assert plan_groups(plan)[0].bundles == ({"CPU": 0.1, "mic": 1},)


def test_pending_nodes_count_and_auto_never_falls_back_past_them() -> None:
    cluster = on(node("head"), node("gpu-type", gpus=(Gpu(0),), labels={"tier": "gpu"}, pending=True))
    plan = make_plan([ask("llm"), ask("vad")], cluster)
    assert table(plan) == ["vad-0 head cpu", "llm-0 gpu-type cuda:0"]
    assert plan.of("llm")[0].pending
    assert plan.of("llm")[0].cuda_ids == ()


def test_a_place_on_a_node_to_come_is_pinned_to_its_gpus_when_it_has_joined() -> None:
    cluster = on(node("head"), node("gpu-type", gpus=gpus(24, 24), pending=True))
    [slot] = make_plan([ask("llm", "cuda:1")], cluster).slots
    assert (slot.node, slot.pending, slot.cuda_ids) == ("gpu-type", True, ())
    joined = slot.on(node("ip-10-0-0-7", gpus=gpus(24, 24), node_id="7a"))
    assert (joined.node, joined.node_id, joined.pending) == ("ip-10-0-0-7", "7a", False)
    assert (joined.gpus, joined.cuda_ids) == ((1,), ("1",))
    fewer = slot.on(node("ip-10-0-0-7", gpus=gpus(24), node_id="7a"))
    assert (fewer.gpus, fewer.cuda_ids) == ((1,), ())


def test_threads_may_overlap_and_the_plan_says_so() -> None:
    plan = make_plan(turn_stages(), on(node(cpus=2)))
    assert plan.notes == ("a: 7 threads on 2 cores; the stages of a turn take turns",)


def test_the_same_asks_give_the_same_plan() -> None:
    cluster = on(node("a", gpus=gpus(24, 24)), node("b", gpus=gpus(24, 24)))
    assert table(make_plan(turn_stages(), cluster)) == table(make_plan(turn_stages()[::-1], cluster))


@pytest.mark.parametrize(
    ("asked", "machine", "said"),
    [
        (ask("stt", "cuda"), node(system="macos", mps=True), "macOS has no CUDA; use mps, cpu or auto"),
        (ask("stt", "mps"), node(gpus=gpus(24)), "Linux has no MPS"),
        (ask("tts", "cuda", supports=("cpu",)), node(gpus=gpus(24)), "backend tts-model runs on cpu only"),
        (ask("stt", "cuda"), node(), "no GPU"),
        (ask("stt", "cuda:1"), node(gpus=gpus(24)), "node a has no cuda:1"),
        (ask("llm", "cuda"), node(gpus=gpus(12)), "12.0 GB free, 16.5 GB needed"),
        (ask("llm", "cpu"), node(ram_gb=8), "8.0 GB RAM left, 16.4 GB needed"),
        (
            ask("llm", "cuda", gpu_fraction=0.1),
            node(gpus=gpus(80)),
            "a share of 0.1 is 8.0 GB, 16.0 GB needed",
        ),
        (ask("stt", "cpu", cpus=32.0), node(), "16 of 16 CPUs unreserved, 32 asked"),
        (ask("stt", "cpu", labels={"tier": "gpu"}), node(), "lacks the label tier=gpu"),
        (ask("stt", "cpu", resources={"mic": 1}), node(), "has 0 of resource mic, 1 asked"),
        (ask("stt", "cuda", gpu_fraction=0.6, min_replicas=2), node(gpus=gpus(24)), "9.6 GB of 24.0 GB free"),
    ],
)
def test_an_impossible_ask_names_stage_flag_ask_and_what_exists(asked: Ask, machine: Node, said: str) -> None:
    with pytest.raises(PlacementError) as caught:
        make_plan([asked], on(machine))
    text = str(caught.value)
    assert said in text
    assert asked.stage in text
    assert f"--{asked.stage}_device {asked.device}" in text
    assert asked.device_from in text


@pytest.mark.parametrize(
    ("asked", "machine", "nearest"),
    [
        (ask("stt", "cuda:1"), node(gpus=gpus(24)), "--stt_device cuda (stt-0 on cuda:0 of a)"),
        (ask("stt", "cuda"), node(), "--stt_device auto (stt-0 on cpu of a)"),
        (ask("stt", "cuda"), node(system="macos", mps=True), "--stt_device mps (stt-0 on mps of a)"),
        (
            ask("stt", "cuda", gpu_fraction=0.6, min_replicas=2, max_replicas=2),
            node(gpus=gpus(24)),
            "--stt_replicas 1 --stt_standby 0 (stt-0 on cuda:0 of a)",
        ),
        (
            ask("llm", "cuda", gpu_fraction=0.1),
            node(gpus=gpus(80)),
            "without --llm_gpu_fraction and --llm_gpu_memory (llm-0 on cuda:0 of a)",
        ),
    ],
)
def test_an_error_names_the_nearest_plan_that_fits(asked: Ask, machine: Node, nearest: str) -> None:
    with pytest.raises(PlacementError) as caught:
        make_plan([asked], on(machine))
    assert f"Nearest plan that fits: {nearest}." in str(caught.value)


def test_two_stages_that_do_not_fit_together() -> None:
    asks = [ask("stt", "cuda", size=14 * GB), ask("llm", "cuda")]
    with pytest.raises(PlacementError, match=r"stt .*asked --stt_device cuda") as caught:
        make_plan(asks, on(node(gpus=gpus(24), ram_gb=8)))
    assert "beside llm-0" in str(caught.value)
    assert "No change of stt alone gives a plan that fits. It needs about 14.0 GB." in str(caught.value)


def test_one_group_a_node_and_one_bundle_a_gpu_slot() -> None:
    asks = [*turn_stages(stt="cuda:0", llm="cuda:1", tts="cuda:1")]
    [group] = plan_groups(make_plan(asks, on(node(gpus=gpus(24, 24), node_id="n1"))))
    assert group.bundles == ({"GPU": 1, "CPU": 0.25}, {"GPU": 1, "CPU": 0.5}, {"CPU": 0.1})
    assert group.of == {"stt-0": 0, "llm-0": 1, "tts-0": 1, "vad-0": 2}
    assert group.labels == {"ray.io/node-id": "n1"}


def test_a_replica_over_two_gpus_shares_their_bundle_with_what_is_on_either() -> None:
    asks = [ask("llm", "cuda:1+cuda:2"), ask("stt", "cuda:0")]
    [group] = plan_groups(make_plan(asks, on(node(gpus=gpus(24, 24, 24)))))
    assert [bundle["GPU"] for bundle in group.bundles] == [1, 2]
    assert group.of == {"stt-0": 0, "llm-0": 1}


def test_a_replica_sees_just_its_own_gpus() -> None:
    two = tuple(
        replace(gpu, visible_id=name) for gpu, name in zip(gpus(24, 24), ("4", "GPU-abc"), strict=True)
    )
    plan = make_plan(turn_stages(stt="cuda:1", llm="cuda:0", tts="cpu"), on(node(gpus=two)))

    def seen(slot: Slot) -> str:
        visible: str = replica_options(slot, plan.ask(slot.stage))["runtime_env"]["env_vars"][
            "CUDA_VISIBLE_DEVICES"
        ]
        return f"{slot.name} {visible!r} {slot.local_device}"

    assert [seen(slot) for slot in plan.slots] == [
        "vad-0 '' cpu",
        "stt-0 'GPU-abc' cuda:0",
        "llm-0 '4' cuda:0",
        "tts-0 '' cpu",
    ]


def test_a_replica_beyond_the_minimum_gets_a_bundle_of_its_own() -> None:
    cluster = on(node(gpus=gpus(24, 24)))
    plan = make_plan([ask("stt", "cuda:0", max_replicas=2)], cluster)
    slot = extend(plan, cluster, "stt", "stt-1")
    assert (slot.name, slot.device) == ("stt-1", "cuda:1")
    assert single_group(slot, plan.ask("stt")).bundles == ({"GPU": 1, "CPU": 0.25},)


def test_gpu_numbers_count_what_cuda_visible_devices_leaves() -> None:
    listing = "0, GPU-aa, A100, 40960, 40000\n1, GPU-bb, A100, 40960, 30000\n2, GPU-cc, L4, 23034, [N/A]\n"
    found = parse_nvidia_smi(listing)
    assert [gpu.name for gpu in visible_gpus(found, None)] == ["A100", "A100", "L4"]
    assert [(gpu.index, gpu.name, gpu.cuda_id) for gpu in visible_gpus(found, "2,0")] == [
        (0, "L4", "2"),
        (1, "A100", "0"),
    ]
    assert [gpu.cuda_id for gpu in visible_gpus(found, "GPU-bb")] == ["GPU-bb"]
    assert visible_gpus(found, "") == ()
    assert [gpu.cuda_id for gpu in visible_gpus(found, "1,7,0")] == ["1"]


def test_spellings() -> None:
    assert [str(device) for device in parse_device("cuda:0, cuda:1+cuda:2")] == ["cuda:0", "cuda:1+cuda:2"]
    assert parse_replicas("1..4") == (1, 4)
    assert parse_bytes("6GiB") == 6 * 2**30
    assert parse_bytes("1.5 GB") == 1_500_000_000
