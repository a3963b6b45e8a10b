"""What people are told of a replica that starts, serves or waits for its next try: scripted time."""

from __future__ import annotations

from orchestration.placement import Slot
from orchestration.progress import Progress
from orchestration.replicas import Replicas

SLOT = Slot("stt-0", "stt", "fake", "node", None, "cpu", 1, 0.1, 0)


def test_a_state_is_told_with_the_time_since_it_began() -> None:
    replicas, progress = Replicas([SLOT]), Progress()

    def told(made: bool, now_s: float) -> tuple[str, float]:
        [row] = progress.rows(replicas.all(), {"stt-0"} if made else (), now_s)
        assert (row.stage, row.replica, row.backend, row.message) == ("stt", "stt-0", "fake", "")
        return row.state, row.seconds

    assert [told(False, 0.0), told(False, 2.0)] == [("reserving", 0.0), ("reserving", 2.0)]
    assert [told(True, 3.0), told(True, 5.0)] == [("loading", 0.0), ("loading", 2.0)]
    replicas.loaded("stt-0")
    assert told(True, 6.0) == ("serving", 0.0)


def test_one_that_waits_tells_for_how_long_and_why() -> None:
    replicas = Replicas([SLOT])
    replicas.lost("stt-0", "out of memory", 10.0)
    replicas.tick(11.0)
    replicas.lost("stt-0.1", "out of memory", 20.0)
    [row] = Progress().rows(replicas.all(), (), 20.5)
    assert (row.state, row.message) == ("waiting", "failed 2 times, next try in 2 s: out of memory")
