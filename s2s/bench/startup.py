"""`bench startup`: seconds until the system is ready, and what each stage takes of them."""

from __future__ import annotations

import argparse
import time
from typing import Any

import ray

from s2s.bench import bounds
from s2s.config import Config
from s2s.gateway import start_gateway
from s2s.system import running


def run(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Start the configured system once, with weights that are here already, and end it.

    `ready_s` runs from the plan to a gateway whose every stage is loaded and warm; of a stage, `load_s` is its model's
    loading, `warmup_s` the first run of every path.  The stages start side by side, so these overlap.
    """
    began = time.monotonic()
    with running(config) as system:
        start_gateway(config, system.supervisor)
        ready_s = time.monotonic() - began
        loaded = ray.get(system.supervisor.loaded.remote())
        placement = ray.get(system.supervisor.placement.remote())
    figures = {"ready_s": ready_s, "stages_s": system.startup_s}
    for name, replica in loaded.items():
        figures |= {f"{name}_load_s": replica.load_s, f"{name}_warmup_s": replica.warmup_s}
    figures |= {f"{row['replica']}_memory_mb": row["memory_mb"] for row in placement}
    return {
        "bench": "startup",
        "figures": figures,
        "broken": bounds.broken(figures, bounds.STARTUP),
    }
