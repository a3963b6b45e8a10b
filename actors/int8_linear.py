"""Linear layers with int8 weights: decoding token by token on a CPU costs what reading the weights costs."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

_ENGINE = "fbgemm"
"""x86.  The engines of other CPUs are not measured."""


def available() -> bool:
    """Whether this torch has the kernels: they are to leave it in some future release."""
    return _ENGINE in torch.backends.quantized.supported_engines and hasattr(torch, "quantize_per_channel")


class Int8Linear(nn.Module):  # type: ignore[misc]
    """`linear` with a scale for each row of its weights.  Inputs are rounded to 7 bits, each tensor by its own range,
    as sums of 8 bits overflow on older CPUs."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.float32).tiny).double()
        zeros = torch.zeros(len(scales), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.quantize_per", category=UserWarning)
            rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self._packed: Any = torch.ops.quantized.linear_prepack(rounded, bias)

    def forward(self, x: Tensor) -> Tensor:
        """float32[..., outputs] of float[..., inputs]."""
        made: Tensor = torch.ops.quantized.linear_dynamic(x.float(), self._packed, True)
        return made


def quantize(module: nn.Module) -> None:
    """Replace every `nn.Linear` inside `module`; what else it holds works in float32 from then on."""
    module.float()
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            quantize(child)
