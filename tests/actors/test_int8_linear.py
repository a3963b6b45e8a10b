"""Linear layers with int8 weights give what the layers gave that they stand for, but for rounding."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from actors import int8_linear

pytestmark = pytest.mark.skipif(
    not int8_linear.available(), reason="this torch has no int8 kernels for this CPU"
)


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    torch.manual_seed(0)
    with torch.inference_mode():
        yield


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 1, 96), (2, 7, 96), (1, 96)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_but_for_rounding(bias: bool, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    linear = nn.Linear(96, 64, bias=bias)
    linear.weight[5] *= 50
    linear, x = linear.to(dtype), torch.randn(shape).to(dtype)
    made = int8_linear.Int8Linear(linear)(x)
    assert made.dtype is torch.float32 and made.shape == (*shape[:-1], 64)
    linear, x = linear.float(), x.float()
    weight_step = linear.weight.abs().amax(1) / 127  # of each row its own
    input_step = (x.max().clamp_min(0) - x.min().clamp_max(0)) / 127
    furthest = (
        input_step / 2 * linear.weight.abs().sum(1)
        + weight_step / 2 * x.abs().sum(-1, keepdim=True)
        + 96 * weight_step * input_step / 4
    )
    assert ((made - linear(x)).abs() <= furthest).all()
    assert (made - linear(x)).abs().max() > 0


def test_a_row_of_zeros_stays_zero() -> None:
    linear = nn.Linear(8, 2, bias=False)
    linear.weight[0] = 0
    assert int8_linear.Int8Linear(linear)(torch.randn(1, 8))[0, 0] == 0


def test_every_layer_inside_is_replaced_without_a_warning() -> None:
    module = nn.Sequential(
        nn.Linear(8, 8), nn.ModuleDict({"in": nn.Linear(8, 8)}), nn.LayerNorm(8)
    ).bfloat16()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        int8_linear.quantize(module)
    kinds = [type(each) for each in module.modules()]
    assert kinds.count(int8_linear.Int8Linear) == 2 and nn.Linear not in kinds
    assert next(module.parameters()).dtype is torch.float32
