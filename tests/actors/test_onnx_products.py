"""Integer convolutions as matrix products: the same numbers, from one node of another kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from actors import onnx_products, onnx_session

ZERO = np.array(117, np.uint8)


def convolution(
    width: int = 3, stride: int = 1, dilation: int = 1, pads: tuple[int, int] = (0, 0), **changed: Any
) -> onnx.ModelProto:
    """A model of one `ConvInteger` from 5 channels to 4, with weights of every size."""
    channels = 5 // changed.get("group", 1)
    weights = np.random.default_rng(1).integers(0, 256, (5 if channels == 1 else 4, channels, width))
    node = helper.make_node(
        "ConvInteger",
        ["sound", "weights", "zero", "offset"],
        ["made"],
        name="/c",
        **{"strides": [stride], "dilations": [dilation], "pads": pads, "kernel_shape": [width], **changed},
    )
    graph = helper.make_graph(
        [node],
        "c",
        [
            helper.make_tensor_value_info("sound", TensorProto.UINT8, [1, 5, "times"]),
            helper.make_tensor_value_info("zero", TensorProto.UINT8, []),
        ],
        [helper.make_tensor_value_info("made", TensorProto.INT32, [1, None, None])],
        [
            numpy_helper.from_array(weights.astype(np.uint8), "weights"),
            numpy_helper.from_array(np.array(70, np.uint8), "offset"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def made(model: onnx.ModelProto) -> Any:
    sound = np.random.default_rng(2).integers(0, 256, (1, 5, 23)).astype(np.uint8)
    session = onnx_session.open_model(model.SerializeToString(), "cpu", 1)
    return session.run(None, {"sound": sound, "zero": ZERO})[0]


def kinds(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


@pytest.fixture
def exact() -> None:
    if not onnx_products.exact():
        pytest.skip("this CPU adds products of bytes in 16 bits")


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"width": 1},
        {"width": 1, "stride": 2},
        {"width": 7, "pads": (3, 3)},
        {"width": 3, "pads": (5, 5), "dilation": 5},
        {"width": 12, "pads": (3, 3), "stride": 6},
        {"width": 4, "pads": (2, 1), "stride": 3, "dilation": 2},
    ],
)
def test_a_convolution_becomes_a_product_of_the_same_numbers(shape: dict[str, Any]) -> None:
    model = convolution(**shape)
    wanted = made(model)
    onnx_products.as_products(model)
    assert "MatMulInteger" in kinds(model) and "ConvInteger" not in kinds(model)
    np.testing.assert_array_equal(made(model), wanted)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("changed", [{"group": 5}, {"auto_pad": "SAME_UPPER", "pads": None}])
def test_another_kind_of_convolution_stays(changed: dict[str, Any]) -> None:
    model = convolution(**changed)
    onnx_products.as_products(model)
    assert kinds(model) == {"ConvInteger"}


@pytest.mark.usefixtures("exact")
def test_a_convolution_whose_weights_come_from_outside_stays() -> None:
    model = convolution()
    weights = model.graph.initializer[0]
    model.graph.input.append(helper.make_tensor_value_info(weights.name, TensorProto.UINT8, weights.dims))
    model.graph.initializer.remove(weights)
    onnx_products.as_products(model)
    assert kinds(model) == {"ConvInteger"}


def test_on_a_cpu_that_adds_pairs_in_16_bits_all_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Saturating:
        def run(self, _: None, given: dict[str, Any]) -> list[Any]:
            rows = given["rows"].astype(np.int64)
            return [np.full((len(rows), len(rows)), 32_767, np.int32)]

    monkeypatch.setattr(onnx_session, "open_model", lambda *_: Saturating())
    onnx_products.exact.cache_clear()
    try:
        model = convolution()
        onnx_products.as_products(model)
        assert kinds(model) == {"ConvInteger"}
    finally:
        onnx_products.exact.cache_clear()
