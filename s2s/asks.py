"""The configuration as asks of the machines, and the plan that meets them."""

from __future__ import annotations

from typing import Any

from actors.registry import NONE, find
from actors.torch_device import ImpossibleDtype, resolve_dtype
from orchestration.asks import KINDS, Ask, parse_bytes, parse_device, parse_replicas
from orchestration.inventory import Inventory
from orchestration.placement import Plan, make_plan
from s2s.config import Config, ConfigError


def asks(config: Config) -> list[Ask]:
    """One ask for each stage that runs.  Raises `ConfigError` where nobody would hear."""
    if config.stt.backend == NONE and not unloaded(config, "llm").capabilities.audio_input:
        raise ConfigError(
            f"{config.origins.get('stt.backend', 'default')}: --stt none gives the LLM the sound itself, but --llm "
            f"{config.llm.backend} as it is set does not hear: choose one that does, such as --llm chat-completions "
            "with --llm_audio_input true and a model that takes sound, or another --stt."
        )
    return [_ask(config, stage) for stage in config.stages]


def _ask(config: Config, stage: str) -> Ask:
    wanted = config.stage(stage)
    entry = find(stage, wanted.backend)
    own = wanted.device is not None
    least, most = parse_replicas(wanted.replicas)
    return Ask(
        stage=stage,
        backend=entry.name,
        device=wanted.device or config.device,
        device_from=config.origins.get(f"{stage}.device" if own else "device", "default"),
        own_device=own,
        supports=_devices(config, stage),
        memory_bytes=_memory(config, stage),
        gpu_fraction=wanted.gpu_fraction,
        gpu_memory_bytes=parse_bytes(wanted.gpu_memory) if wanted.gpu_memory else None,
        cpus=wanted.cpus,
        threads=wanted.threads,
        min_replicas=least,
        max_replicas=most,
        standby=wanted.standby,
        labels=wanted.labels,
        resources=wanted.resources,
        dtype=wanted.dtype,
        options=wanted.options,
        python=wanted.python,
    )


def _devices(config: Config, stage: str) -> tuple[str, ...]:
    """The device kinds that the backend runs on with what is installed; an interpreter of its own may have all."""
    wanted = config.stage(stage)
    entry = find(stage, wanted.backend)
    if wanted.python is not None:
        return entry.devices
    for device in parse_device(wanted.device or "auto"):
        module = entry.lacks(device.kind)
        if module is not None:
            origin = config.origins.get(f"{stage}.device", "default")
            absent = ImportError(f"on {device} {stage} {entry.name} needs {module}, which is not installed")
            raise ConfigError(f"{origin}: {entry.missing(absent)}")
    return tuple(kind for kind in entry.devices if entry.lacks(kind) is None)


def _memory(config: Config, stage: str) -> dict[str, int]:
    """The backend's own estimate for each device kind that it runs on, in the dtype that it would have there."""
    wanted = config.stage(stage)
    entry = find(stage, wanted.backend)
    backend = unloaded(config, stage)
    estimates: dict[str, int] = {}
    for kind in KINDS:
        if kind not in entry.devices:
            continue
        dtype = wanted.dtype
        if dtype == "auto":
            dtype = resolve_dtype(kind)
        size = backend.memory_bytes(dtype)
        if size:
            estimates[kind] = size
    return estimates


def unloaded(config: Config, stage: str) -> Any:
    """The backend of `stage`, not loaded."""
    entry = find(stage, config.stage(stage).backend)
    options = backend_options(config, stage)
    try:
        return entry.backend_class()(options)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{stage}: options of backend {entry.name}: {error}") from error


def backend_options(config: Config, stage: str) -> Any:
    """The options that the backend of `stage` is made with."""
    from actors.stage import build_options

    entry = find(stage, config.stage(stage).backend)
    try:
        return build_options(entry, config.stage(stage).options)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{stage}: options of backend {entry.name}: {error}") from error


def plan_for(config: Config, inventory: Inventory) -> Plan:
    """The plan for `config` on `inventory`.  Raises `PlacementError`, or `ConfigError` for an impossible dtype."""
    plan = make_plan(asks(config), inventory)
    for slot in plan.slots:
        if slot.device != "cpu":
            continue
        try:
            resolve_dtype("cpu", config.stage(slot.stage).dtype)
        except ImpossibleDtype as error:
            origin = config.origins.get(f"{slot.stage}.dtype", "default")
            raise ConfigError(f"{origin}: {slot.stage} ({slot.backend}): {error}") from error
    return plan
