"""Paraformer against FunASR's own signatures."""

import inspect
from typing import Any

import numpy as np

from actors.batch import run
from actors.messages import SttRequest
from actors.stt.paraformer import Paraformer, ParaformerOptions
from tests.backends.stand_in import StandIn


def request(seconds: float, **fields: Any) -> SttRequest:
    audio = np.random.default_rng(0).normal(0, 3000, int(seconds * 16_000)).astype("<i2")
    return SttRequest(audio.tobytes(), **fields)


def loaded(name: str, text: str) -> tuple[Paraformer, Any]:
    import torch
    from funasr import AutoModel

    model: Any = StandIn(AutoModel, generate=lambda **more: [{"key": "x", "text": text}])
    model.model = torch.nn.Linear(1, 1)
    backend = Paraformer(ParaformerOptions(name, gen={"hotword": "Ray"}))
    backend.install(model, "cpu")
    return backend, model


def test_loading_takes_the_arguments_that_funasr_reads() -> None:
    from funasr import AutoModel

    source = inspect.getsource(AutoModel)
    for name in ("disable_update", "disable_pbar", "log_level", "device", "ncpu", "hub"):
        assert name in source, name


def test_chinese_is_written_without_spaces_and_english_with() -> None:
    chinese, model = loaded("paraformer-zh", "你 好 machine learning 很 好")
    ((heard,),) = run(chinese.transcribe, [request(2)])
    assert (heard.text, heard.language) == ("你好machine learning很好", "zh")
    ((_, call),) = model.calls
    assert call["input"].dtype == np.float32 and call["hotword"] == "Ray"
    ((heard,),) = run(loaded("iic/paraformer-en", "good day")[0].transcribe, [request(2)])
    assert (heard.text, heard.language) == ("good day", "en")
