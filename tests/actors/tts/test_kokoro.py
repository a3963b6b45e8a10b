"""The Kokoro backend without its model: voices, refusals, runs, what is made, word times."""

from pathlib import Path

import numpy as np
import pytest

from actors.batch import run
from actors.messages import Failed, TtsRequest, Word
from actors.tts import kokoro_graph
from actors.tts.kokoro import Kokoro, KokoroOptions, laid_out, runs, word_times
from actors.tts.kokoro_model import MAX_PHONEMES, Speech, audible
from actors.tts.kokoro_voices import OPENAI_NAMES, VOICES, UnknownVoice, find_voice
from actors.tts.phonemes import Span


def test_openai_voice_names_mean_voices_that_exist() -> None:
    names = ["alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage"]
    names += ["shimmer", "verse"]
    assert sorted(OPENAI_NAMES) == sorted(names)
    assert {find_voice(name, OPENAI_NAMES) for name in names} <= set(VOICES)


def test_voice_names_ignore_case() -> None:
    assert find_voice(" AF_Heart", OPENAI_NAMES) == "af_heart"
    assert find_voice("Alloy", OPENAI_NAMES) == "af_alloy"


@pytest.mark.parametrize(
    ("asked", "near"), [("af_hart", "af_heart"), ("heart", "af_heart"), ("shimer", "shimmer")]
)
def test_an_unknown_voice_is_told_what_comes_near(asked: str, near: str) -> None:
    with pytest.raises(UnknownVoice, match=near):
        find_voice(asked, OPENAI_NAMES)


def test_an_unknown_default_voice_is_an_error_before_anything_loads() -> None:
    with pytest.raises(UnknownVoice, match="af_haert"):
        Kokoro(KokoroOptions(voice="af_haert"))


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (TtsRequest("Bonjour", language="fr"), "'fr'"),
        (TtsRequest("Hello", voice="nobody"), "'nobody'"),
        (TtsRequest("你好"), "'你好'"),
    ],
)
def test_what_cannot_be_spoken_fails_alone_and_says_why(request_: TtsRequest, told: str) -> None:
    [[result]] = run(Kokoro(KokoroOptions()).synthesize, [request_])
    assert isinstance(result, Failed)
    assert told in result.message
    assert not result.retry


@pytest.mark.parametrize(
    ("device", "dtype", "own"), [("cpu", "float32", "int8"), ("mps", "float16", "float32")]
)
def test_a_dtype_that_the_weights_have_not_is_refused(device: str, dtype: str, own: str) -> None:
    with pytest.raises(ValueError, match=f"asked for dtype '{dtype}'; on {device} its weights are {own}"):
        Kokoro(KokoroOptions()).load(device, dtype, 1)


def test_a_warm_up_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kokoro, "synthesize", lambda self, batch: iter([(0, Failed("no sound"))]))
    with pytest.raises(RuntimeError, match="warm-up failed: no sound"):
        Kokoro(KokoroOptions()).warmup()


def test_a_short_clause_is_one_run() -> None:
    spans = [Span("Sure,", "ʃˈʊɹ,"), Span("yes.", "jˈɛs.")]
    assert list(runs(spans)) == [spans]
    assert laid_out(spans) == ("ʃˈʊɹ, jˈɛs.", [0, 6])


def test_long_text_is_cut_at_sentences() -> None:
    sentence = [Span("word", "wˈɜɹd")] * 12 + [Span("end.", "ˈɛnd.")]
    assert [len(part) for part in runs(sentence * 3)] == [13, 13, 13]


def test_text_without_marks_is_cut_between_words_within_the_models_limit() -> None:
    spans = [Span(f"w{index}", "wˈɜɹd") for index in range(400)]
    parts = list(runs(spans))
    assert [span for part in parts for span in part] == spans
    assert all(len(laid_out(part)[0]) <= MAX_PHONEMES for part in parts)


def test_a_single_word_longer_than_the_limit_is_still_spoken_whole() -> None:
    parts = list(runs([Span("a" * 600, "A" * 1200)]))
    assert "".join(laid_out(part)[0] for part in parts) == "A" * 1200
    assert all(len(laid_out(part)[0]) <= MAX_PHONEMES for part in parts)


def test_word_times_come_from_the_phoneme_lengths() -> None:
    spans = [Span("Hi", "hI"), Span("you.", "ju.")]
    text, starts = laid_out(spans)
    frames = np.array([10, 2, 4, 2, 3, 5, 4, 1])
    assert len(frames) == len(text) + 2
    speech = Speech(frames, iter([]), end=600 * 20, cuts=((0, 600 * 5),))
    words = word_times(spans, starts, speech, trimmed=600, offset=24_000)
    assert words == [Word("Hi", 1025, 1225), Word("you.", 1225, 1350)]


def test_words_behind_a_pause_that_was_shortened_come_earlier() -> None:
    speech = Speech(np.array([1]), iter([]), end=2400, cuts=((0, 300), (1000, 1400), (2000, 2100)))
    at = {sample: speech.position(sample) for sample in (0, 300, 900, 1000, 1200, 1400, 2050, 2500)}
    assert at == {0: 0, 300: 0, 900: 600, 1000: 700, 1200: 700, 1400: 700, 2050: 1300, 2500: 1700}


def loudness(*stretches: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(steps, level, np.float32) for level, steps in stretches])


def test_silence_around_what_is_heard_is_not_made() -> None:
    assert audible(loudness((-10, 30), (8, 50), (-3, 3), (-9, 40)), longest_gap=16) == [(28, 87)]


def test_all_is_made_where_there_is_no_silence() -> None:
    assert audible(loudness((8, 50)), longest_gap=16) == [(0, 50)]


def test_the_middle_of_a_long_pause_is_not_made() -> None:
    pauses = loudness((8, 20), (-4, 16), (8, 20), (0, 40), (8, 20))
    assert audible(pauses, longest_gap=16) == [(0, 64), (88, 116)]


def test_another_onnx_model_is_refused_in_words(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    def file(*inputs: str) -> Path:
        tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in inputs]
        node = helper.make_node("Identity", [inputs[0]], ["audio"])
        output = helper.make_tensor_value_info("audio", TensorProto.FLOAT, [1])
        onnx.save(
            helper.make_model(helper.make_graph([node], "other", tensors, [output])), tmp_path / "o.onnx"
        )
        return tmp_path / "o.onnx"

    with pytest.raises(
        kokoro_graph.IncompatibleModel, match=r"has inputs .*'other'.*; expected tokens, style"
    ):
        kokoro_graph.cut(file("tokens", "other"))
    with pytest.raises(
        kokoro_graph.IncompatibleModel, match=r"has no tensor /decoder.*; expected the Kokoro-82M"
    ):
        kokoro_graph.cut(file("tokens", "style", "speed"))
    (tmp_path / "o.onnx").write_bytes(b"no model")
    with pytest.raises(kokoro_graph.IncompatibleModel, match="could not be loaded as the Kokoro-82M"):
        kokoro_graph.cut(tmp_path / "o.onnx")
