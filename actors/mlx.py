"""What backends on MLX share: which device computes, and the weights' place.

MLX is Apple's; `mps` means its GPU.  On Linux its CPU build works too, slowly.
"""

from __future__ import annotations

from pathlib import Path


def use(device: str) -> None:
    """Have MLX compute on `device` ("mps" or "cpu") in this process."""
    import mlx.core as mx

    mx.set_default_device(mx.Device(mx.gpu if device == "mps" else mx.cpu))


def folder(model_name: str) -> Path:
    """The folder that `model_name` (asset, hub id or folder) means, fetched if need be."""
    from actors import assets

    return assets.resolve(model_name)


def weight_bytes(model_name: str) -> int:
    """Size of the weights on disk, which is their size in memory; 0: not here."""
    from actors import assets

    path = assets.here(model_name)
    if path is None or not path.is_dir():
        return 0
    return sum(file.stat().st_size for pattern in ("*.safetensors", "*.npz") for file in path.glob(pattern))
