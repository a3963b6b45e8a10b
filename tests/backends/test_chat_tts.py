"""ChatTTS: the package's real models with small random weights, loaded from files, and its own signatures."""

import inspect
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.batch import Batch, run
from actors.messages import TtsAudio, TtsDone, TtsRequest
from actors.tts.chat_tts import ChatTTS, ChatTTSOptions
from tests.backends.stand_in import StandIn


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


def files(config: Any, folder: Path) -> dict[str, str]:
    """Random weights of the models that `config` describes, in the package's layout."""
    import torch
    from ChatTTS.model import DVAE, Embed
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertTokenizerFast, LlamaConfig, LlamaModel
    from vocos import Vocos
    from vocos.pretrained import instantiate_class

    torch.manual_seed(0)
    coder = asdict(config.decoder), config.decoder.idim
    whole = {"encoder_config": asdict(config.dvae.encoder), "vq_config": asdict(config.dvae.vq)}
    parts = {
        "vocos": Vocos(
            **{
                name: instantiate_class(args=(), init=asdict(getattr(config.vocos, name)))
                for name in ("feature_extractor", "backbone", "head")
            }
        ),
        "dvae": DVAE(
            decoder_config=asdict(config.dvae.decoder),
            dim=config.dvae.decoder.idim,
            device=torch.device("cpu"),
            **whole,
        ),
        "decoder": DVAE(decoder_config=coder[0], dim=coder[1], device=torch.device("cpu")),
        "embed": Embed(768, config.embed.num_audio_tokens, config.embed.num_text_tokens, config.embed.num_vq),
    }
    paths = {}
    for name, part in parts.items():
        paths[name] = str(folder / f"{name}.safetensors")
        save_file({key: value.contiguous() for key, value in part.state_dict().items()}, paths[name])
    LlamaModel(LlamaConfig(**asdict(config.gpt), initializer_range=0.1)).save_pretrained(folder / "gpt")
    specials = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "[Stts]", "[Ptts]", "[spk_emb]", "[empty_spk]"]
    specials += [
        "[Sbreak]",
        "[Pbreak]",
        "[Ebreak]",
        "[break_0]",
        "[uv_break]",
        *(f"[speed_{n}]" for n in range(10)),
    ]
    letters = [*specials, *map(chr, range(33, 127)), *(f"##{chr(n)}" for n in range(33, 127))]
    built = Tokenizer(models.WordPiece({token: at for at, token in enumerate(letters)}, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    built.add_special_tokens(specials)
    BertTokenizerFast(tokenizer_object=built).save_pretrained(folder / "tokenizer")
    return {
        "vocos_ckpt_path": paths["vocos"],
        "dvae_ckpt_path": paths["dvae"],
        "decoder_ckpt_path": paths["decoder"],
        "embed_path": paths["embed"],
        "gpt_ckpt_path": str(folder / "gpt"),
        "tokenizer_path": str(folder / "tokenizer"),
    }


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> ChatTTS:
    import torch
    from ChatTTS import Chat

    chat = Chat()
    config = chat.config
    for part in (config.decoder, config.dvae.encoder, config.dvae.decoder):
        part.n_layer = 1
    config.vocos.backbone.init_args.num_layers = 1
    config.gpt.num_hidden_layers, config.gpt.intermediate_size = 2, 64
    config.gpt.num_text_tokens = config.embed.num_text_tokens = 256
    assert chat._load(device=torch.device("cpu"), **files(config, tmp_path_factory.mktemp("chat")))
    backend = ChatTTS()
    backend.install(chat, "cpu")
    return backend


def test_the_real_models_speak_by_seed(real: ChatTTS, monkeypatch: pytest.MonkeyPatch) -> None:
    from ChatTTS import Chat

    monkeypatch.setattr(Chat.InferCodeParams, "__init__", shorter(Chat.InferCodeParams.__init__))
    sounds = [
        b"".join(result.pcm for result in results if isinstance(result, TtsAudio))
        for results in run(
            real.synthesize, [TtsRequest("Hello.", seed=seed, language="en") for seed in (1, 1, 2)]
        )
    ]
    assert sounds[0] == sounds[1] != sounds[2] and len(sounds[0]) > 10_000


def test_a_cancel_stops_the_real_language_model_between_two_layers(real: ChatTTS) -> None:
    batch = Batch([(1, TtsRequest("Hello.", language="en"))])
    steps: list[int] = []

    def before_a_step(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 3:
            batch.cancel(1)

    handle = real._chat.gpt.gpt.register_forward_pre_hook(before_a_step)
    assert list(real.synthesize(batch)) == []
    handle.remove()
    assert len(steps) == 3


def shorter(init: Any) -> Any:
    """At most 60 tokens: random weights never end a clause."""

    def made(self: Any, *arguments: Any, **more: Any) -> None:
        init(self, *arguments, **{**more, "max_new_token": 60})

    return made
