"""Open ONNX models the same way in every stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def open_model(model: Path | bytes, device: str, threads: int) -> Any:
    """An `onnxruntime.InferenceSession` of a file, or of its content, on the CPU.

    Its `threads` threads sleep while they wait; ONNX Runtime's spin by default, which takes the cores of other stages.
    Raises `ValueError` for another device than cpu.
    """
    import onnxruntime

    if device != "cpu":
        name = model.name if isinstance(model, Path) else "the model"
        raise ValueError(f"{name} was asked for on {device}; this backend runs on cpu.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
    )
