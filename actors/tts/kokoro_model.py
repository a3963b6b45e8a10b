"""Kokoro-82M as an ONNX session: phonemes in, samples and the length of each phoneme out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

RATE_HZ = 24_000
FRAME_SAMPLES = 600
"""One unit of the model's durations: 25 ms."""
MAX_PHONEMES = 510
"""Positions the text encoder has, less the mark at each end; also the rows of a voice."""
STYLE_WIDTH = 256
_DURATIONS = "/encoder/Cast_output_0"
"""The tensor inside the graph that holds the frames of each phoneme, int64[1, n + 2]."""
_ONNX_INT64 = 7
_GIVE_BACK_PHONEMES = 120
"""Work memory of longer runs is freed after them; shorter ones keep theirs, which is faster."""


class IncompatibleModel(RuntimeError):
    """The file is not the Kokoro export that this backend knows."""


class Stopped(RuntimeError):
    """The run was ended by `Run.stop`."""


@dataclass(frozen=True)
class Speech:
    samples: npt.NDArray[np.float32]
    frames: npt.NDArray[np.int64]
    """Length of each phoneme in frames of 600 samples, the marks at both ends included: n + 2 values."""


class Run:
    """The calls of the model for one clause, which another thread may stop."""

    def __init__(self) -> None:
        import onnxruntime

        self.options = onnxruntime.RunOptions()
        self.stopped = False
        self._gives_back = False

    def give_memory_back(self) -> None:
        """Free the work memory when the run ends."""
        if not self._gives_back:
            self._gives_back = True
            self.options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def stop(self) -> None:
        """End the run at its next operator; safe from any thread, before, during and after it."""
        self.stopped = True
        self.options.terminate = True


class KokoroModel:
    def __init__(self, folder: Path, threads: int) -> None:
        """Reads `model.onnx` and `vocab.json` from `folder`.  Raises `IncompatibleModel`."""
        import onnxruntime

        vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
        self.vocabulary: dict[str, int] = vocabulary.get("vocab", vocabulary)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = folder / "model.onnx"
        try:
            self._session: Any = onnxruntime.InferenceSession(
                with_durations(path.read_bytes()), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise IncompatibleModel(
                f"{path} could not be loaded as the Kokoro-82M int8 export: {error}"
            ) from error
        inputs = {item.name for item in self._session.get_inputs()}
        if inputs != {"tokens", "style", "speed"}:
            raise IncompatibleModel(f"{path} has inputs {sorted(inputs)}; expected tokens, style and speed.")

    def speak(self, phonemes: str, voice: npt.NDArray[np.float32], speed: float, run: Run) -> Speech:
        """`phonemes`: 1 to 510 characters, all in the vocabulary; `voice`: float32[510, 256].

        The same input gives the same samples, on any number of threads.  Raises `Stopped` after `run.stop()`.
        """
        ids = [self.vocabulary[phoneme] for phoneme in phonemes]
        feed = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": voice[len(ids) - 1][None],
            "speed": np.array([speed], np.float32),
        }
        if len(ids) > _GIVE_BACK_PHONEMES:
            run.give_memory_back()
        try:
            samples, frames = self._session.run(["audio", _DURATIONS], feed, run.options)
        except Exception as error:
            if run.stopped:
                raise Stopped from error
            raise
        return Speech(samples, frames[0])


def with_durations(model: bytes) -> bytes:
    """The same ONNX file with the phoneme lengths as a second output.

    Serialized protobuf messages merge when they are put one after the other, so a second `graph` field that has
    nothing but one more `output` adds it to the first.  (ModelProto.graph is field 7, GraphProto.output 12.)
    """
    tensor_type = _field(1, bytes([1 << 3, _ONNX_INT64]))
    value = _field(1, _DURATIONS.encode()) + _field(2, tensor_type)
    return model + _field(7, _field(12, value))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field; both the number and the length fit in 7 bits here."""
    return bytes([number << 3 | 2, len(content)]) + content
