"""What backends on transformers' own classes share: loading, an estimate of memory, and stopping in mid-work."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors import torch_device

WORK_BYTES = 300_000_000
"""Activations, and what torch keeps beside the weights, roughly."""


class Stopped(RuntimeError):
    """Work was cancelled inside a forward."""


def load(
    model_name: str, kinds: Mapping[str, str], device: str, dtype: str, threads: int
) -> tuple[Any, Path]:
    """The model that `model_name` (asset, hub id or folder) means, on `device`, and its folder.

    `kinds`: transformers' class by the checkpoint's `model_type`.  Raises `ImpossibleDtype`, `AssetError`, and
    `ValueError` for a checkpoint of another kind.
    """
    resolved = torch_device.resolve_dtype(device, dtype)

    import torch
    import transformers

    from actors import assets

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch_device.set_threads(threads)
    folder = assets.resolve(model_name)
    kind = json.loads((folder / "config.json").read_text("utf-8")).get("model_type")
    if kind not in kinds:
        raise ValueError(f"{model_name} is a {kind!r} model; choose a checkpoint of {', '.join(kinds)}.")
    cls = getattr(transformers, kinds[kind], None)
    if cls is None:
        raise ImportError(f"transformers {transformers.__version__} has no {kinds[kind]}")
    model = cls.from_pretrained(folder, dtype=getattr(torch, resolved))
    return model.to(device).eval(), folder


def bfloat16_dtype(device: str, asked: str) -> str:
    """The dtype for a model that was trained in bfloat16 and may overflow in float16: `auto` is bfloat16 on cuda and
    mps, where the GPU has it."""
    if asked != "auto" or device == "cpu":
        return asked
    try:
        return torch_device.resolve_dtype(device, "bfloat16")
    except torch_device.ImpossibleDtype:
        return asked


def memory_bytes(
    model_name: str, dtype: str, published: Mapping[str, float], work_bytes: int = WORK_BYTES
) -> int:
    """Weights in `dtype` (auto: 4 bytes a number) and work of a checkpoint; 0: unknown.

    `published`: see `named`; used where no safetensors of it are on this machine.
    """
    count = _counted(model_name) or named(model_name, published)
    each = 4 if dtype == "auto" else torch_device.dtype_bytes(dtype)
    return int(count * each) + work_bytes if count else 0


def named(model_name: str, published: Mapping[str, float]) -> float:
    """How many numbers a checkpoint holds by its name: `published` has them by what the name holds.  0: unknown."""
    return next((count for name, count in published.items() if name in model_name), 0.0)


def _counted(model_name: str) -> int:
    """How many numbers the checkpoint's safetensors hold; 0: none are on this machine."""
    from actors import assets

    folder = assets.here(model_name)
    return sum(map(_safetensors_numbers, folder.glob("*.safetensors"))) if folder is not None else 0


def _safetensors_numbers(path: Path) -> int:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")


def stopping(rows: Sequence[Callable[[], bool]], limits: Sequence[int]) -> Any:
    """Criteria for `generate()` that end row i where `rows[i]()` holds or it is `limits[i]` tokens long."""
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    class Rows(StoppingCriteria):  # type: ignore[misc]
        eos_token_id = None
        """That this exists makes generate() pad rows that have ended, also for models without an end token."""

        def __init__(self) -> None:
            self._start: int | None = None

        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            if self._start is None:
                self._start = input_ids.shape[1] - 1
            length = input_ids.shape[1] - self._start
            ended = [stopped() or length >= limit for stopped, limit in zip(rows, limits, strict=True)]
            return torch.tensor(ended, device=input_ids.device)

    return StoppingCriteriaList([Rows()])


class Interruptible:
    """Lets a model that works in one long call be stopped between its layers."""

    def __init__(self, modules: Iterable[Any]) -> None:
        self._stopped: Callable[[], bool] | None = None
        for module in modules:
            module.register_forward_pre_hook(self._ask)

    def _ask(self, module: Any, arguments: Any) -> None:
        if self._stopped is not None and self._stopped():
            raise Stopped

    @contextmanager
    def until(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """Inside, the model raises `Stopped` at its next layer once `stopped()` holds."""
        self._stopped = stopped
        try:
            yield
        finally:
            self._stopped = None


def layers(model: Any) -> list[Any]:
    """The modules of a torch model that are layers by their name, such as LlamaDecoderLayer."""
    return [
        module
        for module in model.modules()
        if "Layer" in type(module).__name__ and "Norm" not in type(module).__name__
    ]
