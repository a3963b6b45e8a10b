"""What was spoken goes to the LLM and the voice; what is written decides which language a clause is spoken in."""

from __future__ import annotations

import pytest

from actors.messages import Failed, SttResult, TtsRequest
from orchestration.session import events as ev
from orchestration.session.config import SessionDefaults
from orchestration.session.echo import is_echo
from orchestration.session.spoken import Spoken, SpokenClause
from orchestration.session.text_language import TextLanguage, text_language
from orchestration.session.words import plain_words, word_ends
from tests.orchestration.session.session_rig import Rig

SENTENCES = {
    "en": ["Hello! How can I help you today?", "The capital of France is Paris.", "I'm not sure."],
    "de": ["Hallo! Wie kann ich Ihnen helfen?", "Die Hauptstadt von Frankreich ist Paris."],
    "fr": [
        "Bonjour ! Comment puis-je vous aider ?",
        "La capitale de la France est Paris.",
        "Je ne sais pas.",
    ],
    "es": ["¡Hola! ¿Cómo puedo ayudarte hoy?", "La capital de Francia es París."],
    "it": ["Ciao! Come posso aiutarti oggi?", "La capitale della Francia è Parigi."],
    "pt": ["Olá! Como posso ajudar você hoje?", "Eu não sei, mas posso procurar."],
    "nl": ["Hallo! Hoe kan ik je vandaag helpen?", "Dat weet ik niet."],
    "pl": ["Cześć! Jak mogę ci dzisiaj pomóc?"],
    "sv": ["Hej! Vad kan jag hjälpa dig med?"],
    "tr": ["Bu çok güzel bir soru."],
    "vi": ["Tôi có thể giúp gì cho bạn?"],
    "ja": ["東京は日本の首都です。"],
    "zh": ["北京是中国的首都。"],
    "ko": ["안녕하세요."],
    "ru": ["Привет! Как дела?"],
    "ar": ["مرحبا، كيف حالك؟"],
    "hi": ["नमस्ते"],
    "th": ["สวัสดี"],
}


@pytest.mark.parametrize(
    ("language", "text"), [(code, text) for code in SENTENCES for text in SENTENCES[code]]
)
@pytest.mark.parametrize("expected", [None, "en", "ja"])
def test_a_sentence_is_known_whatever_was_expected(language: str, text: str, expected: str | None) -> None:
    assert text_language(text, expected) == language


@pytest.mark.parametrize(
    "text",
    ["", "42.", "Paris.", "OK!", "Leonardo da Vinci.", "Vincent Van De Berg", "Sebastián Ramírez", "café"],
)
def test_names_and_single_words_have_no_language(text: str) -> None:
    assert text_language(text, "en") is None


def test_a_script_of_many_languages_is_that_of_the_one_expected() -> None:
    assert text_language("Привіт", "uk") == "uk"
    assert text_language("東京", "ja") == "ja"
    assert text_language("東京", "fr") == "zh"
    assert text_language("Tokyo (東京) is the capital of Japan.", "ja") == "en"
    assert text_language("Det er ikke her.", "no") == "no"


def test_a_text_stays_in_its_language_until_it_shows_another() -> None:
    text = TextLanguage("fr")
    pieces = ["Oui,", "je vous dis tout de suite:", "OK.", "The answer is that it was him.", "Paris."]
    assert [text.of(piece) for piece in pieces] == ["fr", "fr", "fr", "en", "en"]
    assert TextLanguage(None).of("Paris.") is None


def speaks(rig: Rig) -> list[tuple[str, str | None, str | None]]:
    requests = [submit.request for submit in rig.requests if isinstance(submit.request, TtsRequest)]
    return [(request.text, request.language, request.voice) for request in requests]


def turn(rig: Rig, said: str, language: str, reply: str) -> None:
    rig.transcripts.append(SttResult(said, language=language))
    rig.replies.append(reply)
    rig.hear(1000)
    rig.quiet(700)


@pytest.mark.parametrize("speculation", ["off", "tts"])
def test_the_language_that_was_spoken_goes_to_the_llm_and_the_voice(speculation: str) -> None:
    rig = Rig(SessionDefaults(speculation=speculation, names_language=True, instructions="Be brief."))  # type: ignore[arg-type]
    turn(rig, "Ça va ?", "fr", "Oui.")
    turn(rig, "Wie geht's?", "de", "Gut.")
    assert [prompt.messages[0].text for prompt in rig.prompts()] == [
        "Be brief.\n\nReply in French.",
        "Be brief.\n\nReply in German.",
    ]
    assert [language for _, language, _ in speaks(rig)] == ["fr", "de"]


def test_the_llm_is_told_the_language_only_where_that_is_wanted_and_known() -> None:
    rig = Rig(SessionDefaults(speculation="off", instructions="Be brief."))
    turn(rig, "Ça va ?", "fr", "Oui.")
    assert rig.prompts()[0].messages[0].text == "Be brief."
    rig = Rig(SessionDefaults(speculation="off", instructions="Be brief.", names_language=True))
    rig.write("Hi")
    rig.create()
    assert rig.prompts()[0].messages[0].text == "Be brief."


def test_a_fixed_language_holds_from_the_first_word_on() -> None:
    rig = Rig(SessionDefaults(speculation="off", language="fr", names_language=True, instructions=""))
    rig.replies.append("Oui.")
    rig.write("Salut")
    rig.create()
    assert rig.prompts()[0].messages[0].text == "Reply in French."
    assert speaks(rig) == [("Oui.", "fr", None)]


def test_each_clause_is_spoken_in_its_own_language_by_a_voice_that_has_it() -> None:
    voices = {"fr": "siwis", "de": "anna"}
    rig = Rig(SessionDefaults(speculation="off", language_voices=voices, voice="heart"))
    reply = "In French you would say this to them. Je ne sais pas ce que vous voulez."
    turn(rig, "How do I say it?", "en", reply)
    first, *_, last = speaks(rig)
    assert (first[1:], last[1:]) == (("en", "heart"), ("fr", "siwis"))


def test_a_voice_that_the_client_chose_stays() -> None:
    rig = Rig(SessionDefaults(speculation="off", language_voices={"fr": "siwis"}, voice="heart"))
    rig.update(audio={"output": {"voice": "nova"}})
    turn(rig, "Ça va ?", "fr", "Je ne sais pas ce que vous voulez.")
    assert speaks(rig)[0][1:] == ("fr", "nova")


def test_a_voice_without_the_language_says_so() -> None:
    rig = Rig(SessionDefaults(speculation="off"), auto=("vad", "turn", "stt", "llm"))
    turn(rig, "Ça va ?", "fr", "Je ne sais pas.")
    rig.answer(
        "tts", Failed("tts kokoro: language 'fr' was asked for, but this backend speaks English (en) only.")
    )
    details = rig.done().status_details
    assert details is not None and details.error is not None
    assert details.error.code == "tts_failed" and "'fr'" in (details.error.message or "")


def test_a_clause_without_a_language_is_not_taken_for_one_that_the_voice_lacks() -> None:
    rig = Rig(SessionDefaults(speculation="off", voice_languages=("en",)))
    turn(rig, "Paris?", "cy", "Paris, London, Berlin, Oslo! Je ne sais pas ce que vous voulez.")
    assert speaks(rig) == [("Paris, London,", None, None)]
    assert rig.errors() == ["language_not_spoken"], "of French, not of Welsh"


def test_a_clause_in_a_language_that_the_voice_lacks_is_written_and_the_client_is_told_once() -> None:
    rig = Rig(SessionDefaults(speculation="tts", voice_languages=("en",)))
    french = "Je ne sais pas ce que vous voulez dire. Vous êtes très bien dans votre maison."
    turn(rig, "Say it in French.", "en", f"You could say this. {french}")
    assert [text for text, _, _ in speaks(rig)] == ["You could say this."]
    assert rig.errors() == ["language_not_spoken"]
    assert "does not speak French (fr)" in rig.of(ev.Error)[0].error.message
    done = rig.done()
    assert done.status == "completed" and french in (done.output[0].content[0].transcript or "")


def test_nobody_is_told_of_an_answer_that_is_dropped() -> None:
    rig = Rig(SessionDefaults(speculation="tts", voice_languages=("en",)))
    rig.replies.append("Je ne sais pas ce que vous voulez.")
    rig.hear(1000)
    rig.quiet(300)
    rig.hear(1000)
    assert rig.prompts() and not rig.errors()


def test_words_of_unspaced_scripts_are_characters() -> None:
    assert plain_words("It's 東京, はい") == ["its", "東", "京", "は", "い"]
    text = "「東京」です。OK!"
    assert [text[:end] for end in word_ends(text)][-3:] == ["「東京」で", "「東京」です。", text]


def test_an_answer_in_chinese_is_cut_at_a_character_where_listening_ended() -> None:
    text = "北京是中国的首都。"
    clause = SpokenClause(len(text), text, samples=1000, rate_hz=1000, complete=True)
    assert Spoken(text, [clause]).cut(500) == "北京是中"


def test_the_machine_knows_itself_in_japanese() -> None:
    said = "東京は日本の首都です。"
    assert is_echo("東京は日本の", said)
    assert not is_echo("大阪に行きたい", said)
