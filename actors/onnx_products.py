"""Integer convolutions of an ONNX graph as matrix products of unsigned and signed bytes.

ONNX Runtime lays the weights of a product out once, when it opens the model, and multiplies unsigned by signed bytes
twice as fast as unsigned by unsigned ones on a CPU with AVX-512 VNNI; a `ConvInteger` has neither.  The numbers are
the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

_TO_THE_END = np.iinfo(np.int64).max
_CHECKED = 64
"""Rows and columns of the product that is tried: as large as those that the fast kernels take."""


def as_products(model: Any) -> None:
    """Replace each `ConvInteger` over uint8[batch, channels, times] in `model`, an `onnx.ModelProto`, that has constant
    uint8 weights.

    Leaves alone convolutions in groups, with `auto_pad` or over more dimensions, and everything on a CPU whose products
    are not `exact`.
    """
    if not exact():
        return
    weights = {item.name: item for item in model.graph.initializer}
    nodes: list[Any] = []
    for node in model.graph.node:
        nodes += _product(node, model.graph, weights) if _over_time(node, weights) else [node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


@cache
def exact() -> bool:
    """Whether this CPU's products of unsigned and signed bytes are exact: some older ones add pairs in 16 bits."""
    from onnx import TensorProto, helper, numpy_helper

    from actors import onnx_session

    columns = np.where(np.arange(_CHECKED) % 2, 127, -128).astype(np.int8)
    weights = np.broadcast_to(columns, (_CHECKED, _CHECKED)).copy()
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["rows", "weights"], ["product"])],
        "exact",
        [helper.make_tensor_value_info("rows", TensorProto.UINT8, [_CHECKED, _CHECKED])],
        [helper.make_tensor_value_info("product", TensorProto.INT32, [_CHECKED, _CHECKED])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    rows = np.full((_CHECKED, _CHECKED), 255, np.uint8)
    session = onnx_session.open_model(model.SerializeToString(), "cpu", 1)
    (product,) = session.run(None, {"rows": rows})
    return np.array_equal(product, rows.astype(np.int32) @ weights.astype(np.int32))


def _over_time(node: Any, weights: dict[str, Any]) -> bool:
    from onnx import TensorProto

    if node.op_type != "ConvInteger" or len(node.input) != 4:
        return False
    if any(name not in weights or weights[name].data_type != TensorProto.UINT8 for name in node.input[1::2]):
        return False
    set_ = _attributes(node)
    one_group = set_.get("group", 1) == 1 and set_.get("auto_pad", b"NOTSET") == b"NOTSET"
    return one_group and len(weights[node.input[1]].dims) == 3


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def _product(node: Any, graph: Any, weights: dict[str, Any]) -> Iterator[Any]:
    """The nodes that stand for `node`; their constants are added to `graph`."""
    from onnx import helper, numpy_helper

    set_ = _attributes(node)
    (stride,), (dilation,) = set_.get("strides", [1]), set_.get("dilations", [1])
    before, behind = set_.get("pads", [0, 0])
    kernel = numpy_helper.to_array(weights[node.input[1]])
    width = kernel.shape[2]

    def constant(name: str, value: Any) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), f"{node.name}/{name}"))
        return f"{node.name}/{name}"

    def made(op: str, name: str, *inputs: str, **attributes: Any) -> Any:
        return helper.make_node(op, inputs, [f"{node.name}/{name}"], name=f"{node.name}/{name}", **attributes)

    def signed(name: str) -> Any:
        return (numpy_helper.to_array(weights[name]).astype(np.int16) - 128).astype(np.int8)

    yield (rows := made("Transpose", "by_time", node.input[0], perm=[0, 2, 1]))
    if before or behind:
        margins = constant("margins", [0, before, 0, 0, behind, 0])
        yield (rows := made("Pad", "padded", rows.output[0], margins, node.input[2]))
    taps = []
    axis, step = constant("axis", [1]), constant("step", [stride])
    for tap in range(width):
        left = (width - 1 - tap) * dilation
        begin = constant(f"begin_{tap}", [tap * dilation])
        end = constant(f"end_{tap}", [-left if left else _TO_THE_END])
        yield (taken := made("Slice", f"tap_{tap}", rows.output[0], begin, end, axis, step))
        taps.append(taken.output[0])
    yield (rows := made("Concat", "taps", *taps, axis=2))
    matrix = constant("matrix", signed(node.input[1]).transpose(2, 1, 0).reshape(-1, kernel.shape[0]))
    offset = constant("offset", signed(node.input[3]))
    yield (product := made("MatMulInteger", "product", rows.output[0], matrix, node.input[2], offset))
    yield helper.make_node("Transpose", [product.output[0]], node.output, name=node.name, perm=[0, 2, 1])
