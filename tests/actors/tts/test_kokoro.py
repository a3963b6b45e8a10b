"""The Kokoro backend without its model: voices, refusals, runs, word times, pieces."""

import numpy as np
import pytest

from actors.batch import run
from actors.messages import Failed, TtsAudio, TtsRequest, Word
from actors.tts.clause_sound import ClauseSound
from actors.tts.kokoro import Kokoro, KokoroOptions, laid_out, pieces, runs, word_times
from actors.tts.kokoro_model import MAX_PHONEMES, Speech
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
    speech = Speech(np.zeros(600 * 31, np.float32), frames)
    words = word_times(
        spans,
        starts,
        speech,
        ClauseSound(np.zeros(0, np.int16), ((0, 600 * 6),)),
        offset=24_000,
        length=600 * 14,
    )
    assert words == [Word("Hi", 1025, 1225), Word("you.", 1225, 1350)]


@pytest.mark.parametrize("samples", [1, 4_800, 100_000])
def test_pieces_are_small_first_and_lose_nothing(samples: int) -> None:
    pcm = np.arange(samples, dtype=np.int64).astype(np.int16)
    made = list(pieces(pcm, first=True))
    assert all(isinstance(piece, TtsAudio) and len(piece.pcm) <= 64_000 for piece in made)
    assert len(made[0].pcm) <= 9_600
    assert b"".join(piece.pcm for piece in made) == pcm.tobytes()
