"""Command `doctor`: what is on this machine, in words."""

from __future__ import annotations

import argparse
import importlib.util
import platform
import socket
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

from actors.registry import ENTRIES
from orchestration.asks import show_bytes
from orchestration.inventory import Inventory, local_node
from orchestration.placement import PlacementError
from s2s.asks import plan_for
from s2s.config import Config, ConfigError

Line = tuple[bool, str]
"""Whether that is as it should be, and what was found."""


def run(config: Config, args: argparse.Namespace) -> int:
    """Print what was found; 1 where something keeps the configured system from running."""
    code = 0
    for title, check in _CHECKS.items():
        for good, text in check(config):
            print(f"{'ok ' if good else 'BAD'}  {title:9} {text}")
            code = code if good else 1
    return code


def _python(config: Config) -> Iterator[Line]:
    fine = (3, 11) <= sys.version_info < (3, 14)
    wanted = "" if fine else ": 3.11 to 3.13 is needed"
    yield fine, f"Python {platform.python_version()} on {platform.system()} {platform.machine()}{wanted}"


def _packages(config: Config) -> Iterator[Line]:
    for name in ("torch", "ray", "transformers", "onnxruntime", "onnx", "soundfile", "soxr"):
        try:
            yield True, f"{name} {version(name)}"
        except PackageNotFoundError:
            yield False, f"{name} is not installed: pip install -e . in the checkout"


def _devices(config: Config) -> Iterator[Line]:
    node = local_node()
    yield True, f"{node.cpus:g} CPUs, {show_bytes(node.memory_bytes)} RAM free"
    for gpu in node.gpus:
        yield (
            True,
            f"cuda:{gpu.index} {gpu.name}, {show_bytes(gpu.free_bytes)} of {show_bytes(gpu.total_bytes)} free",
        )
    if node.gpus:
        import torch

        built = torch.version.cuda
        said = (
            f"torch is built for CUDA {built}"
            if built
            else "torch is a CPU build and will not use these GPUs"
        )
        yield bool(built), said
    if node.mps:
        yield True, "mps (Apple silicon)"
    if not node.gpus and not node.mps:
        yield True, "no GPU: every stage runs on the CPU"


def _plan(config: Config) -> Iterator[Line]:
    try:
        plan = plan_for(config, Inventory((local_node(),)))
    except (PlacementError, ConfigError) as error:
        yield False, str(error)
        return
    for slot in plan.slots:
        yield True, f"{slot.name} ({slot.backend}) on {slot.device}: {slot.why}"


def _backends(config: Config) -> Iterator[Line]:
    chosen = {(stage, config.stage(stage).backend) for stage in config.stages}
    for entry in ENTRIES:
        if (entry.stage, entry.name) in chosen:
            there = importlib.util.find_spec(entry.module) is not None
            extra = f" (extra [{entry.extra}])" if entry.extra else ""
            yield there, f"{entry.stage} {entry.name}{extra}: {entry.summary}"


def _assets(config: Config) -> Iterator[Line]:
    from actors.assets import cache_folder, status

    yield True, f"cache folder {cache_folder()}"
    present = [each.asset.name for each in status() if each.path is not None]
    yield (
        True,
        f"here already: {', '.join(present) or 'nothing; `pull` or the first start fetches what is needed'}",
    )


def _audio(config: Config) -> Iterator[Line]:
    if importlib.util.find_spec("sounddevice") is None:
        yield (
            True,
            "sounddevice is not installed (only the microphone client needs it: pip install 's2s[local]')",
        )
        return
    try:
        import sounddevice
    except OSError as error:
        yield True, f"PortAudio is missing, so there is no microphone and no speaker here: {error}"
        return
    devices = [str(device["name"]) for device in sounddevice.query_devices()]
    yield True, f"{len(devices)} sound devices: {', '.join(devices) or 'none'}"


def _ports(config: Config) -> Iterator[Line]:
    host, port = config.server.host, config.server.port
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            yield False, f"{host}:{port} cannot be used ({error.strerror}): choose another with --port"
            return
    yield True, f"{host}:{port} is free"


_CHECKS: dict[str, Callable[[Config], Iterator[Line]]] = {
    "python": _python,
    "packages": _packages,
    "devices": _devices,
    "backends": _backends,
    "plan": _plan,
    "assets": _assets,
    "audio": _audio,
    "port": _ports,
}
