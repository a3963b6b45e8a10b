"""`bench NAME`: measure one thing, print the figures, and with `--check` hold them to their bounds."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from s2s.config import Config

DONE, BROKEN = 0, 1


def run(config: Config, args: argparse.Namespace) -> int:
    """Run the bench `args.name`; 1 with `--check` where a bound is broken."""
    bench = importlib.import_module(f"s2s.bench.{args.name}")
    result: dict[str, Any] = bench.run(config, args)
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)
    if not args.check:
        return DONE
    for broken in result["broken"]:
        print(f"bench {args.name}: {broken}", file=sys.stderr)
    return BROKEN if result["broken"] else DONE


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("figure", "value", title=f"bench {result['bench']}")
    for name, value in result["figures"].items():
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value))
    for broken in result["broken"]:
        table.add_row("bound broken", broken)
    Console().print(table)
