"""The published ONNX graph of Kokoro-82M, cut in two: what plans the speech, and what makes its sound.

The planning part is a tenth of the work and has the whole text.  The half that makes sound is a stack of
convolutions, which could be run piece by piece but for its 48 instance normalizations: they want the mean and the
deviation of the whole.  Here those are inputs, so that any stretch of the plan gives the sound that it gives in the
whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors import onnx_products

_SOUND = "/decoder/decoder/generator/"
FEATURES = "/decoder/decoder/decode.3/Div_4_output_0"
"""What is to be said, float32[1, 512, 2 n] for n frames of 25 ms."""
SOURCE = _SOUND + "Reshape_output_0"
"""The voice's harmonics, float32[1, 1, 600 n]."""
LOUDNESS = "/encoder/Reshape_1_output_0"
"""How loud it will be, float32[1, 2 n]: a difference of 12 is some 48 dB."""
DURATIONS = "/encoder/Cast_output_0"
"""Frames of each phoneme, int64[1, phonemes + 2]."""
AUDIO = "audio"


class IncompatibleModel(RuntimeError):
    """The file is not the Kokoro export that this backend knows."""


@dataclass(frozen=True)
class Graphs:
    """Serialized ONNX models."""

    plan: bytes
    """tokens, style, speed -> FEATURES, SOURCE, LOUDNESS, DURATIONS."""
    measure: bytes
    """FEATURES, SOURCE, style -> each of `statistics` over all that is given."""
    sound: bytes
    """FEATURES, SOURCE, style and each of `statistics` -> AUDIO."""
    statistics: tuple[str, ...]
    """Mean and deviation of each normalization, float32[1, channels, 1]."""


def cut(path: Path) -> Graphs:
    """Raises `IncompatibleModel`."""
    import onnx
    from onnx import TensorProto

    def tensor(name: str, *shape: int | str, of: int = TensorProto.FLOAT) -> Any:
        return onnx.helper.make_tensor_value_info(name, of, shape)

    try:
        model = onnx.load(path)
    except Exception as error:
        raise IncompatibleModel(
            f"{path} could not be loaded as the Kokoro-82M int8 export: {error}"
        ) from error
    inputs = {item.name: item for item in model.graph.input}
    if set(inputs) != {"tokens", "style", "speed"}:
        raise IncompatibleModel(f"{path} has inputs {sorted(inputs)}; expected tokens, style and speed.")
    made = {name for node in model.graph.node for name in node.output}
    if missing := {FEATURES, SOURCE, LOUDNESS, DURATIONS, AUDIO} - made:
        raise IncompatibleModel(
            f"{path} has no tensor {sorted(missing)[0]}; expected the Kokoro-82M int8 export."
        )
    onnx_products.as_products(model)
    norms = [
        node.name.removesuffix("ReduceMean")
        for node in model.graph.node
        if node.op_type == "ReduceMean" and node.name.startswith(_SOUND) and node.name.endswith("/ReduceMean")
    ]
    statistics = tuple(norm + name for norm in norms for name in ("ReduceMean_output_0", "Sqrt_output_0"))
    planned = [tensor(FEATURES, 1, 512, "steps"), tensor(SOURCE, 1, 1, "samples")]
    told = [tensor(LOUDNESS, 1, "steps"), tensor(DURATIONS, 1, "phonemes", of=TensorProto.INT64)]
    measured = [tensor(name, 1, "channels", 1) for name in statistics]
    return Graphs(
        plan=_part(model, inputs.values(), [*planned, *told]),
        measure=_part(model, [*planned, inputs["style"]], measured),
        sound=_part(model, [*planned, inputs["style"], *measured], [tensor(AUDIO, "samples")]),
        statistics=statistics,
    )


def _part(model: Any, inputs: Iterable[Any], outputs: Iterable[Any]) -> bytes:
    """The nodes of `model` between `inputs` and `outputs`."""
    from onnx import helper

    inputs, outputs = list(inputs), list(outputs)
    maker = {name: node for node in model.graph.node for name in node.output}
    known, wanted = {item.name for item in inputs}, [item.name for item in outputs]
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in known and name in maker:
            needed.add(maker[name].name)
            wanted += maker[name].input
        known.add(name)
    nodes = [node for node in model.graph.node if node.name in needed]
    used = {name for node in nodes for name in node.input}
    weights = [item for item in model.graph.initializer if item.name in used]
    graph = helper.make_graph(nodes, "kokoro", inputs, outputs, weights)
    part = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return bytes(part.SerializeToString())
