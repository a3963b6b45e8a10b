"""What a stage asks of the machines: device, memory, threads, replicas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

KINDS = ("cuda", "mps", "cpu")
"""Device kinds in the order in which `auto` tries them."""
_DEVICE = re.compile(r"(auto|cpu|mps|cuda)|cuda:(\d+)")
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.IGNORECASE)
_SCALE = {"": 1, "b": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_BINARY_SCALE = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True)
class DeviceAsk:
    """Where one replica wants to be."""

    kind: Literal["auto", "cpu", "mps", "cuda"]
    gpus: tuple[int, ...] = ()
    """GPU numbers of its node, in the user's numbering; empty: any one."""

    def __str__(self) -> str:
        return "+".join(f"cuda:{gpu}" for gpu in self.gpus) or self.kind


@dataclass(frozen=True)
class Ask:
    """One stage's wishes and what they are for."""

    stage: str
    backend: str
    device: str = "auto"
    """As the user wrote it, see `parse_device`."""
    device_from: str = "default"
    """Where the device came from, for errors: `flag --stt_device`."""
    own_device: bool = True
    """False: the device is the global default, which a backend that cannot use it may leave for the CPU."""
    supports: tuple[str, ...] = KINDS
    """Device kinds that the backend runs on."""
    memory_bytes: Mapping[str, int] = field(default_factory=dict)
    """Estimated memory of one replica by device kind, weights and work; absent: unknown."""
    gpu_fraction: float | None = None
    gpu_memory_bytes: int | None = None
    cpus: float | None = None
    threads: int | None = None
    min_replicas: int = 1
    max_replicas: int = 1
    standby: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    dtype: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    """The backend's options, by the names of its options dataclass."""
    python: str | None = None

    @property
    def flag(self) -> str:
        """The flag that the device came from, or would."""
        return f"--{self.stage}_device" if self.own_device else "--device"


def parse_device(text: str) -> tuple[DeviceAsk, ...]:
    """`auto`, `cpu`, `mps`, `cuda`, `cuda:1`, lists by commas (a replica each) and by plus (one replica over all).

    Raises `ValueError` for anything else.
    """
    return tuple(_one_device(part.strip(), text) for part in text.split(","))


def _one_device(part: str, text: str) -> DeviceAsk:
    steps = [step.strip() for step in part.split("+")]
    found = [_DEVICE.fullmatch(step) for step in steps]
    if not all(found):
        raise ValueError(
            f"device {text!r} is not known; write auto, cpu, cuda, cuda:1, 'cuda:0,cuda:1' (a replica each), "
            "'cuda:0+cuda:1' (one replica over both) or mps."
        )
    if len(steps) == 1 and not steps[0].startswith("cuda:"):
        return DeviceAsk(steps[0])  # type: ignore[arg-type]  # the pattern allows only the kinds
    if not all(step.startswith("cuda:") for step in steps):
        raise ValueError(f"device {text!r}: one replica can only span numbered GPUs, such as cuda:0+cuda:1.")
    gpus = tuple(int(step.removeprefix("cuda:")) for step in steps)
    if len(set(gpus)) != len(gpus):
        raise ValueError(f"device {text!r} names a GPU twice.")
    return DeviceAsk("cuda", gpus)


def parse_replicas(text: str) -> tuple[int, int]:
    """`2` → (2, 2); `1..4` → (1, 4)."""
    low, _, high = text.partition("..")
    try:
        least, most = int(low), int(high or low)
    except ValueError:
        raise ValueError(f"replicas {text!r} is neither a number nor a range such as 1..4.") from None
    if not 1 <= least <= most:
        raise ValueError(f"replicas {text!r}: at least 1, and the maximum not below the minimum.")
    return least, most


def parse_bytes(text: str) -> int:
    """`6GB`, `6GiB`, `500MB`, or plain bytes."""
    found = _BYTES.fullmatch(text.strip())
    if not found:
        raise ValueError(f"memory {text!r} is not a size such as 6GB or 6GiB.")
    unit = found[2].lower().removesuffix("b")
    return int(float(found[1]) * (_BINARY_SCALE.get(unit) or _SCALE[unit]))


def show_bytes(size: float) -> str:
    """A size in words, decimal units."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
