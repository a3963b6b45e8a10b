"""Facebook MMS: transformers' real VITS with tiny random weights, loaded from a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from actors.batch import Batch, run
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest
from actors.tts.facebook_mms import CODES, FacebookMMS, FacebookMMSOptions

LATIN = "_abcdefghijklmnopqrstuvwxyz '"


def checkpoint(folder: Path, seed: int = 0, letters: str = LATIN) -> Path:
    import torch
    from transformers import VitsConfig, VitsModel, VitsTokenizer

    torch.manual_seed(seed)
    config = VitsConfig(
        vocab_size=len(letters),
        hidden_size=16,
        num_hidden_layers=1,
        ffn_dim=16,
        flow_size=16,
        spectrogram_bins=9,
        upsample_initial_channel=32,
        duration_predictor_filter_channels=16,
        prior_encoder_num_wavenet_layers=1,
        posterior_encoder_num_wavenet_layers=1,
        initializer_range=0.5,
    )
    VitsModel(config).save_pretrained(folder)
    vocabulary = folder / "letters.json"
    vocabulary.write_text(json.dumps({letter: number for number, letter in enumerate(letters)}))
    VitsTokenizer(str(vocabulary), pad_token="_", phonemize=False).save_pretrained(folder)
    return folder


def pcm(results: list[Any]) -> bytes:
    return b"".join(result.pcm for result in results if isinstance(result, TtsAudio))


@pytest.fixture(scope="module")
def mms(tmp_path_factory: pytest.TempPathFactory) -> FacebookMMS:
    backend = FacebookMMS(FacebookMMSOptions(str(checkpoint(tmp_path_factory.mktemp("mms")))))
    backend.load("cpu", "auto", 1)
    backend.warmup()
    return backend


def test_a_clause_is_spoken_by_seed_and_speed(mms: FacebookMMS) -> None:
    clause = "hello there"
    requests = [
        TtsRequest(clause),
        TtsRequest(clause),
        TtsRequest(clause, seed=1),
        TtsRequest(clause, speed=2.0),
    ]
    first, again, other, fast = (run(mms.synthesize, [each])[0] for each in requests)
    assert pcm(first) == pcm(again) != pcm(other)
    assert isinstance(first[-1], TtsDone) and first[-1].samples == len(pcm(first)) // 2 > 1000
    assert 1.5 < len(pcm(first)) / len(pcm(fast)) < 2.5
    assert mms.capabilities.rate_hz == 16_000


def test_a_cancel_stops_the_forward_between_layers(mms: FacebookMMS) -> None:
    model = mms._model("en")[0]
    batch = Batch([(1, TtsRequest("hello there"))])
    done: list[str] = []
    handles = [
        model.text_encoder.register_forward_hook(lambda *_: batch.cancel(1)),
        model.decoder.register_forward_hook(lambda *_: done.append("decoder")),
    ]
    assert list(mms.synthesize(batch)) == []
    for handle in handles:
        handle.remove()
    assert done == []


def test_letters_that_the_voice_lacks_and_other_languages_fail_in_words(mms: FacebookMMS) -> None:
    (alphabet,), (language,) = run(mms.synthesize, [TtsRequest("привет"), TtsRequest("hallo", language="de")])
    assert isinstance(alphabet, Failed) and "is in the alphabet of the voice" in alphabet.message
    assert isinstance(language, Failed) and "speaks en only" in language.message


def test_a_clause_in_another_language_is_spoken_by_that_languages_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors import assets

    def resolve(name: str) -> Path:
        folder = tmp_path / name.rpartition("-")[2]
        return folder if folder.exists() else checkpoint(folder, seed=len(list(tmp_path.iterdir())))

    monkeypatch.setattr(assets, "resolve", resolve)
    backend = FacebookMMS()
    backend.load("cpu", "auto", 1)
    english, german = run(backend.synthesize, [TtsRequest("hallo"), TtsRequest("hallo", language="de")])
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["deu", "eng"]
    assert pcm(english) != pcm(german)
    assert CODES["he"] == "heb" and "xx" not in backend.languages


def test_warm_up_speaks_the_letters_that_the_voice_has(tmp_path: Path) -> None:
    backend = FacebookMMS(FacebookMMSOptions(str(checkpoint(tmp_path, letters="_абвгдежзиклмнопрст ")), "ru"))
    backend.load("cpu", "auto", 1)
    backend.warmup()


def test_a_language_without_a_voice_is_refused_before_anything_is_fetched() -> None:
    with pytest.raises(ValueError, match="language 'xx' has no voice here; choose ar, "):
        FacebookMMS(FacebookMMSOptions(language="xx")).load("cpu", "auto", 1)
