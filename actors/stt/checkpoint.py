"""What can be told of a Whisper checkpoint without loading it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path

PARAMETERS = {"tiny": 39e6, "base": 74e6, "small": 244e6, "medium": 769e6, "turbo": 809e6, "large": 1550e6}
"""Sizes of the published checkpoints, for an estimate before the weights are here."""


def check(folder: Path, model_name: str) -> None:
    """Raise `ValueError` where `folder` does not hold a Whisper checkpoint."""
    kind = json.loads((folder / "config.json").read_text()).get("model_type")
    if kind != "whisper":
        raise ValueError(f"stt whisper: {model_name} is a {kind!r} model; choose a Whisper checkpoint.")


def parameters(model_name: str, published: Mapping[str, float] = PARAMETERS) -> float:
    """How many numbers the checkpoint holds: counted where it is here, else by what its name holds (0: unknown)."""
    from actors import assets

    asset = assets.find(model_name)
    folder = assets.present(asset) if asset is not None else Path(model_name)
    if folder is not None and folder.is_dir():
        return float(sum(_safetensors_numbers(path) for path in folder.glob("*.safetensors")))
    return next((count for name, count in published.items() if name in model_name), 0.0)


def _safetensors_numbers(path: Path) -> int:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
