"""Kokoro-82M on a GPU, by the torch model of the `kokoro` package: the same phonemes and voices as the ONNX one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from actors import pretrained, torch_device
from actors.tts.clause_sound import without_gaps
from actors.tts.kokoro_graph import IncompatibleModel
from actors.tts.kokoro_model import RATE_HZ, Run, Speech, Stopped, Voice
from actors.tts.sound_stream import SILENCE


class KokoroTorch:
    def __init__(self, model: str, device: str, threads: int, max_gap_ms: int) -> None:
        """Reads `config.json` and the one .pth file of `model` (hub id or folder); computes in float32, as they are;
        pauses inside a clause last `max_gap_ms` at the most.

        Raises `IncompatibleModel`, and `ImportError` where the package is missing.
        """
        from kokoro.model import KModel

        from actors.assets import resolve

        torch_device.set_threads(threads)
        folder = resolve(model)
        weights = sorted(folder.glob("*.pth"))
        if len(weights) != 1:
            raise IncompatibleModel(
                f"{folder} has {len(weights)} .pth files; expected the one of Kokoro-82M."
            )
        config = json.loads((folder / "config.json").read_text("utf-8"))
        # MPS has no complex numbers in its spectrograms: the package's own real-valued ones take their place.
        complex_numbers = not device.startswith("mps")
        self._model: Any = (
            KModel(
                repo_id=str(folder), config=config, model=str(weights[0]), disable_complex=not complex_numbers
            )
            .to(device)
            .eval()
        )
        self._device = device
        self._max_gap_ms = max_gap_ms
        self._interruptible = pretrained.Interruptible(
            module for module in self._model.modules() if not list(module.children())
        )

    def speak(self, phonemes: str, voice: Voice, speed: float, run: Run) -> Speech:
        """As `KokoroModel.speak`, but all at once: a GPU makes a clause in a moment.

        The run is left between two layers after `run.stop()`, and raises `Stopped`.
        """
        import torch

        style = torch.from_numpy(voice.rows[len(phonemes) - 1][None].copy())
        try:
            with self._interruptible.until(lambda: run.stopped):
                output = self._model(phonemes, style, speed=speed, return_output=True)
        except pretrained.Stopped as error:
            raise Stopped from error
        torch_device.release(self._device)
        whole = output.audio.float().numpy()
        end = int(np.flatnonzero(np.abs(whole) > SILENCE).max(initial=0))
        sound, gaps = without_gaps(whole, RATE_HZ, self._max_gap_ms)
        return Speech(np.atleast_1d(output.pred_dur.numpy()), iter([sound]), end, gaps)
