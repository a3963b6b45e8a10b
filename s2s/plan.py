"""Command `plan`: what would run where, made without starting anything."""

from __future__ import annotations

import argparse
import json

from orchestration.cluster import ray_running, will_join
from orchestration.inventory import Inventory, local_node
from orchestration.node_types import cluster_file, ray_inventory
from s2s.asks import plan_for
from s2s.config import Config
from s2s.plan_view import explain, plan_json, plan_table


def run(config: Config, args: argparse.Namespace) -> int:
    """Print the plan as a table, as JSON or explained."""
    inventory = inventory_for(config)
    plan = plan_for(config, inventory)
    if args.json:
        print(json.dumps(plan_json(plan, inventory), indent=2))
    elif args.explain:
        print(explain(plan))
    else:
        from rich.console import Console

        Console().print(plan_table(plan))
    return 0


def inventory_for(config: Config) -> Inventory:
    """The cluster that the configuration joins, else this machine."""
    if not will_join(config.ray):
        return Inventory((local_node(),))
    with ray_running(config.ray):
        return ray_inventory(cluster_file(config.ray))
