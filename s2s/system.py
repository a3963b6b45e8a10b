"""The running system: Ray, the supervisor and its replicas, from a configuration; and its end, whatever happens."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TextIO

from orchestration.cluster import ray_running, will_join
from orchestration.inventory import Inventory, local_node
from orchestration.node_types import cluster_file, ray_inventory
from orchestration.placement import Plan
from orchestration.supervisor import start_supervisor
from s2s.asks import plan_for
from s2s.config import Config
from s2s.interpreters import check_interpreters
from s2s.plan_view import plan_table

PROGRESS_S = 0.2


@dataclass(frozen=True)
class System:
    """What runs."""

    config: Config
    plan: Plan
    supervisor: Any
    """Ray actor of `orchestration.supervisor.Supervisor`, all of whose replicas are loaded."""
    startup_s: float


@contextmanager
def running(config: Config, out: TextIO | None = sys.stderr) -> Iterator[System]:
    """Plan, start Ray, start every stage side by side; end all of it on the way out, also on SIGINT and SIGTERM.

    Shows the placement table and each stage's progress on `out` (None: nothing).  Raises `PlacementError` and
    `ConfigError` before anything is started, `StageFailedError` when a stage cannot start.
    """
    began = time.monotonic()
    with terminating():
        if not will_join(config.ray):
            plan_for(config, Inventory((local_node(),)))
            check_interpreters(config)
        file = cluster_file(config.ray)
        with ray_running(config.ray):
            plan = plan_for(config, ray_inventory(file))
            _show(plan, out)
            supervisor = start_supervisor(file)
            try:
                _start(supervisor, plan, out)
                yield System(config, plan, supervisor, time.monotonic() - began)
            finally:
                _stop(supervisor)


@contextmanager
def terminating() -> Iterator[None]:
    """Within, SIGTERM ends the program as Ctrl-C does: by an exception that lets everything be stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _show(plan: Plan, out: TextIO | None) -> None:
    if out is not None:
        from rich.console import Console

        Console(file=out).print(plan_table(plan))


def _start(supervisor: Any, plan: Plan, out: TextIO | None) -> None:
    """Start `plan`; raises the cause itself where Ray wraps it."""
    import ray
    from ray.exceptions import RayTaskError

    started = supervisor.start.remote(plan)
    try:
        if out is None:
            ray.get(started)
            return
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(file=out), refresh_per_second=5, transient=True) as live:
            while not ray.wait([started], timeout=PROGRESS_S)[0]:
                live.update(_progress(ray.get(supervisor.progress.remote())))
        ray.get(started)
    except RayTaskError as error:
        raise getattr(error, "cause", error) from None


def _progress(rows: list[Any]) -> Any:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for row in rows:
        done = row.state in ("serving", "standby")
        table.add_row(
            "✓" if done else "…", row.replica, row.backend, row.state, f"{row.seconds:.0f} s", row.message
        )
    return table


def _stop(supervisor: Any) -> None:
    """Let the supervisor end its replicas; a supervisor that is itself dead has taken them with it."""
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError

    try:
        ray.get(supervisor.stop.remote(), timeout=15)
    except (RayActorError, GetTimeoutError):
        return
