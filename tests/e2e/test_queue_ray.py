"""The queue over real Ray actors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import ray

from actors.messages import LlmDone, LlmRequest, LlmText, Message, SttRequest, SttResult, TextPart
from actors.queue.link import Replica
from actors.stage import Loaded, Stage, StageError
from tests.e2e.queue_gateway import QueueGateway

pytestmark = pytest.mark.e2e

Made = tuple[Any, Loaded]


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 -- Ray's own spelling
    os.environ["RAY_AUTH_MODE"] = "disabled"
    here = os.path.dirname(__file__)
    paths = os.pathsep.join([os.path.join(here, "..", ".."), os.path.join(here, "..", "actors"), here])
    ray.init(
        include_dashboard=False,
        num_cpus=4,
        object_store_memory=128 * 2**20,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
        _system_config={"enable_metrics_collection": False, "prestart_worker_first_driver": False},
    )
    yield
    ray.shutdown()


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """Starts actors, and kills them after the test."""
    made: list[Any] = []

    def start(cls: type, *arguments: Any) -> Any:
        actor = ray.remote(cls).options(num_cpus=0, max_restarts=0, max_concurrency=1000).remote(*arguments)
        made.append(actor)
        return actor

    yield start
    for actor in made:
        ray.kill(actor)


def replica(make: Callable[..., Any], name: str, stage: str, backend: str, **options: Any) -> Made:
    actor = make(Stage, stage, backend, options, "cpu", "auto", 1, name)
    return actor, ray.get(actor.load.remote(), timeout=30)


def gateway(make: Callable[..., Any], stage: str, *replicas: tuple[str, Made]) -> Any:
    pool = [Replica(name, actor, loaded.capabilities.max_batch) for name, (actor, loaded) in replicas]
    actor = make(QueueGateway, stage, pool)
    ray.get(actor.start.remote(actor), timeout=30)
    return actor


def count(tokens: int, word: str = "count") -> LlmRequest:
    return LlmRequest([Message("user", [TextPart(word)])], max_tokens=tokens)


def test_an_answer_comes_back_in_order_and_whole(make: Callable[..., Any]) -> None:
    gate = gateway(make, "llm", ("a", replica(make, "a", "llm", "echo:Counter")))
    results = ray.get([gate.ask.remote(f"s{i}", 0, count(20)) for i in range(6)], timeout=30)
    for got in results:
        assert "".join(piece.text for piece in got[:-1]) == "".join(f"{i} " for i in range(20))
        assert got[-1] == LlmDone("stop", output_tokens=20)


def test_a_replica_killed_mid_answer_is_replaced_and_no_word_is_lost_or_said_twice(
    make: Callable[..., Any],
) -> None:
    first = replica(make, "a", "llm", "echo:Counter", step_s=0.01)
    second = replica(make, "b", "llm", "echo:Counter", step_s=0.01)
    gate = gateway(make, "llm", ("a", first), ("b", second))
    answer = gate.ask.remote("s", 0, count(60))
    while len(ray.get(gate.got.remote("s", 0))) < 10:
        time.sleep(0.005)
    os.kill(ray.get(first[0].process.remote())[1], signal.SIGKILL)
    got = ray.get(answer, timeout=30)
    assert "".join(piece.text for piece in got if isinstance(piece, LlmText)) == "".join(
        f"{i} " for i in range(60)
    )
    assert [name for name, _ in ray.get(gate.lost.remote())] == ["a"]
    assert ray.get(gate.figures.remote()).redelivered == 1


def test_a_request_of_a_megabyte_travels_by_reference(make: Callable[..., Any]) -> None:
    gate = gateway(make, "stt", ("a", replica(make, "a", "stt", "echo:Echo")))
    assert ray.get(gate.ask.remote("s", 0, SttRequest(bytes(1_000_000))), timeout=30) == [SttResult("500000")]


def test_a_dead_producer_ends_its_work(make: Callable[..., Any]) -> None:
    stage, loaded = replica(make, "a", "llm", "echo:Counter", step_s=0.01)
    gate = gateway(make, "llm", ("a", (stage, loaded)))
    gate.ask.remote("s", 0, count(100_000))
    while ray.get(stage.figures.remote()).queue.working == 0:
        time.sleep(0.01)
    ray.kill(gate)
    until = time.monotonic() + 10
    while ray.get(stage.figures.remote()).queue.working:
        assert time.monotonic() < until, "the stage works on for a producer that is gone"
        time.sleep(0.02)


def test_a_poisoned_request_fails_alone(make: Callable[..., Any]) -> None:
    names = ["a", "b", "c"]
    made = [(name, replica(make, name, "llm", "echo:Counter", step_s=0.005)) for name in names]
    gate = gateway(make, "llm", *made)
    good = [gate.ask.remote(f"s{i}", 0, count(100)) for i in range(6)]
    poisoned = ray.get(gate.ask.remote("bad", 0, count(100, "kill")), timeout=30)
    assert "attempt 2" in poisoned[-1].message
    for got in ray.get(good, timeout=30):
        assert "".join(piece.text for piece in got[:-1]) == "".join(f"{i} " for i in range(100))
    assert len(ray.get(gate.lost.remote())) == 2


def test_a_backend_that_cannot_load_says_so_in_words(make: Callable[..., Any]) -> None:
    with pytest.raises(StageError, match=r"llm: backend 'echo:Counter' .* cpu: OSError: no weights here"):
        replica(make, "a", "llm", "echo:Counter", fail_load=True)
