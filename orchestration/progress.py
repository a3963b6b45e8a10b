"""How far each replica is, for people: pure, time passed in."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from orchestration.replicas import Replica


@dataclass(frozen=True)
class StageProgress:
    """How far one replica is."""

    stage: str
    replica: str
    backend: str
    state: str
    """reserving, loading, serving, standby, draining or waiting (for its next try)."""
    seconds: float
    """In this state."""
    message: str = ""


class Progress:
    """Since when each place has been in its state."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[str, float]] = {}

    def rows(self, replicas: Iterable[Replica], made: Container[str], now_s: float) -> list[StageProgress]:
        """A row for each of `replicas`; those that are not `made` have no process yet."""
        return [self._row(replica, replica.name in made, now_s) for replica in replicas]

    def _row(self, replica: Replica, made: bool, now_s: float) -> StageProgress:
        slot, message = replica.slot, replica.reason
        state = replica.state if made or replica.state == "waiting" else "reserving"
        before, since_s = self._since.get(slot.name, ("", now_s))
        if before != state:
            since_s = now_s
            self._since[slot.name] = (state, since_s)
        if state == "waiting":
            wait_s = max(0.0, replica.retry_at_s - now_s)
            message = f"failed {replica.failed_loads} times, next try in {wait_s:.0f} s: {message}"
        return StageProgress(slot.stage, replica.name, slot.backend, state, now_s - since_s, message)
