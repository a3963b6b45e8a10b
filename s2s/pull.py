"""Command `pull`: fetch model weights and recordings ahead of time, or list them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import TextIO

from actors.assets import AssetError, Status, cache_folder, find, pull, status
from s2s.config import Config

_MODEL_OPTIONS = ("model", "model_name")
_MB = 1_000_000


def run(config: Config, args: argparse.Namespace) -> int:
    """Pull the assets named, or those that the configuration needs."""
    return main(args.names or needed(config), args.list, sys.stdout)


def main(names: list[str], list_only: bool, out: TextIO) -> int:
    """Fetch `names` (assets, hub ids or paths) and print where each lies, or only list the catalogue.

    Returns 1 if any could not be had, 0 otherwise.
    """
    if list_only:
        print(_listing(status()), file=out)
        return 0
    results = pull(names)
    for name, result in results.items():
        if isinstance(result, Path):
            print(f"{name}: {result}", file=out)
    failures = [error for error in results.values() if isinstance(error, AssetError)]
    for error in failures:
        print(f"error: {error}", file=sys.stderr)
    return 1 if failures else 0


def needed(config: Config) -> list[str]:
    """Assets and hub ids that the options of the chosen backends name, defaults included."""
    from actors.registry import find as find_backend
    from actors.stage import build_options

    names: dict[str, None] = {}
    for stage in config.stages:
        wanted = config.stage(stage)
        entry = find_backend(stage, wanted.backend)
        if entry.remote:
            continue
        options = build_options(entry, wanted.options)
        for option in fields(options):
            value = getattr(options, option.name)
            if not isinstance(value, str):
                continue
            of_hub = option.name in _MODEL_OPTIONS and "/" in value and ":" not in value
            if find(value) is not None or (of_hub and not Path(value).expanduser().exists()):
                names[value] = None
    return list(names)


def _listing(rows: list[Status]) -> str:
    """One line an asset. The size of one that is not here is that of its download."""
    table = [("asset", "here", "MB", "licence", "what it is")]
    for row in rows:
        size = f"{row.size_bytes / _MB:.1f}" if row.size_bytes else "-"
        here = "yes" if row.path is not None else "no"
        table.append((row.asset.name, here, size, row.asset.licence, row.asset.summary))
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    lines = [
        f"{name:{widths[0]}}  {here:{widths[1]}}  {size:>{widths[2]}}  {licence:{widths[3]}}  {summary}"
        for name, here, size, licence, summary in table
    ]
    return "\n".join([*lines, "", f"in {cache_folder()} (set S2S_CACHE for another place)"])
