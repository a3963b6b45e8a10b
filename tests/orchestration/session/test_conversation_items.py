"""Items: their order, what is known of them, and what the model is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import AudioPart, ImagePart, TtsAudio, TtsDone, Word
from orchestration.session import events as ev
from orchestration.session import items
from orchestration.session.config import Limits, SessionDefaults
from orchestration.session.conversation import KEPT_AUDIO_BYTES, Conversation, Entry
from orchestration.session.history import prompt
from orchestration.session.spoken import Spoken, SpokenClause
from tests.orchestration.session.session_rig import Rig, sound, told


def order(rig: Rig) -> list[str]:
    """The items as a client would put them, from `previous_item_id` alone."""
    ids: list[str] = []
    for event in rig.of(ev.ConversationItemAdded):
        at = 0 if event.previous_item_id is None else ids.index(event.previous_item_id) + 1
        ids.insert(at, event.item.id)
    return ids


def create(rig: Rig, item: Any, previous: str | None = None) -> list[Any]:
    return rig.send(ev.ConversationItemCreate(item=item, previous_item_id=previous))


def text(words: str, item_id: str = "") -> items.MessageItem:
    return items.MessageItem("user", [items.InputText(words)], item_id)


def test_items_go_where_they_are_wanted() -> None:
    rig = Rig()
    create(rig, text("b", "b"))
    create(rig, text("d", "d"))
    create(rig, text("a", "a"), "root")
    create(rig, text("c", "c"), "b")
    assert order(rig) == ["a", "b", "c", "d"]
    rig.create()
    assert [text for role, text in told(rig.prompts()[0]) if role == "user"] == ["a", "b", "c", "d"]


def test_an_unknown_place_or_a_known_id_is_refused() -> None:
    rig = Rig()
    create(rig, text("a", "a"))
    create(rig, text("b"), "nobody")
    create(rig, text("a", "a"))
    assert rig.errors() == ["item_not_found", "item_already_exists"]
    assert order(rig) == ["a"]


def test_a_conversation_has_its_limit() -> None:
    rig = Rig(SessionDefaults(limits=Limits(items=1)))
    create(rig, text("a"))
    create(rig, text("b"))
    rig.hear(500)
    rig.commit()
    assert rig.errors() == ["conversation_full", "conversation_full"]


def test_a_deleted_item_is_forgotten() -> None:
    rig = Rig()
    create(rig, text("My name is Ada.", "a"))
    assert rig.types(rig.send(ev.ConversationItemDelete(item_id="a"))) == ["conversation.item.deleted"]
    rig.create()
    assert [role for role, _ in told(rig.prompts()[0])] == ["system"]
    rig.send(ev.ConversationItemRetrieve(item_id="a"))
    assert rig.errors() == ["item_not_found"]


def test_deleting_speech_that_is_being_transcribed_stops_that_and_nothing_waits_for_it() -> None:
    rig = Rig(auto=("vad", "llm", "tts"))
    rig.manual(transcription={"model": "whisper-1"})
    rig.hear(1000)
    rig.commit()
    (stt,) = rig.waiting("stt")
    rig.create()
    assert not rig.prompts()
    rig.send(ev.ConversationItemDelete(item_id=rig.of(ev.InputAudioBufferCommitted)[0].item_id))
    assert rig.cancelled == [stt.generation]
    assert rig.done().status == "completed"
    assert not rig.of(ev.InputAudioTranscriptionCompleted)


def test_deleting_speech_whose_frames_are_still_on_their_way() -> None:
    rig = Rig(auto=("stt",))
    rig.manual()
    rig.hear(1000, live=False)
    rig.commit()
    rig.send(ev.ConversationItemDelete(item_id=rig.of(ev.InputAudioBufferCommitted)[0].item_id))
    while rig.waiting("vad"):
        rig.answer("vad")
    assert not [submit for submit in rig.requests if submit.request.stage == "stt"]


def test_a_retrieved_item_has_its_sound_and_transcript() -> None:
    rig = Rig()
    rig.hear(1000)
    rig.quiet(700)
    user, answer = [event.item.id for event in rig.of(ev.ConversationItemDone)]
    (event,) = rig.send(ev.ConversationItemRetrieve(item_id=user))
    assert event.item.content[0].transcript == "Hello there."
    assert event.item.content[0].audio.startswith(sound(1000))
    (event,) = rig.send(ev.ConversationItemRetrieve(item_id=answer))
    assert (len(event.item.content[0].audio), event.item.content[0].rate_hz) == (27 * 100, 1000)


def test_speech_that_a_client_writes_is_transcribed_unless_it_comes_with_its_words() -> None:
    rig = Rig()
    create(rig, items.MessageItem("user", [items.InputAudio(audio=sound(500))]))
    create(rig, items.MessageItem("user", [items.InputAudio("I know.", audio=sound(500))]))
    rig.create()
    assert told(rig.prompts()[0])[1:] == [("user", "Hello there."), ("user", "I know.")]


def test_pictures_system_messages_and_earlier_answers_reach_the_model() -> None:
    rig = Rig()
    create(rig, items.MessageItem("system", [items.InputText("Be brief.")]))
    create(rig, items.MessageItem("assistant", [items.OutputText("Yes?")]))
    create(rig, items.MessageItem("assistant", [items.OutputAudio("Go on.")]))
    create(
        rig, items.MessageItem("user", [items.InputImage("data:image/png;base64,AA=="), items.InputText("?")])
    )
    rig.create()
    messages = rig.prompts()[0].messages
    assert told(rig.prompts()[0])[1:] == [
        ("system", "Be brief."),
        ("assistant", "Yes? Go on."),
        ("user", "?"),
    ]
    assert messages[-1].parts[0] == ImagePart("data:image/png;base64,AA==")


def test_a_function_call_that_a_client_writes_gets_its_ids() -> None:
    rig = Rig()
    create(rig, items.FunctionCallItem("clock", "{}"))
    item = rig.of(ev.ConversationItemAdded)[0].item
    assert item.id and item.call_id
    create(rig, items.FunctionCallOutputItem(item.call_id, "noon"))
    rig.create(output_modalities=["text"])
    assert [m.role for m in rig.prompts()[0].messages] == ["system", "assistant", "tool"]
    assert rig.done().output[0].content[0].text == "It is noon. Have a nice day."


def test_where_the_model_hears_it_gets_the_sound_and_nothing_is_transcribed() -> None:
    rig = Rig(SessionDefaults(hears="audio", speculation="tts"))
    rig.hear(1000)
    rig.quiet(700)
    part = rig.prompts()[0].messages[1].parts[0]
    assert isinstance(part, AudioPart) and part.audio.startswith(sound(1000))
    assert not [submit for submit in rig.requests if submit.request.stage == "stt"]
    rig.manual()
    rig.hear(1000)
    rig.commit()
    create(rig, items.MessageItem("user", [items.InputAudio(audio=sound(500))]))
    rig.create()
    assert [type(m.parts[0]) for m in rig.prompts()[1].messages if m.role == "user"] == [AudioPart] * 3
    assert not [submit for submit in rig.requests if submit.request.stage == "stt"]


def test_where_the_model_hears_transcripts_come_for_those_who_ask() -> None:
    rig = Rig(SessionDefaults(hears="audio"), auto=("vad", "llm", "tts"))
    rig.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
    rig.hear(1000)
    rig.quiet(700)
    assert rig.done().status == "completed", "the answer does not wait for them"
    rig.answer("stt")
    assert rig.types()[-1] == "conversation.item.input_audio_transcription.completed"


def test_a_long_history_loses_its_oldest_turns_whole() -> None:
    rig = Rig(SessionDefaults(limits=Limits(prompt_characters=50)))
    for word in ("one", "two", "three"):
        create(rig, text(word))
        rig.create()
    assert told(rig.prompts()[-1])[1:] == [
        ("user", "two"),
        ("assistant", "It is noon. Have a nice day."),
        ("user", "three"),
    ]
    create(rig, text("x" * 100))
    rig.create()
    assert told(rig.prompts()[-1])[1:] == [("user", "x" * 100)]
    alone = [Entry(items.MessageItem("assistant", [items.OutputText("y" * 100)]))]
    assert [message.role for message in prompt("", alone, 10)] == ["assistant"]


def test_sound_counts_in_the_length_of_a_prompt() -> None:
    second = [Entry(items.MessageItem("user", [items.InputAudio()]), bytes(32_000)) for _ in range(3)]
    assert len(prompt("", second, 250, hears_audio=True)) == 2
    assert len(prompt("", second, 300, hears_audio=True)) == 3


def test_cleared_instructions_are_no_message() -> None:
    rig = Rig()
    rig.update(instructions="")
    create(rig, text("a"))
    rig.create()
    assert told(rig.prompts()[0]) == [("user", "a")]


def test_what_was_heard_follows_the_words_times_where_tts_gives_them() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    rig.replies.append("One two three four.")
    rig.create()
    words = [Word(w, 200 * n, 200 * n + 200) for n, w in enumerate(("one", "two", "three", "four"))]
    rig.answer("tts", TtsAudio(b"\0\0" * 800, 1000, words), TtsDone(800))
    item = rig.done().output[0].id
    rig.send(ev.ConversationItemTruncate(item_id=item, content_index=0, audio_end_ms=650))
    create(rig, text("And?"))
    rig.create()
    assert told(rig.prompts()[-1])[1] == ("assistant", "One two three")


def test_an_answer_that_nobody_heard_is_not_in_the_prompt() -> None:
    rig = Rig()
    rig.create()
    rig.send(ev.ConversationItemTruncate(item_id=rig.done().output[0].id, content_index=0, audio_end_ms=0))
    create(rig, text("And?"))
    rig.create()
    assert [role for role, _ in told(rig.prompts()[-1])] == ["system", "user"]


def test_a_cancelled_answer_counts_as_far_as_its_sound_was_sent() -> None:
    rig = Rig(auto=())
    rig.create()
    rig.answer("llm")
    rig.answer("tts")
    rig.send(ev.ResponseCancel())
    create(rig, text("And?"))
    rig.create()
    assert told(rig.prompts()[-1])[1] == ("assistant", "It is noon.")


def test_truncating_while_it_is_said() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    rig.create()
    rig.answer("tts")
    item = rig.of(ev.ConversationItemAdded)[0].item.id
    events = rig.send(ev.ConversationItemTruncate(item_id=item, content_index=0, audio_end_ms=300))
    assert rig.types(events) == ["conversation.item.truncated"]


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0, ""), (501, "One two"), (999, "One two three four. 🎉"), (1200, "One two three four. 🎉 And")],
)
def test_cut(ms: float, words: str) -> None:
    spoken = Spoken(
        "One two three four. 🎉 And so on",
        [
            SpokenClause(19, "One two three four.", 500, 500, None, True),
            SpokenClause(22, "", 0, 0, None, True),
            SpokenClause(32, "And so on", 100, 500, None, False),
        ],
    )
    assert spoken.cut(ms).rstrip() == words
    assert Spoken("abc").heard == "abc"
    assert Spoken("One. Two", [SpokenClause(4, "One.", 500, 500, None, True)]).cut(2000) == "One."
    assert SpokenClause(3, "").words_heard(0.0, 65) == 1.0


def test_a_clause_without_word_times_is_expected_at_the_pace_of_those_before() -> None:
    slow = SpokenClause(4, "One.", 400, 1000, None, True)
    made = SpokenClause(23, "Two three four five.", 100, 1000, None, False)
    spoken = Spoken("One. Two three four five.", [slow, made])
    assert (spoken.cut(400 + 500), spoken.cut(400 + 1000)) == ("One. Two", "One. Two three")
    made.complete, made.samples = True, 2000
    assert spoken.ms_per_character == 100


@pytest.mark.parametrize(
    ("ms", "words"), [(0, ""), (199, ""), (200, "One"), (400, "One two"), (9000, "One two")]
)
def test_a_clause_that_is_still_made_is_cut_at_the_words_that_are_known(ms: float, words: str) -> None:
    known = [Word("One", 0, 200), Word("two", 200, 400)]
    clause = SpokenClause(19, "One two three four.", 400, 1000, known, False)
    assert Spoken("One two three four.", [clause]).cut(ms) == words


def test_old_sound_is_forgotten_first() -> None:
    conversation = Conversation("conv", 10)
    old = Entry(text("old", "old"), pcm=bytes(KEPT_AUDIO_BYTES // 2))
    said = Entry(items.MessageItem("assistant", [items.OutputAudio("x")], "said"), spoken=Spoken("x"))
    assert said.spoken is not None
    said.spoken.pcm += bytes(KEPT_AUDIO_BYTES // 2)
    conversation.add(said)
    conversation.add(old)
    conversation.add(Entry(text("new", "new"), pcm=bytes(1000)))
    assert (len(said.spoken.pcm), len(old.pcm)) == (0, KEPT_AUDIO_BYTES // 2)
    conversation.add(Entry(text("more", "more"), pcm=bytes(KEPT_AUDIO_BYTES)))
    assert old.pcm == b""
    assert conversation.find("new") is not None and conversation.get("new").pcm == b""
    item = conversation.retrieved("said")
    assert isinstance(item, items.MessageItem) and item.content[0] == items.OutputAudio("x")
    assert conversation.previous_id("nobody") is None
