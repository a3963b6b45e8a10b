"""The Kokoro backend with its model: what it says is understood, stops when cancelled, and goes on where it was."""

import threading

import numpy as np
import numpy.typing as npt
import pytest

from actors.assets import resolve
from actors.batch import Batch, run
from actors.messages import SttRequest, SttResult, TtsAudio, TtsDone, TtsRequest, Word
from actors.tts import kokoro_model
from actors.tts.kokoro import Kokoro, KokoroOptions
from actors.tts.kokoro_model import STEP_SAMPLES, KokoroModel, Run, Stopped, Voice

pytestmark = pytest.mark.e2e

SENTENCES = {
    "Sure, I can help you with that.": "sure i can help you with that",
    "Dr. Smith lives on Oak St. with three dogs.": "dr smith lives on oak street with three dogs",
    "Would you like me to set a reminder for tomorrow morning?": (
        "would you like me to set a reminder for tomorrow morning"
    ),
    "The capital of Australia is Canberra, not Sydney.": "the capital of australia is canberra not sydney",
    "Photosynthesis converts sunlight into chemical energy.": "photosynthesis converts sunlight into chemical energy",
}
TEXT = "The quick brown fox jumps over the lazy dog."
SENTENCES_IN_A_ROW = f"{TEXT} {TEXT} {TEXT}"


@pytest.fixture(scope="module")
def kokoro() -> Kokoro:
    backend = Kokoro(KokoroOptions())
    backend.load("cpu", "auto", 2)
    return backend


def speak(kokoro: Kokoro, request: TtsRequest) -> tuple[bytes, TtsDone]:
    pieces, done = spoken(kokoro, request)
    return b"".join(piece.pcm for piece in pieces), done


def spoken(kokoro: Kokoro, request: TtsRequest) -> tuple[list[TtsAudio], TtsDone]:
    [results] = run(kokoro.synthesize, [request])
    done = results[-1]
    assert isinstance(done, TtsDone), done
    return [piece for piece in results if isinstance(piece, TtsAudio)], done


def words_of(piece: TtsAudio) -> list[Word]:
    assert piece.words is not None
    return piece.words


def heard(pcm: bytes) -> npt.NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2").astype(np.float64) / 32768


def test_what_is_said_is_understood(kokoro: Kokoro) -> None:
    import jiwer
    import soxr

    from actors.stt.whisper import Whisper, WhisperOptions

    whisper = Whisper(WhisperOptions())
    whisper.load("cpu", "auto", 2)
    transcripts = []
    for text in SENTENCES:
        pcm, _ = speak(kokoro, TtsRequest(text))
        at_16_khz = np.round(soxr.resample(heard(pcm), 24_000, 16_000) * 32767).astype("<i2")
        result = run(whisper.transcribe, [SttRequest(at_16_khz.tobytes())])[0][-1]
        assert isinstance(result, SttResult), result
        transcripts.append(
            "".join(char for char in result.text.lower() if char.isalnum() or char == " ").strip()
        )
    assert jiwer.wer(list(SENTENCES.values()), transcripts) <= 0.1, transcripts


def test_a_clause_has_no_clicks_no_clipping_and_stated_silence_around_it(kokoro: Kokoro) -> None:
    pcm, done = speak(kokoro, TtsRequest("Sure, I can help."))
    samples = heard(pcm)
    assert len(samples) == done.samples
    assert 0.1 < np.abs(samples).max() < 1
    assert np.abs(samples[:24]).max() < 0.01
    onset = int(np.flatnonzero(np.abs(samples) > 0.02)[0])
    assert onset < 24_000 * 100 // 1000
    pause = samples[-24_000 * KokoroOptions().sentence_pause_ms // 1000 :]
    assert not pause.any()


def test_a_clause_has_no_gap(kokoro: Kokoro) -> None:
    clauses = [
        "but it doesn't necessarily mean they're wrong about something.",
        "That's a common phrase used by people who don't know the right word.",
        "However, I can't say for sure, because nobody told me.",
        TEXT,
    ]
    for text in clauses:
        samples = heard(speak(kokoro, TtsRequest(text))[0])
        between_ms = np.diff(np.flatnonzero(np.abs(samples) > 0.01)) * 1000 / 24_000
        assert between_ms.max() <= 300, text


def test_words_lie_inside_the_clause_in_order(kokoro: Kokoro) -> None:
    pieces, done = spoken(kokoro, TtsRequest(TEXT))
    words = words_of(pieces[-1])
    assert [word.text for word in words] == TEXT.split()
    edges = [edge for word in words for edge in (word.start_ms, word.end_ms)]
    assert edges == sorted(edges)
    assert edges[-1] <= done.samples * 1000 // 24_000


def test_the_words_of_a_piece_come_with_it(kokoro: Kokoro) -> None:
    pieces, _ = spoken(kokoro, TtsRequest(SENTENCES_IN_A_ROW))
    whole = words_of(pieces[-1])
    sent_ms = 0.0
    for piece in pieces:
        sent_ms += len(piece.pcm) / 2 / 24
        words = words_of(piece)
        assert words == whole[: len(words)]
        assert (
            len(words) == len(whole) or words[-1].end_ms >= sent_ms - KokoroOptions().sentence_pause_ms - 100
        )
    assert len(words_of(pieces[0])) < len(whole), "the last sentence is planned later"


def test_the_words_of_a_resumed_clause_are_those_of_the_whole(kokoro: Kokoro) -> None:
    whole, _ = spoken(kokoro, TtsRequest(SENTENCES_IN_A_ROW))
    sent = sum(len(piece.pcm) // 2 for piece in whole) - 1000
    rest, _ = spoken(kokoro, TtsRequest(SENTENCES_IN_A_ROW, skip_samples=sent))
    assert words_of(rest[-1]) == words_of(whole[-1])


def test_a_resumed_clause_goes_on_at_the_very_sample(kokoro: Kokoro) -> None:
    whole, done = speak(kokoro, TtsRequest(TEXT))
    rest, again = speak(kokoro, TtsRequest(TEXT, skip_samples=10_001))
    assert rest == whole[2 * 10_001 :]
    assert again == done


def test_another_process_on_other_threads_says_the_same_samples(kokoro: Kokoro) -> None:
    other = Kokoro(KokoroOptions())
    other.load("cpu", "auto", 1)
    assert speak(other, TtsRequest("Sure, I can help.")) == speak(kokoro, TtsRequest("Sure, I can help."))


@pytest.mark.parametrize("text", ["…", "", "  ", "😀", "!?"])
def test_nothing_to_say_is_done_at_once(kokoro: Kokoro, text: str) -> None:
    assert speak(kokoro, TtsRequest(text)) == (b"", TtsDone(0))


@pytest.fixture(scope="module")
def model() -> KokoroModel:
    return KokoroModel(resolve("kokoro-82m-onnx-int8"), 2, max_gap_ms=220)


@pytest.fixture(scope="module")
def voice() -> Voice:
    rows = np.fromfile(resolve("kokoro-voices") / "af_heart.bin", np.float32)
    return Voice(rows.reshape(kokoro_model.MAX_PHONEMES, -1))


PHONEMES = "wˈʌn tˈu θɹˈi fˈɔɹ fˈIv sˈɪks sˈɛvən ˈAt nˈIn tˈɛn."


def test_a_run_stops_inside_the_model_while_it_computes(model: KokoroModel, voice: Voice) -> None:
    run_ = Run()
    timer = threading.Timer(0.1, run_.stop)
    timer.start()
    with pytest.raises(Stopped):
        list(model.speak("wˈɜɹd " * 80, voice, 1.0, run_).sound)
    timer.join()


def test_sound_is_made_as_it_is_taken(model: KokoroModel, voice: Voice) -> None:
    run_ = Run()
    sound = model.speak(PHONEMES, voice, 1.0, run_).sound
    first = next(sound)
    assert len(first) == kokoro_model._FIRST * STEP_SAMPLES
    run_.stop()
    with pytest.raises(Stopped):
        next(sound)


def test_the_stretches_join_to_the_sound_that_is_made_at_once(
    model: KokoroModel, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    stretches = list(model.speak(PHONEMES, voice, 1.0, Run()).sound)
    assert len(stretches) > 3
    monkeypatch.setattr(kokoro_model, "_FIRST", 10_000)
    [whole] = model.speak(PHONEMES, voice, 1.0, Run()).sound
    joined = np.concatenate(stretches)
    assert joined.shape == whole.shape
    noise_db = 10 * np.log10(np.square(joined - whole).sum() / np.square(whole).sum())
    assert noise_db < -10  # 8-bit rounding differs; another phase or level would be 0
    joints = np.cumsum([len(stretch) for stretch in stretches])[:-1]
    jumps = np.abs(np.diff(joined))
    assert jumps[joints - 1].max() < np.percentile(jumps, 99)


def test_sound_is_as_loud_as_the_model_makes_it(model: KokoroModel, voice: Voice) -> None:
    import onnxruntime

    own = onnxruntime.InferenceSession(
        resolve("kokoro-82m-onnx-int8") / "model.onnx", providers=["CPUExecutionProvider"]
    )
    for phonemes in (PHONEMES, "ʃˈʊɹ, ˈI kæn dˈu ðˈæt."):
        tokens = [[0, *(model.vocabulary[phoneme] for phoneme in phonemes), 0]]
        feed = {"tokens": tokens, "style": voice.rows[len(phonemes) - 1][None], "speed": [1.0]}
        [published] = own.run(
            None,
            {
                name: np.array(value).astype(np.int64 if name == "tokens" else np.float32)
                for name, value in feed.items()
            },
        )
        made = np.concatenate(list(model.speak(phonemes, voice, 1.0, Run()).sound))
        level_db = 10 * np.log10(np.square(made).sum() / np.square(published).sum())
        assert abs(level_db) < 3, phonemes


def test_a_cancelled_clause_yields_nothing_and_the_next_one_goes_on(kokoro: Kokoro) -> None:
    batch = Batch(
        [
            ("long", TtsRequest("This is a rather long clause without any mark " * 6)),
            ("next", TtsRequest("Yes.")),
        ]
    )
    timer = threading.Timer(0.1, batch.cancel, ["long"])
    timer.start()
    results = list(kokoro.synthesize(batch))
    timer.join()
    assert {key for key, _ in results} == {"next"}
    assert isinstance(results[-1][1], TtsDone)


def test_a_clause_cancelled_while_its_pieces_are_taken_yields_no_more(kokoro: Kokoro) -> None:
    batch = Batch([("a", TtsRequest(TEXT))])
    made = kokoro.synthesize(batch)
    next(made)
    batch.cancel("a")
    assert list(made) == []


def test_voices_accents_and_speeds_differ(kokoro: Kokoro) -> None:
    text = "Better water."
    default, normal = speak(kokoro, TtsRequest(text))
    assert speak(kokoro, TtsRequest(text, voice="marin"))[0] == default
    assert speak(kokoro, TtsRequest(text, voice="onyx"))[0] != default
    assert speak(kokoro, TtsRequest(text, voice="bf_emma"))[0] != default
    assert speak(kokoro, TtsRequest(text, speed=2.0))[1].samples < normal.samples * 0.8


def test_text_longer_than_the_model_takes_is_spoken_whole(kokoro: Kokoro) -> None:
    words = "seventy five elephants marched along the winding river while everybody watched " * 9
    pieces, _ = spoken(kokoro, TtsRequest(words, speed=2.0))
    said = words_of(pieces[-1])
    assert [word.text for word in said] == words.split()
    assert said[-1].start_ms > 10_000
