"""What a replica really sees of the GPUs, with two that Ray is told of and that are not there."""

from __future__ import annotations

import os
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration.cluster import ray_running
from orchestration.cluster_settings import RaySettings
from orchestration.node_types import ray_inventory
from orchestration.supervisor import start_supervisor
from s2s.asks import plan_for
from s2s.interpreters import check_interpreters
from s2s.layers import load
from tests.e2e.eye import Eye

pytestmark = pytest.mark.e2e
FAKES = [(stage, "tests.orchestration.fake_backends:Fake") for stage in ("vad", "turn", "stt", "llm", "tts")]


@pytest.fixture(scope="module", autouse=True)
def two_gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    os.environ["S2S_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    with ray_running(RaySettings(), num_cpus=4, num_gpus=2):
        yield
    del os.environ["S2S_CACHE"]


def call(method: Any, *args: Any) -> Any:
    import ray

    return ray.get(method.remote(*args), timeout=180)


@pytest.fixture
def system(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """A supervisor that has started the test's flags, and an eye."""
    import ray

    supervisor = start_supervisor()
    eye = ray.remote(Eye).options(num_cpus=0, max_concurrency=100).remote()
    call(supervisor.start, plan_for(load([*FAKES, *request.param]), ray_inventory()))
    call(supervisor.add_gateway, eye)
    yield supervisor, eye
    call(supervisor.stop)
    ray.kill(eye)
    ray.kill(supervisor)


def pid(supervisor: Any, name: str) -> int:
    return next(row["pid"] for row in call(supervisor.placement) if row["replica"] == name)


@pytest.mark.parametrize(
    "system", [[("stt_device", "cuda:0"), ("llm_device", "cuda:1"), ("tts_device", "cuda:1")]], indirect=True
)
def test_each_stage_sees_its_own_gpu_also_after_a_kill(system: tuple[Any, Any]) -> None:
    supervisor, eye = system
    assert call(eye.see, "vad-0") == "cpu "
    assert call(eye.see, "stt-0") == "cuda:0 0"
    assert call(eye.see, "llm-0") == "cuda:0 1"
    assert call(eye.see, "tts-0") == "cuda:0 1"
    for name in ("stt-0", "llm-0", "vad-0"):
        os.kill(pid(supervisor, name), 9)
    assert call(eye.see, "stt-0.1") == "cuda:0 0"
    assert call(eye.see, "llm-0.1") == "cuda:0 1"
    assert call(eye.see, "vad-0.1") == "cpu "


@pytest.mark.parametrize(
    "system",
    [[("stt_device", "cuda:0,cuda:1"), ("tts_device", "cuda"), ("tts_gpu_fraction", "0.5")]],
    indirect=True,
)
def test_a_list_is_a_replica_each_and_shares_pack_as_planned(system: tuple[Any, Any]) -> None:
    _, eye = system
    assert call(eye.see, "stt-0") == "cuda:0 0"
    assert call(eye.see, "stt-1") == "cuda:0 1"
    assert call(eye.see, "tts-0") == "cuda:0 0"


@pytest.mark.parametrize("system", [[("llm_device", "cuda:0+cuda:1")]], indirect=True)
def test_a_sum_is_one_replica_over_both(system: tuple[Any, Any]) -> None:
    _, eye = system
    assert call(eye.see, "llm-0") == "cuda:0+cuda:1 0,1"


def test_a_stage_can_have_an_interpreter_of_its_own(tmp_path: Path) -> None:
    import ray

    venv.create(tmp_path, with_pip=False, symlinks=True)
    (site,) = tmp_path.glob("lib/python*/site-packages")
    (site / "below.pth").write_text(sysconfig.get_path("purelib"))
    (site / "only_here.py").write_text("NAME = 'second'")
    python = str(tmp_path / "bin" / "python")
    supervisor = start_supervisor()
    eye = ray.remote(Eye).options(num_cpus=0, max_concurrency=100).remote()
    try:
        flags = [
            *FAKES,
            ("tts", "tests.orchestration.fake_backends:Interpreter"),
            ("tts_device", "cpu"),
            ("tts_python", python),
        ]
        config = load(flags)
        check_interpreters(config)
        call(supervisor.start, plan_for(config, ray_inventory()))
        call(supervisor.add_gateway, eye)
        assert call(eye.see, "tts-0") == f"second {tmp_path} "
        assert call(eye.see, "stt-0") == "cpu "
        os.kill(pid(supervisor, "tts-0"), 9)
        assert call(eye.see, "tts-0.1") == f"second {tmp_path} "
    finally:
        call(supervisor.stop)
        ray.kill(eye)
        ray.kill(supervisor)
