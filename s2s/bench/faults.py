"""`bench faults`: kill a stage's process in the middle of answers, and listen to what is left of them."""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np
import ray

from actors.assets import Sample, samples
from orchestration.session import events
from s2s.ask import Conversation, Turn, TurnFailed
from s2s.audio import read_audio
from s2s.bench import bounds
from s2s.bench.hearing import Ear, Heard
from s2s.bench.moments import Moments
from s2s.bench.tell import tell
from s2s.config import Config
from s2s.gateway import start_gateway
from s2s.system import running

STANDBYS = (0, 1)
TRIES_PER_KILL = 3
"""How often a turn is asked again whose answer was out before the kill."""
RESTORE_S = 180.0
POLL_S = 0.1
MEASURED_TURNS = 3
SESSION = {
    "instructions": "You are a storyteller. Tell a short story about what you hear, in four short plain sentences.",
    "max_output_tokens": 80,
}
"""Several clauses, so that one can be missing; the end at 80 tokens is asked for, and no failure."""


@dataclass(frozen=True)
class Outcome:
    """One turn in which a process was killed."""

    standby: int
    question: str
    status: str
    """How the response ended, or the failure in words."""
    answer: str
    heard: str
    wer: float
    missing: tuple[str, ...]
    doubled: tuple[str, ...]
    killed_ms: float
    """From the start of the stage's work in this answer."""
    resent: int
    """Requests that had to be sent again: 0 where the stage had nothing to do at that moment."""
    gap_ms: float
    """Longest silence for want of sound, if played as it came."""
    took_ms: float

    @property
    def completed(self) -> bool:
        return self.status in ("completed", "incomplete: max_output_tokens")


class Executioner:
    """Sends SIGKILL to one process a stated time after a stage has begun to work, from a thread."""

    def __init__(
        self, stage: str, pid: int, after_s: float, moments: Moments, from_first_sound: bool = False
    ) -> None:
        self.killed_at: float | None = None
        """None: the answer was out before."""
        self._stage = stage
        self._from_first_sound = from_first_sound
        self._pid = pid
        self._after_s = after_s
        self._moments = moments
        self._timer: threading.Timer | None = None

    def see(self, event: events.ServerEvent) -> None:
        """Every event of the turn."""
        self._moments.see(event)
        began = self._moments.first_sound if self._from_first_sound else self._moments.work(self._stage)[0]
        if self._timer is None and began is not None:
            self._timer = threading.Timer(max(0.0, began + self._after_s - time.monotonic()), self._kill)
            self._timer.start()

    def put_away(self) -> None:
        """The turn is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _kill(self) -> None:
        over = self._moments.transcript if self._stage == "stt" else self._moments.done
        if over is None:
            os.kill(self._pid, signal.SIGKILL)
            self.killed_at = time.monotonic()


class Trial:
    """A running system whose processes are killed in the middle of answers."""

    def __init__(self, config: Config, supervisor: Any, gateway: Any, ear: Ear) -> None:
        self._config = config
        self._supervisor = supervisor
        self._gateway = gateway
        self._ear = ear

    def work_s(self, stage: str, sample: Sample) -> float:
        """How long `stage` works for an answer that nothing disturbs."""
        moments = Moments()
        self._turn(sample, moments.see)
        began, ended = moments.work(stage)
        if began is None or ended is None:
            raise TurnFailed(
                f"{sample.path}: no answer to measure by ({moments.status or 'no words heard'})."
            )
        return ended - began

    def turn(
        self, stage: str, sample: Sample, after_s: float, from_first_sound: bool = False
    ) -> Outcome | None:
        """One turn with a kill `after_s` into the work of `stage`, or after the answer's first sound.

        None where the answer was out before.
        """
        before = self._resent(stage)
        moments = Moments()
        replica, pid = self.serving(stage)
        executioner = Executioner(stage, pid, after_s, moments, from_first_sound)
        started = time.monotonic()
        failure = ""
        turn = Turn(sample.path, read_audio(sample.path))
        try:
            turn = self._turn(sample, executioner.see)
        except TurnFailed as error:
            failure = str(error)
        finally:
            executioner.put_away()
        if executioner.killed_at is None and not failure:
            return None
        took_s = time.monotonic() - started
        sound = np.frombuffer(b"".join(turn.pieces), np.int16)
        heard = self._ear.check(turn.answer, sound, turn.rate_hz) if turn.answer else Heard("", 1.0)
        began, _ = moments.work(stage)
        outcome = Outcome(
            standby=self._config.stage(stage).standby,
            question=turn.transcript,
            status=failure or moments.status or "no words heard",
            answer=turn.answer,
            heard=heard.text,
            wer=round(heard.wer, 3),
            missing=heard.missing,
            doubled=heard.doubled,
            killed_ms=_ms((executioner.killed_at or started) - (began or started)),
            resent=self._resent(stage) - before,
            gap_ms=_ms(moments.gap_s()),
            took_ms=_ms(took_s),
        )
        self._await_replacement(replica)
        return outcome

    def serving(self, stage: str) -> tuple[str, int]:
        """The replica of `stage` that serves, and its process."""
        rows = ray.get(self._supervisor.progress.remote())
        replica: str = next(row.replica for row in rows if row.stage == stage and row.state == "serving")
        placement = ray.get(self._supervisor.placement.remote())
        return replica, next(row["pid"] for row in placement if row["replica"] == replica)

    def _await_replacement(self, killed: str) -> None:
        """Return when every replica is there and none is `killed`.  Raises `TimeoutError`."""
        until = time.monotonic() + RESTORE_S
        while time.monotonic() < until:
            rows = ray.get(self._supervisor.progress.remote())
            if all(row.replica != killed and row.state in ("serving", "standby") for row in rows):
                return
            time.sleep(POLL_S)
        raise TimeoutError(f"{killed}: no replacement within {RESTORE_S:.0f} s: {rows}")

    def _turn(self, sample: Sample, see: Callable[[events.ServerEvent], None]) -> Turn:
        turn = Turn(sample.path, read_audio(sample.path))
        conversation = Conversation(self._gateway, lambda _: None, SESSION, see)
        try:
            conversation.take(turn)
        finally:
            conversation.close()
        return turn

    def _resent(self, stage: str) -> int:
        figures = ray.get(self._gateway.figures.remote())[stage]
        return int(figures.redelivered)


@contextmanager
def started(config: Config, ear: Ear) -> Iterator[Trial]:
    """The configured system, to be tried."""
    with running(config) as system:
        gateway = start_gateway(config, system.supervisor)
        try:
            yield Trial(config, system.supervisor, gateway, ear)
        finally:
            ray.get(gateway.stop.remote())


def with_standby(config: Config, stage: str, standby: int) -> Config:
    """`config` with that many replicas of `stage` that wait to stand in."""
    changed: dict[str, Any] = {stage: replace(config.stage(stage), standby=standby)}
    return replace(config, **changed)


def run(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Kill `args.stage` `args.kills` times without and with a standby, at moments seeded by `args.seed`."""
    ear = Ear()
    chance = random.Random(args.seed)
    outcomes: list[Outcome] = []
    for standby in STANDBYS:
        with started(with_standby(config, args.stage, standby), ear) as trial:
            outcomes += _kills(trial, args.stage, args.kills, chance)
    figures = _figures(outcomes, args.kills * len(STANDBYS))
    return {
        "bench": "faults",
        "stage": args.stage,
        "figures": figures,
        "broken": bounds.broken(figures, bounds.FAULTS),
        "turns": [asdict(outcome) for outcome in outcomes],
    }


def _kills(trial: Trial, stage: str, kills: int, chance: random.Random) -> list[Outcome]:
    recordings = cycle(samples())
    work_s = min(trial.work_s(stage, next(recordings)) for _ in range(MEASURED_TURNS))
    outcomes: list[Outcome] = []
    for _ in range(kills * TRIES_PER_KILL):
        if len(outcomes) == kills:
            break
        outcome = trial.turn(stage, next(recordings), chance.random() * work_s)
        if outcome is not None:
            outcomes.append(outcome)
            tell(
                "faults",
                f"{stage} killed {len(outcomes)} of {kills}, standby {outcome.standby}: {outcome.status}, "
                f"wer {outcome.wer}, gap {outcome.gap_ms:.0f} ms",
            )
    return outcomes


def _figures(outcomes: Sequence[Outcome], asked: int) -> dict[str, float]:
    figures: dict[str, float] = {
        "kills": len(outcomes),
        "kills_that_came_too_late": asked - len(outcomes),
        "turns_not_completed": sum(not outcome.completed for outcome in outcomes),
        "wer_max": max((outcome.wer for outcome in outcomes), default=1.0),
        "clauses_missing": sum(len(outcome.missing) for outcome in outcomes),
        "clauses_doubled": sum(len(outcome.doubled) for outcome in outcomes),
    }
    for standby in STANDBYS:
        gaps = sorted(outcome.gap_ms for outcome in outcomes if outcome.standby == standby)
        if gaps:
            figures[f"standby_{standby}_gap_p50_ms"] = gaps[len(gaps) // 2]
            figures[f"standby_{standby}_gap_max_ms"] = gaps[-1]
    figures["requests_resent"] = sum(outcome.resent for outcome in outcomes)
    return figures


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
