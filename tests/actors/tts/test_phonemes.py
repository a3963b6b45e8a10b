"""Every English word comes out as sound that Kokoro knows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.tts.lexicon import Lexicon
from actors.tts.phonemes import Phonemizer, Unspeakable
from actors.tts.spelling import british, sound_out

KOKORO = set(
    ';:,.!?—…"()“” ̃ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔˈˌːʰʲ↓→↗↘ᵻ'
)
"""The characters of the model's vocabulary."""


PHONEMIZERS = {accent: Phonemizer(accent) for accent in ("us", "gb")}


@pytest.fixture
def american() -> Phonemizer:
    return PHONEMIZERS["us"]


@pytest.fixture
def english() -> Phonemizer:
    return PHONEMIZERS["gb"]


def said(phonemizer: Phonemizer, text: str) -> str:
    return " ".join(span.phonemes for span in phonemizer.spans(text))


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("Sure, I can help.", "ʃˈʊɹ, ˌI kæn hˈɛlp."),
        ("the dog, the apple", "ðə dˈɔɡ, ði ˈæpᵊl"),
        ("A dog. Plan A", "ɐ dˈɔɡ. plˈæn ˈA"),
        ("go to town to eat", "ɡˌO tə tˈWn tʊ ˈit"),
        ("I used to use it.", "ˌI jˈust tə jˈuz ɪt."),
        ("I live here, a live show", "ˌI lˈɪv hˈɪɹ, ɐ lˈIv ʃˈO"),
        ("I have read it", "ˌI hæv ɹˈɛd ɪt"),
        ("to record a record", "tə ɹəkˈɔɹd ɐ ɹˈɛkəɹd"),
        ("NASA and NLP", "nˈæsə ænd ˌɛnˌɛlpˈi"),
        ("STOP it", "stˈɑp ɪt"),
        ("the GPUs", "ðə ʤˌipˌijˈuz"),
        ("IT or it", "ˌItˈi ɔɹ ɪt"),
        ("Smith's dogs, the boxes", "smˈɪθs dˈɔɡz, ðə bˈɑksᵻz"),
        ("googled, googling", "ɡˈuɡᵊld, ɡˈuɡᵊlɪŋ"),
        ("ChatGPT", "ʧˈæt ʤˌipˌitˈi"),
        ("livestream", "lˈIvstɹˌim"),
        ("Kokoro", "kOkˈɑɹO"),
        ("café", "kæfˈA"),
    ],
)
def test_american_words(american: Phonemizer, text: str, phonemes: str) -> None:
    assert said(american, text) == phonemes


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [("the car", "ðə kˈɑː"), ("better water", "bˈɛtə wˈɔːtə"), ("Xanthorpia", "zanθˈɔːpiə")],
)
def test_british_words(english: Phonemizer, text: str, phonemes: str) -> None:
    assert said(english, text) == phonemes


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("Mm-hmm. Mhm! MM-HMM, uh-huh", "ʌhˈʌː. ʌhˈʌː! ʌhˈʌː, ʌhˈʌː"),
        ("Mm, hmm. Hmmmm? Hm…", "ˈmm, ˈmm. ˈmm? ˈmm…"),
        ("Shh, shhhh", "ʃː, ʃː"),
        ("Hmph! Ugh. Brrr, grr, tsk tsk.", "hˈʌmf! ˈʌɡ. bˈɜɹ, ɡˈɜɹ, tˈɪsk tˈɪsk."),
        ("MM, BRR", "ˈmm, bˈɜɹ"),
    ],
)
def test_sounds_that_people_make_are_said_and_not_spelled(
    american: Phonemizer, text: str, phonemes: str
) -> None:
    assert said(american, text) == phonemes


def test_what_only_looks_like_such_a_sound_is_read_as_ever(american: Phonemizer, english: Phonemizer) -> None:
    assert said(american, "ssh") == said(american, "SSH") == "ˌɛsˌɛsˈAʧ"
    assert said(american, "5 mm, a TSK file") == "fˈIv mˈɪləmˌiɾəɹz, ɐ tˌiˌɛskˈA fˈIl"
    assert said(english, "Brr") == "bˈɜː"


@settings(max_examples=60, deadline=None)
@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=14))
def test_any_letters_sound(word: str) -> None:
    for sounds in (sound_out(word), british(sound_out(word))):
        assert sounds
        assert "ˈ" in sounds
        assert set(sounds) <= KOKORO


@settings(max_examples=60, deadline=None)
@given(st.from_regex(r"[A-Za-z]{1,12}('[a-z]{1,2})?( [A-Za-z0-9$%.,-]{1,8}){0,3}", fullmatch=True))
def test_no_word_is_dropped_and_every_phoneme_is_known(text: str) -> None:
    for phonemizer in PHONEMIZERS.values():
        spans = phonemizer.spans(text)
        for span in spans:
            assert set(span.phonemes) <= KOKORO
            if any(char.isalnum() for char in span.source):
                assert any(char.isalpha() for char in span.phonemes), span
        assert "".join(span.source for span in spans if span.source).count(text.split()[0].strip("'")) >= 1


@pytest.mark.parametrize("accent", ["us", "gb"])
def test_the_lexicons_hold_only_known_phonemes(accent: str) -> None:
    assert Lexicon(accent).phonemes() <= KOKORO


@pytest.mark.parametrize("text", ["say 你好 now", "привет", "नमस्ते"])
def test_other_scripts_are_refused_by_name(american: Phonemizer, text: str) -> None:
    with pytest.raises(Unspeakable, match="not in the Latin alphabet"):
        american.spans(text)


def test_spans_follow_the_whitespace_of_the_text(american: Phonemizer) -> None:
    assert [span.source for span in american.spans("It costs $3.50, well-known.")] == [
        "It",
        "costs",
        "$3.50,",
        "well-known.",
    ]
