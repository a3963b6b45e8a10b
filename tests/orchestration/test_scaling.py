"""A pool grows when people are kept waiting, and shrinks when it has been idle for long."""

import pytest

from orchestration.scaling import GROW_AFTER_S, OVERDUE_S, SHRINK_AFTER_S, Load, Scaler, Work

LATE = Load(overdue_s=OVERDUE_S, busy=1.0)
IN_TIME = Load(overdue_s=0.0, busy=1.0)
IDLE = Load(overdue_s=0.0, busy=0.1)


def decisions(scaler: Scaler, load: Load, seconds: float, wanted: int, start_s: float = 100.0) -> list[int]:
    """One look a second, all replicas serving."""
    return [scaler.decide(load, wanted, wanted, start_s + second) for second in range(int(seconds) + 1)]


def test_it_grows_when_somebody_has_waited_for_a_while() -> None:
    assert decisions(Scaler(1, 2), LATE, GROW_AFTER_S, wanted=1) == [0, 0, 0, 1]


def test_a_moment_of_lateness_is_no_reason() -> None:
    scaler = Scaler(1, 2)
    assert not any(decisions(scaler, LATE, GROW_AFTER_S - 1, wanted=1))
    assert scaler.decide(IN_TIME, 1, 1, 103.0) == 0
    assert not any(decisions(scaler, LATE, GROW_AFTER_S - 1, wanted=1, start_s=104.0))


def test_it_never_grows_beyond_the_most() -> None:
    assert not any(decisions(Scaler(1, 2), LATE, 60, wanted=2))


def test_one_that_loads_is_awaited_before_another_is_asked_for() -> None:
    scaler = Scaler(1, 4)
    assert decisions(scaler, LATE, GROW_AFTER_S, wanted=1)[-1] == 1
    assert not any(scaler.decide(LATE, 1, 2, 104.0 + second) for second in range(60))
    assert decisions(scaler, LATE, GROW_AFTER_S, wanted=2, start_s=200.0) == [0, 0, 0, 1]


def test_it_shrinks_after_long_idleness_and_not_below_the_least() -> None:
    scaler = Scaler(1, 3)
    assert decisions(scaler, IDLE, SHRINK_AFTER_S, wanted=2) == [*[0] * int(SHRINK_AFTER_S), -1]
    assert not any(decisions(scaler, IDLE, 2 * SHRINK_AFTER_S, wanted=1, start_s=300.0))


@pytest.mark.parametrize("busy", [0.6, 1.9])
def test_replicas_that_are_needed_stay(busy: float) -> None:
    assert not any(decisions(Scaler(1, 3), Load(0.0, busy), 2 * SHRINK_AFTER_S, wanted=2))


def test_work_in_between_begins_the_idleness_anew() -> None:
    scaler = Scaler(1, 3)
    assert not any(decisions(scaler, IDLE, SHRINK_AFTER_S - 1, wanted=2))
    assert scaler.decide(IN_TIME, 2, 2, 160.0) == 0
    assert not any(decisions(scaler, IDLE, SHRINK_AFTER_S - 1, wanted=2, start_s=161.0))


def test_work_is_what_was_added_since_the_last_look() -> None:
    work = Work()
    assert work.busy({"a": 50.0, "b": 7.0}, 100.0) == 0.0
    assert work.busy({"a": 52.0, "b": 8.0}, 102.0) == 1.5
    assert work.busy({"a": 52.0, "b": 8.0}, 103.0) == 0.0


def test_a_replica_counts_from_its_second_look_on_and_never_for_more_than_one() -> None:
    work = Work()
    work.busy({"a": 0.0}, 0.0)
    assert work.busy({"a": 1.0, "b": 90.0}, 1.0) == 1.0
    assert work.busy({"b": 91.1}, 2.0) == 1.0
    assert work.busy({"a": 9.0, "b": 91.1}, 3.0) == 0.0, "a did not answer the last look"
