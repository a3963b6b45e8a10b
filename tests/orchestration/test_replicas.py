"""What the supervisor decides at a load, a death, a drain: scripted time, no processes."""

from __future__ import annotations

from orchestration.placement import Slot
from orchestration.replicas import (
    GROWTH_TRIES,
    Action,
    Drain,
    End,
    GaveUp,
    Publish,
    Replicas,
    Start,
    Wake,
    place,
)


def slot(name: str, standby: bool = False) -> Slot:
    return Slot(name, name.partition("-")[0], "fake", "node", None, "cpu", 1, 0.1, 0, standby=standby)


def started(*slots: Slot) -> Replicas:
    """All of `slots`, loaded."""
    replicas = Replicas(slots)
    for action in replicas.begin():
        assert isinstance(action, Start)
        replicas.loaded(action.replica)
    return replicas


def states(replicas: Replicas) -> dict[str, str]:
    return {replica.name: replica.state for replica in replicas.all()}


def test_all_start_side_by_side_and_enter_the_pool_as_they_load() -> None:
    replicas = Replicas([slot("stt-0"), slot("llm-0")])
    assert replicas.begin() == [Start(slot("stt-0"), "stt-0"), Start(slot("llm-0"), "llm-0")]
    assert replicas.pool("llm") == []
    assert replicas.loaded("llm-0") == [Publish("llm")]
    assert (replicas.pool("llm"), replicas.version("llm")) == (["llm-0"], 1)


def test_a_standby_is_loaded_but_not_in_the_pool() -> None:
    replicas = started(slot("stt-0"), slot("stt-1", standby=True))
    assert states(replicas) == {"stt-0": "serving", "stt-1": "standby"}
    assert replicas.pool("stt") == ["stt-0"]


def test_whoever_loads_first_serves() -> None:
    replicas = Replicas([slot("stt-0"), slot("stt-1", standby=True)])
    replicas.begin()
    assert replicas.loaded("stt-1") == [Publish("stt")]
    assert replicas.loaded("stt-0") == []
    assert replicas.pool("stt") == ["stt-1"]


def test_a_death_publishes_at_once_then_replaces_in_the_same_place() -> None:
    replicas = started(slot("stt-0"))
    assert replicas.lost("stt-0", "killed", 0.0) == [
        Publish("stt"),
        End("stt-0"),
        Start(slot("stt-0"), "stt-0.1"),
    ]
    assert replicas.pool("stt") == []
    assert replicas.loaded("stt-0.1") == [Publish("stt")]
    assert (replicas.pool("stt"), replicas.version("stt")) == (["stt-0.1"], 3)


def test_a_standby_is_promoted_in_the_same_breath_and_the_replacement_stands_by() -> None:
    replicas = started(slot("stt-0"), slot("stt-1", standby=True))
    actions = replicas.lost("stt-0", "killed", 0.0)
    assert actions[0] == Publish("stt")
    assert replicas.pool("stt") == ["stt-1"]
    assert replicas.loaded("stt-0.1") == []
    assert states(replicas) == {"stt-0.1": "standby", "stt-1": "serving"}


def test_a_dead_standby_is_replaced_without_disturbing_the_pool() -> None:
    replicas = started(slot("stt-0"), slot("stt-1", standby=True))
    assert replicas.lost("stt-1", "killed", 0.0) == [End("stt-1"), Start(slot("stt-1", True), "stt-1.1")]
    assert replicas.pool("stt") == ["stt-0"]


def test_one_death_told_by_many_is_one_replacement() -> None:
    replicas = started(slot("stt-0"))
    assert replicas.lost("stt-0", "watch failed", 0.0)
    assert replicas.lost("stt-0", "reported by a gateway", 0.0) == []


def test_loads_that_fail_again_and_again_are_tried_at_growing_intervals() -> None:
    replicas = Replicas([slot("stt-0")])
    name, now, waits = "stt-0", 0.0, []
    replicas.begin()
    for _ in range(8):
        _, wake = replicas.lost(name, "out of memory", now)
        assert isinstance(wake, Wake)
        waits.append(wake.at_s - now)
        assert replicas.tick(wake.at_s - 0.001) == []
        now = wake.at_s
        [start] = replicas.tick(now)
        assert isinstance(start, Start)
        name = start.replica
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    [replica] = replicas.all()
    assert (replica.failed_loads, replica.reason) == (8, "out of memory")


def test_a_load_that_succeeds_forgets_the_failures() -> None:
    replicas = Replicas([slot("stt-0")])
    replicas.begin()
    replicas.lost("stt-0", "flaky", 0.0)
    replicas.tick(1.0)
    replicas.loaded("stt-0.1")
    assert replicas.all()[0].failed_loads == 0


def test_a_death_while_another_place_waits_for_its_next_try_does_not_hurry_it() -> None:
    replicas = started(slot("stt-0"), slot("stt-1"))
    replicas.lost("stt-1", "killed", 0.0)
    replicas.lost("stt-1.1", "cannot load", 0.0)
    assert replicas.lost("stt-0", "killed", 0.5)[-1] == Start(slot("stt-0"), "stt-0.1")
    assert states(replicas)["stt-1.1"] == "waiting"


def test_growth_starts_one_more_in_its_own_place() -> None:
    replicas = started(slot("stt-0"))
    assert replicas.grow(slot("stt-1")) == [Start(slot("stt-1"), "stt-1")]
    replicas.loaded("stt-1")
    assert replicas.pool("stt") == ["stt-0", "stt-1"]


def test_growth_that_cannot_be_loaded_is_given_up_after_a_few_tries() -> None:
    replicas = started(slot("stt-0"))
    replicas.grow(slot("stt-1"))
    name, now = "stt-1", 0.0
    for _ in range(GROWTH_TRIES - 1):
        _, wake = replicas.lost(name, "out of memory", now)
        assert isinstance(wake, Wake)
        now = wake.at_s
        [start] = replicas.tick(now)
        assert isinstance(start, Start)
        name = start.replica
    assert replicas.wanted("stt") == 2
    assert replicas.lost(name, "out of memory", now) == [End(name), GaveUp("stt", "out of memory")]
    assert (replicas.wanted("stt"), states(replicas)) == (1, {"stt-0": "serving"})
    assert replicas.tick(now + 100.0) == []


def test_shrinking_drains_the_newest_before_it_ends() -> None:
    replicas = started(slot("stt-0"), slot("stt-1"))
    assert replicas.shrink("stt") == [Publish("stt"), Drain("stt-1")]
    assert replicas.pool("stt") == ["stt-0"]
    assert replicas.drained("stt-1") == [End("stt-1")]
    assert states(replicas) == {"stt-0": "serving"}


def test_the_last_replica_never_goes() -> None:
    assert started(slot("stt-0")).shrink("stt") == []


def test_a_replica_that_dies_while_draining_is_not_replaced() -> None:
    replicas = started(slot("stt-0"), slot("stt-1"))
    replicas.shrink("stt")
    assert replicas.lost("stt-1", "killed", 0.0) == [End("stt-1")]
    assert replicas.drained("stt-1") == []


def test_a_place_that_waits_for_its_next_try_goes_at_once_and_is_given_back() -> None:
    replicas = started(slot("stt-0"), slot("stt-1"))
    replicas.lost("stt-1", "killed", 0.0)
    replicas.lost("stt-1.1", "cannot load", 0.0)
    assert replicas.shrink("stt") == [End("stt-1.1")]
    assert place("stt-1.1") == place("stt-1") == "stt-1"
    assert states(replicas) == {"stt-0": "serving"}


def test_one_that_is_to_go_before_its_process_is_made_need_not_be_made() -> None:
    replicas = started(slot("stt-0"))
    replicas.grow(slot("stt-1"))
    assert replicas.loads("stt-1")
    assert replicas.shrink("stt") == [Drain("stt-1")]
    assert not replicas.loads("stt-1")
    assert replicas.drained("stt-1") == [End("stt-1")]


def test_only_what_was_to_finish_has_finished() -> None:
    replicas = started(slot("stt-0"))
    replicas.lost("stt-0", "killed", 0.0)
    assert replicas.drained("stt-0.1") == []
    assert replicas.loads("stt-0.1") and not replicas.loads("stt-0")


def test_after_stop_nothing_is_replaced() -> None:
    replicas = started(slot("stt-0"), slot("llm-0"))
    replicas.lost("llm-0", "killed", 0.0)
    ended: list[Action] = replicas.stop()
    assert ended == [End("stt-0"), End("llm-0.1")]
    assert replicas.lost("stt-0", "ended", 0.0) == []
    assert replicas.tick(100.0) == []
