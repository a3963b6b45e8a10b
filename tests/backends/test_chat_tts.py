"""ChatTTS against the package's own signatures."""

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
from stand_in import StandIn

from actors.batch import Batch, run
from actors.messages import TtsDone, TtsRequest
from actors.tts.chat_tts import ChatTTS, ChatTTSOptions


def loaded(**options: Any) -> tuple[ChatTTS, Any]:
    import torch
    from ChatTTS import Chat

    def infer(text: str, stream: bool = False, **more: Any) -> Any:
        sounds = [np.full((1, 12_000), 0.3, np.float32)] * 3
        return iter(sounds) if stream else [np.concatenate([sound[0] for sound in sounds])]

    model: Any = StandIn(Chat, infer=infer, sample_random_speaker=lambda: f"drawn {torch.rand(1).item():.4f}")
    model.gpt = torch.nn.Linear(1, 1)
    backend = ChatTTS(ChatTTSOptions(**options))
    backend.install(model, "cpu")
    return backend, model


def test_loading_is_by_the_packages_own_arguments() -> None:
    from ChatTTS import Chat

    inspect.signature(Chat.load).bind(
        None, source="custom", custom_path="x", compile=False, device=SimpleNamespace(type="cpu")
    )


def test_language_seed_and_speaker_reach_the_package() -> None:
    backend, model = loaded(speed=7)
    (results,) = run(backend.synthesize, [TtsRequest("Hello.", language="en", seed=5)])
    assert isinstance(results[-1], TtsDone) and results[-1].samples > 36_000
    (call,) = [call for name, call in model.calls if name == "infer"]
    params = call["params_infer_code"]
    assert (call["lang"], call["skip_refine_text"], call["stream"]) == ("en", True, True)
    assert (params.manual_seed, params.prompt) == (5, "[speed_7]")
    assert params.spk_emb == loaded()[0]._speaker != loaded(speaker_seed=3)[0]._speaker


def test_a_whole_clause_is_as_long_as_a_streamed_one() -> None:
    streamed, whole = (
        run(loaded(stream=stream)[0].synthesize, [TtsRequest("Hello.")])[0][-1] for stream in (True, False)
    )
    assert streamed == whole


def test_a_cancel_stops_before_the_next_piece() -> None:
    backend, _ = loaded()
    batch = Batch([(1, TtsRequest("Hello."))])
    results = backend.synthesize(batch)
    next(results)
    batch.cancel(1)
    assert list(results) == []
