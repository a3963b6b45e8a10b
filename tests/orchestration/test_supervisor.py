"""Real replicas of backends without a model, under Ray."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestration.cluster import ray_running
from orchestration.cluster_settings import RaySettings
from orchestration.node_types import ray_inventory
from orchestration.placement import Plan
from orchestration.supervisor import StageFailedError, start_supervisor
from s2s.asks import plan_for
from s2s.layers import load
from tests.orchestration.fake_gateway import Gateway

pytestmark = pytest.mark.e2e
FAKE = "tests.orchestration.fake_backends:Fake"


@pytest.fixture(scope="module", autouse=True)
def ray_started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    os.environ["S2S_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    with ray_running(RaySettings(), num_cpus=4, num_gpus=2):
        yield
    del os.environ["S2S_CACHE"]


def plan(*flags: tuple[str, str | None]) -> Plan:
    fakes = [(stage, FAKE) for stage in ("vad", "turn", "stt", "llm", "tts")]
    return plan_for(load([*fakes, *flags]), ray_inventory())


def call(method: Any, *args: Any, timeout: float = 180.0) -> Any:
    import ray

    return ray.get(method.remote(*args), timeout=timeout)


@pytest.fixture
def supervisor() -> Iterator[Any]:
    import ray

    actor = start_supervisor()
    yield actor
    call(actor.stop)
    ray.kill(actor)


@pytest.fixture
def gateway() -> Iterator[Any]:
    import ray

    actor = ray.remote(Gateway).options(num_cpus=0, max_concurrency=100).remote()
    yield actor
    ray.kill(actor)


def pids(supervisor: Any) -> dict[str, int]:
    return {row["replica"]: row["pid"] for row in call(supervisor.placement)}


def test_every_stage_is_a_process_of_its_own_and_stop_ends_all(supervisor: Any) -> None:
    call(supervisor.start, plan())
    rows = call(supervisor.placement)
    assert [(row["stage"], row["replica"], row["device"]) for row in rows] == [
        (stage, f"{stage}-0", "cpu") for stage in ("vad", "turn", "stt", "llm", "tts")
    ]
    running = [row["pid"] for row in rows]
    assert len({*running, os.getpid()}) == 6
    assert all(row["memory_mb"] > 0 for row in rows)
    assert {row.state for row in call(supervisor.progress)} == {"serving"}
    call(supervisor.stop)
    assert not [pid for pid in running if psutil.pid_exists(pid)]


def test_the_first_failure_names_stage_backend_and_cause_and_ends_the_rest(supervisor: Any) -> None:
    others = {each.pid for each in stages()}
    with pytest.raises(
        StageFailedError, match=r"tts: backend '.*Fake' could not be loaded on cpu: .*no such voice"
    ):
        call(supervisor.start, plan(("tts_fails", "no such voice"), ("stt_load_s", "30")))
    assert {each.pid for each in stages()} <= others


def stages() -> list[psutil.Process]:
    """Processes of replicas that this test, or another of this run, has started."""
    return [each for each in psutil.Process().children(recursive=True) if "ray::Stage" in _title(each)]


def _title(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def state_of(supervisor: Any, name: str) -> str:
    return {row.replica: row.state for row in call(supervisor.progress)}.get(name, "")


def test_a_standby_takes_over_at_once_and_is_replaced(supervisor: Any, gateway: Any) -> None:
    call(supervisor.start, plan(("stt_standby", "1")))
    call(supervisor.add_gateway, gateway)
    [serving] = call(gateway.without, "stt")
    [standby] = {"stt-0", "stt-1"} - {serving}
    os.kill(pids(supervisor)[serving], 9)
    assert call(gateway.without, "stt", serving) == [standby]
    while (state := state_of(supervisor, f"{serving}.1")) != "standby":
        assert state in ("", "reserving", "loading")


def test_a_replica_that_a_gateway_reports_is_replaced(supervisor: Any, gateway: Any) -> None:
    call(supervisor.start, plan())
    call(supervisor.add_gateway, gateway)
    reported = pids(supervisor)["llm-0"]
    call(supervisor.report_dead, "llm-0", "makes no progress")
    assert call(gateway.without, "llm", "llm-0") == ["llm-0.1"]
    assert not psutil.pid_exists(reported)


def test_a_replacement_that_cannot_load_is_tried_again_later(
    supervisor: Any, gateway: Any, tmp_path: Path
) -> None:
    hindrance = tmp_path / "hindrance"
    call(supervisor.start, plan(("stt_fails_while", str(hindrance))))
    call(supervisor.add_gateway, gateway)
    hindrance.touch()
    os.kill(pids(supervisor)["stt-0"], 9)
    waiting: list[str] = []
    while not waiting:
        waiting = [row.message for row in call(supervisor.progress) if row.state == "waiting"]
    assert "the file is still there" in waiting[0]
    hindrance.unlink()
    assert call(gateway.without, "stt", "stt-0") not in ([], ["stt-0.1"])


def test_growth_and_shrinking_reach_the_gateways(supervisor: Any, gateway: Any) -> None:
    call(supervisor.start, plan(("stt_replicas", "1..2")))
    call(supervisor.add_gateway, gateway)
    call(gateway.late, 1.0)
    while (state := state_of(supervisor, "stt-1")) != "serving":
        assert state in ("", "reserving", "loading")
    call(gateway.late, 0.0)
    assert call(gateway.without, "stt") == ["stt-0", "stt-1"]
    call(supervisor.shrink, "stt")
    assert call(gateway.without, "stt", "stt-1") == ["stt-0"]
    while state := state_of(supervisor, "stt-1"):
        assert state == "draining"
