"""Starts Ray on this machine, or joins a cluster."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orchestration.cluster_settings import RaySettings

log = logging.getLogger(__name__)

_SYSTEM_CONFIG = {
    "enable_metrics_collection": False,
    "prestart_worker_first_driver": False,
    "task_events_report_interval_ms": 0,  # a tenth of what a call costs
    "agent_register_timeout_ms": 120_000,
    "enable_pipe_based_agent_to_parent_health_check": True,
}
START_ATTEMPTS = 2


class RayStartError(RuntimeError):
    """Ray could not be started, or the cluster not be joined."""


def will_join(settings: RaySettings) -> bool:
    """Whether a cluster that runs already is joined: `settings.address` or RAY_ADDRESS names one."""
    return bool(settings.address or os.environ.get("RAY_ADDRESS"))


@contextmanager
def ray_running(
    settings: RaySettings, num_cpus: float | None = None, num_gpus: int | None = None
) -> Iterator[None]:
    """Within, this process is connected to Ray; what was started here is gone afterwards.

    `num_cpus` and `num_gpus` override what Ray would find (tests).
    """
    import ray

    _prepare()
    if will_join(settings):
        address = settings.address or os.environ["RAY_ADDRESS"]
        with _connecting(f"joined at {address}"):
            ray.init(address=address, log_to_driver=False, logging_level="warning")
        try:
            yield
        finally:
            ray.shutdown()
        return
    from actors.assets import cache_folder
    from orchestration.processes import OwnProcesses, end_leftovers

    # A Ray of our own listens on this machine only and lives as long as we do: no token in the user's home.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    folder = cache_folder() / "run"
    if ended := end_leftovers(folder):
        log.warning("ended %d processes that an earlier run left behind", ended)
    own = OwnProcesses(folder)
    try:
        _start_here(settings, num_cpus, num_gpus)
        yield
    finally:
        with _uninterrupted():
            ray.shutdown()
            own.end()


def _start_here(settings: RaySettings, num_cpus: float | None, num_gpus: int | None) -> None:
    """Start Ray; once more where it failed, as Ray gives its parts 30 s, which a busy machine may exceed."""
    import ray

    for attempt in range(START_ATTEMPTS):
        try:
            with _uninterrupted(), _connecting("started on this machine"):
                ray.init(
                    include_dashboard=False,
                    object_store_memory=settings.object_store_mb * 1_000_000,
                    num_cpus=num_cpus,
                    num_gpus=num_gpus,
                    log_to_driver=False,
                    logging_level="warning",
                    _system_config=dict(_SYSTEM_CONFIG),
                )
            return
        except RayStartError as error:
            ray.shutdown()
            if attempt == START_ATTEMPTS - 1:
                raise
            log.warning("%s; trying once more", error)


@contextmanager
def _connecting(what: str) -> Iterator[None]:
    """Name Ray's failures."""
    try:
        yield
    except Exception as error:
        raise RayStartError(f"Ray could not be {what}: {error}") from error


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back, and raise them as `KeyboardInterrupt` at the end.

    Ray forks while it starts, and Python drops an exception that is raised in what it runs around a fork: the signal
    would be lost.  An end that is interrupted would leave processes behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            raise KeyboardInterrupt


def _prepare() -> None:
    """Settings that Ray reads before it starts."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's workers start at nice 15, and audio frames would wait behind every other program.
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray._private.utils as utils
    import ray._private.worker as worker

    # Ray puts a handler of SIGTERM in the place of ours that aborts, and nothing would be stopped.
    utils.set_sigterm_handler = _keep_handler
    # Ray prints every worker's death on standard output, in the middle of `--json`; we say it ourselves.
    worker.print_to_stdstream = _log_raylet


def _keep_handler(handler: Any) -> None:
    pass


def _log_raylet(data: dict[str, Any], ignore_prefix: bool = False) -> None:
    for line in data.get("lines", ()):
        log.debug("raylet: %s", line)
