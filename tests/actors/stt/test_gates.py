from typing import Any

import pytest

from actors.stt import gates

SURE: dict[str, Any] = {"logprob": -0.2, "no_speech": 0.01}


@pytest.mark.parametrize("text", ["", "  ", "...", "[Music]", "(applause)", "♪♪"])
def test_text_without_words_is_no_speech(text: str) -> None:
    assert gates.rejection(text, **SURE) == "no_speech"


def test_the_no_speech_token_counts_only_where_the_text_is_doubtful_too() -> None:
    assert gates.rejection("What time is it?", logprob=-1.2, no_speech=0.7) == "no_speech"
    assert gates.rejection("What time is it?", logprob=-0.2, no_speech=0.9) is None
    assert gates.rejection("What time is it?", logprob=-1.2, no_speech=0.1) is None


def test_the_same_thing_again_and_again_is_repetition() -> None:
    assert gates.rejection("go on and on " * 20, **SURE) == "repetition"
    assert gates.rejection("ten of clubs", **SURE, looped=True) == "repetition"
    assert gates.rejection("No, no, no, I said the red one, not the blue one.", **SURE) is None


HINDI = (
    "नमस्ते, मुझे कल सुबह दिल्ली से मुंबई जाने वाली ट्रेन के बारे में जानकारी चाहिए। क्या आप बता सकते हैं कि टिकट कितने का है और "
    "ट्रेन कितने बजे निकलती है? मेरे साथ दो बच्चे भी हैं, इसलिए मुझे नीचे वाली बर्थ चाहिए। अगर राजधानी में जगह नहीं है तो किसी दूसरी "
    "गाड़ी का नाम बता दीजिए, और यह भी बताइए कि खाना मिलेगा या नहीं।"
)
THAI = (
    "สวัสดีครับ ผมอยากทราบข้อมูลเกี่ยวกับรถไฟจากกรุงเทพไปเชียงใหม่พรุ่งนี้เช้า ช่วยบอกได้ไหมว่าตั๋วราคาเท่าไหร่และรถไฟออกกี่โมง "
    "ผมมีเด็กสองคนไปด้วย ดังนั้นผมต้องการที่นั่งชั้นล่าง ถ้าไม่มีที่ว่างช่วยแนะนำขบวนอื่นให้ด้วยครับ และบอกด้วยว่ามีอาหารบริการหรือไม่"
)


@pytest.mark.parametrize("speech", [HINDI, THAI])
def test_repetition_is_told_from_speech_in_every_script(speech: str) -> None:
    assert gates.rejection(speech, **SURE) is None
    assert gates.rejection(speech[:25] * 12, **SURE) == "repetition"


@pytest.mark.parametrize(
    "text",
    [
        "Thank you for watching!",
        "Thanks for watching.",
        "Thank you very much.",
        "Subtitles by the Amara.org community",
        "Please subscribe to my channel.",
        "See you in the next video.",
        "you",
    ],
)
def test_a_phantom_is_rejected_where_the_model_doubts_it(text: str) -> None:
    assert gates.rejection(text, logprob=-0.3, no_speech=0.5) == "phantom"
    assert gates.rejection(text, logprob=-0.8, no_speech=0.05) == "phantom"
    assert gates.rejection(text, **SURE) is None


@pytest.mark.parametrize(
    "text", ["Thank you for the help with my order.", "Subscribe me to the weekly plan."]
)
def test_a_sentence_that_only_begins_like_a_phantom_passes(text: str) -> None:
    assert gates.rejection(text, logprob=-0.8, no_speech=0.5) is None


def test_words_the_model_guesses_at_are_low_confidence() -> None:
    assert gates.rejection("Vlam dee gorp", logprob=-2.1, no_speech=0.1) == "low_confidence"
