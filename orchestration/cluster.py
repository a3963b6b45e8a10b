"""Starts Ray on this machine, or joins a cluster."""

from __future__ import annotations

import os

from orchestration.cluster_settings import RaySettings

_SYSTEM_CONFIG = {"enable_metrics_collection": False, "prestart_worker_first_driver": False}


def will_join(settings: RaySettings) -> bool:
    """Whether a cluster that runs already is joined."""
    return bool(settings.address or os.environ.get("RAY_ADDRESS"))


def start_ray(settings: RaySettings, num_cpus: float | None = None, num_gpus: int | None = None) -> bool:
    """Connect this process to Ray; True where Ray was started here, False where a cluster was joined.

    A cluster is joined where `settings.address` or RAY_ADDRESS names one.  `num_cpus` and `num_gpus` override what Ray
    would find (tests).  Workers run at nice 0: audio frames must not wait behind other programs.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    if not will_join(settings):
        # A Ray of our own listens on this machine only and lives as long as we do: no token in the user's home.
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    if will_join(settings):
        ray.init(
            address=settings.address or os.environ["RAY_ADDRESS"],
            log_to_driver=False,
            logging_level="warning",
        )
        return False
    ray.init(
        include_dashboard=False,
        object_store_memory=settings.object_store_mb * 1_000_000,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        log_to_driver=False,
        logging_level="warning",
        _system_config=dict(_SYSTEM_CONFIG),
    )
    return True


def stop_ray() -> None:
    """Disconnect, and end what `start_ray` started."""
    import ray

    ray.shutdown()
