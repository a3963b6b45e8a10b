"""What torch stages share: the number format that suits a device, threads, and giving memory back."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

DTYPES = ("float32", "float16", "bfloat16")


class ImpossibleDtype(ValueError):
    """The device cannot work in the number format that was asked for."""


class MissingCompiler(RuntimeError):
    """`torch.compile` has no C++ compiler to give its code to."""


def require_compiler(device: str) -> None:
    """Raise `MissingCompiler` where `torch.compile` could not make code for `device`."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if device == "cpu" and shutil.which(compiler) is None:
        raise MissingCompiler(
            f"torch.compile needs a C++ compiler, and {compiler} was not found; "
            "install g++, or name another compiler in the environment variable CXX."
        )


def cpu_has_bf16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this CPU computes bfloat16 in hardware (AVX512-BF16, AMX, Arm BF16).

    Elsewhere bfloat16 is slower than float32.  False where the system does not say (macOS).
    """
    try:
        words = set(cpuinfo.read_text().split())
    except OSError:
        return False
    return not words.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})


def resolve_dtype(device: str, asked: str = "auto") -> str:
    """The torch dtype name to use on `device` ("cpu", "cuda:0", "mps") for `asked` (auto or of `DTYPES`).

    `auto` is float16 on cuda and mps, bfloat16 on a CPU that has it in hardware, float32 on any other.
    Raises `ImpossibleDtype` for a name that is not known and for a pair that cannot work or is only emulated.
    """
    kind = device.partition(":")[0]
    if asked == "auto":
        if kind == "cpu":
            return "bfloat16" if cpu_has_bf16() else "float32"
        return "float16"
    if asked not in DTYPES:
        raise ImpossibleDtype(f"dtype {asked!r} is not known; choose auto, {', '.join(DTYPES)}.")
    if kind == "cpu" and asked == "float16":
        raise ImpossibleDtype(
            "dtype float16 was asked for on cpu, where torch only emulates it; "
            "choose auto, float32 or bfloat16."
        )
    if kind == "cuda" and asked == "bfloat16":
        import torch

        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise ImpossibleDtype(
                f"dtype bfloat16 was asked for on {device}, a GPU older than Ampere that lacks it; "
                "choose auto, float16 or float32."
            )
    return asked


def require_own(backend: str, asked: str, own: str | None = None) -> None:
    """Raise `ImpossibleDtype` where `asked` is neither auto nor `own`, the one format of a model (None: its files')."""
    if asked not in ("auto", own):
        kind = f"the model is {own}" if own else "it is that of the files"
        raise ImpossibleDtype(f"{backend} was asked for dtype {asked!r}; {kind}: use auto.")


def dtype_bytes(name: str) -> int:
    """Bytes of one number of the torch dtype `name`."""
    return 4 if name == "float32" else 2


def set_threads(threads: int) -> None:
    """Let torch use `threads` threads inside one operation."""
    import torch

    torch.set_num_threads(threads)


def release(device: str) -> None:
    """After a generation on `device`: wait for it and give cached memory back.

    Only mps needs it: it shares memory with the whole machine and keeps every buffer it ever used.
    """
    if device.partition(":")[0] == "mps":
        import torch

        torch.mps.synchronize()
        torch.mps.empty_cache()
