"""The rules that clients rely on, 1 to 10, by number (the model-dependent and socket parts are tested end to end)."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import SttRequest, SttResult, VadRequest
from orchestration.session import events as ev
from orchestration.session.config import Limits, SessionDefaults
from orchestration.session.items import InputAudio, InputText, MessageItem
from tests.orchestration.session.session_rig import Rig, sound, told


def a_spoken_turn(rig: Rig) -> None:
    rig.hear(1000)
    rig.quiet(700)


def listening(**defaults: Any) -> Rig:
    """A session that wants transcripts."""
    rig = Rig(SessionDefaults(**{"speculation": "off", **defaults}))
    rig.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
    rig.events.clear()
    return rig


def test_one_spoken_turn_in_order() -> None:
    rig = listening()
    a_spoken_turn(rig)
    once = [kind for at, kind in enumerate(rig.types()) if at == 0 or rig.types()[at - 1] != kind]
    assert once == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "rate_limits.updated",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]


def test_rule_1_an_error_names_the_clients_event_and_the_session_goes_on() -> None:
    rig = Rig()
    (error,) = rig.send(ev.ConversationItemDelete(item_id="nobody", event_id="mine"))
    assert error.error == ev.ErrorDetail(
        "invalid_request_error",
        "item_not_found",
        "There is no item 'nobody' in the conversation.",
        "item_id",
        "mine",
    )
    a_spoken_turn(rig)
    assert rig.done().status == "completed"


def test_rule_3_chunk_size_does_not_matter() -> None:
    heard = []
    for chunk_ms in (1, 10, 100, 10_000):
        rig = listening()
        for ms, speech in ((250, False), (1000, True), (700, False), (800, True), (900, False)):
            rig.hear(ms, speech, chunk_ms=chunk_ms)
        marks = [
            (e.__struct_config__.tag, getattr(e, "audio_start_ms", None), getattr(e, "audio_end_ms", None))
            for e in rig.events
            if "speech_st" in e.__struct_config__.tag
        ]
        asked = [submit.request for submit in rig.requests if isinstance(submit.request, SttRequest)]
        stt = [request for request in asked if not request.interim]
        heard.append((marks, stt))
        assert len(stt) == 2
    assert all(one == heard[0] for one in heard)


@pytest.mark.parametrize("ms", [0, 99])
def test_rule_4_commit_of_an_empty_buffer(ms: int) -> None:
    rig = Rig()
    rig.manual()
    rig.hear(ms)
    assert rig.types(rig.commit()) == ["error"]
    assert rig.errors() == ["input_audio_buffer_commit_empty"]
    assert not rig.of(ev.ConversationItemAdded)


def test_rule_4_clear_empties_the_buffer() -> None:
    rig = Rig()
    rig.manual()
    rig.hear(500)
    assert rig.types(rig.send(ev.InputAudioBufferClear())) == ["input_audio_buffer.cleared"]
    rig.commit()
    assert rig.errors() == ["input_audio_buffer_commit_empty"]


def test_rule_5_silence_is_no_turn() -> None:
    rig = Rig()
    rig.quiet(60_000, chunk_ms=1000)
    assert rig.types() == ["session.created"]


def test_rule_5_a_short_noise_is_no_turn() -> None:
    rig = Rig()
    rig.quiet(500)
    rig.hear(40)
    rig.quiet(2000)
    assert rig.types() == ["session.created"]


def test_rule_5_words_that_stt_rejects_are_not_answered() -> None:
    rig = listening()
    rig.transcripts.append(SttResult("Thank you for watching.", rejected="no_speech"))
    a_spoken_turn(rig)
    assert rig.of(ev.InputAudioTranscriptionCompleted)[0].transcript == ""
    assert not rig.of(ev.ResponseCreated)
    a_spoken_turn(rig)
    assert told(rig.prompts()[0])[1:] == [("user", "Hello there.")]


def test_rule_5_a_committed_silence_never_reaches_stt() -> None:
    rig = Rig()
    rig.manual(transcription={"model": "whisper-1"})
    rig.quiet(1000)
    rig.commit()
    assert rig.of(ev.InputAudioTranscriptionCompleted)[0].transcript == ""
    assert not [submit for submit in rig.requests if submit.request.stage == "stt"]
    rig.create()
    assert rig.done().status == "completed"


def test_rule_6_a_second_response_is_refused_and_the_first_goes_on() -> None:
    rig = Rig(auto=("vad", "stt", "tts"))
    rig.create()
    rig.create()
    assert rig.errors() == ["conversation_already_has_active_response"]
    rig.answer("llm")
    assert rig.done().status == "completed"


def test_rule_7_cancel_closes_everything_that_is_open_first() -> None:
    rig = Rig(auto=("vad", "stt"))
    rig.create()
    rig.answer("llm")
    events = rig.send(ev.ResponseCancel())
    assert rig.types(events) == [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    assert events[3].item.status == "incomplete"
    response = events[-1].response
    assert (response.status, response.status_details.reason) == ("cancelled", "client_cancelled")
    assert response.id in rig.cancelled


def test_rule_7_nothing_follows_a_cancelled_response() -> None:
    rig = Rig(auto=("vad", "stt"))
    rig.create()
    rig.answer("llm")
    tts = rig.waiting("tts")[0]
    rig.send(ev.ResponseCancel())
    before = len(rig.events)
    rig.finish(tts)
    assert len(rig.events) == before


def test_rule_7_cancel_twice_and_before_anything_came() -> None:
    rig = Rig(auto=())
    rig.create()
    assert rig.types(rig.send(ev.ResponseCancel())) == ["response.done"]
    rig.send(ev.ResponseCancel())
    assert rig.errors() == ["response_cancel_not_active"]
    rig.create()
    assert rig.types()[-2] == "response.created"


def test_rule_7_cancel_by_id() -> None:
    rig = Rig(auto=())
    rig.create(conversation="none")
    beside = rig.of(ev.ResponseCreated)[0].response.id
    rig.create()
    rig.send(ev.ResponseCancel(response_id=beside))
    assert rig.done().id == beside
    rig.send(ev.ResponseCancel(response_id="resp_unknown"))
    assert rig.errors() == ["response_cancel_not_active"]


def test_rule_8_barge_in_stops_the_answer_and_keeps_what_was_heard() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    rig.replies.append("One two three four. Five six seven eight.")
    a_spoken_turn(rig)
    rig.answer("tts")  # 19 characters: 0.95 s
    rig.wait(0.0)
    before = len(rig.events)
    rig.hear(700)
    types = rig.types(rig.events[before:])
    assert types[0] == "input_audio_buffer.speech_started"
    assert types[-1] == "response.done"
    response = rig.done()
    assert (response.status, response.status_details.reason) == ("cancelled", "turn_detected")
    assert response.id in rig.cancelled
    rig.quiet(700)
    assert told(rig.prompts()[-1])[2] == ("assistant", "One two")
    (retrieved,) = rig.send(ev.ConversationItemRetrieve(item_id=response.output[0].id))
    assert retrieved.item.content[0].transcript == "One two"
    assert response.output[0].content[0].transcript == "One two three four. Five six seven eight."


def test_rule_8_speech_after_the_answer_was_sent_also_cuts_what_was_not_heard() -> None:
    rig = Rig()
    rig.replies.append("One two three four. Five six seven eight.")
    a_spoken_turn(rig)
    assert rig.done().status == "completed"
    rig.hear(1000)
    rig.quiet(700)
    assert told(rig.prompts()[-1])[2][1] in ("One two", "One two three four. Five")
    assert rig.done().status == "completed"


def test_rule_8_the_clients_own_truncation_counts() -> None:
    rig = Rig()
    rig.replies.append("One two three four. Five six seven eight.")
    a_spoken_turn(rig)
    item = rig.done().output[0].id
    rig.hear(1000)
    rig.send(ev.ConversationItemTruncate(item_id=item, content_index=0, audio_end_ms=1500))
    rig.quiet(700)
    assert told(rig.prompts()[-1])[2] == ("assistant", "One two three four. Five six")


def test_rule_9_truncate_takes_the_sound_and_its_words() -> None:
    rig = Rig()
    rig.replies.append("One two three four. Five six seven eight.")
    a_spoken_turn(rig)
    item = rig.done().output[0].id
    events = rig.send(ev.ConversationItemTruncate(item_id=item, content_index=0, audio_end_ms=475))
    assert rig.types(events) == ["conversation.item.truncated"]
    (retrieved,) = rig.send(ev.ConversationItemRetrieve(item_id=item))
    (part,) = retrieved.item.content
    assert (part.transcript, len(part.audio), part.rate_hz) == ("One two", 950, 1000)


def test_rule_9_truncate_beyond_the_end_or_of_another_item_changes_nothing() -> None:
    rig = Rig()
    a_spoken_turn(rig)
    user, answer = [event.item for event in rig.of(ev.ConversationItemDone)]
    for item_id, index, ms in (
        (answer.id, 0, 99_999),
        (answer.id, 0, -1),
        (answer.id, 1, 0),
        (user.id, 0, 0),
        ("nobody", 0, 0),
    ):
        rig.send(ev.ConversationItemTruncate(item_id=item_id, content_index=index, audio_end_ms=ms))
    assert rig.errors() == ["invalid_value"] * 4 + ["item_not_found"]
    (retrieved,) = rig.send(ev.ConversationItemRetrieve(item_id=answer.id))
    assert retrieved.item.content[0].transcript == "It is noon. Have a nice day."


def test_rule_9_a_text_answer_has_no_sound_to_truncate() -> None:
    rig = Rig()
    rig.create(output_modalities=["text"])
    item = rig.done().output[0].id
    rig.send(ev.ConversationItemTruncate(item_id=item, content_index=0, audio_end_ms=0))
    assert rig.errors() == ["invalid_value"]


def test_rule_10_a_response_out_of_band_leaves_the_conversation_alone() -> None:
    rig = Rig()
    rig.write("My name is Ada.")
    rig.events.clear()
    rig.create(
        conversation="none",
        metadata={"topic": "sum"},
        instructions="Sum up.",
        input=[MessageItem("user", [InputText("1 + 1")])],
        output_modalities=["text"],
    )
    assert "conversation.item.added" not in rig.types()
    response = rig.done()
    assert (response.conversation_id, response.metadata) == (None, {"topic": "sum"})
    assert told(rig.prompts()[-1]) == [("system", "Sum up."), ("user", "1 + 1")]
    rig.create()
    assert told(rig.prompts()[-1])[1:] == [("user", "My name is Ada.")]


def test_rule_10_it_may_run_beside_the_conversations_response() -> None:
    rig = Rig(auto=())
    rig.create()
    rig.create(conversation="none")
    assert not rig.errors()
    rig.answer("llm")
    rig.answer("llm")
    assert len(rig.waiting("tts")) == 4


def test_rule_10_not_without_end() -> None:
    rig = Rig(SessionDefaults(limits=Limits(responses_beside=2)), auto=())
    for _ in range(3):
        rig.create(conversation="none")
    assert rig.errors() == ["too_many_responses"]


def test_rule_10_items_of_the_conversation_by_reference() -> None:
    rig = Rig()
    rig.write("One.", id="item_one")
    rig.write("Two.", id="item_two")
    from orchestration.session.items import ItemReference

    rig.create(conversation="none", input=[ItemReference("item_two")])
    assert told(rig.prompts()[-1])[1:] == [("user", "Two.")]
    rig.create(conversation="none", input=[ItemReference("item_three")])
    assert rig.errors() == ["item_not_found"]


def test_rule_10_spoken_input_is_transcribed_for_it() -> None:
    rig = Rig()
    spoken = MessageItem("user", [InputAudio(audio=sound(500))])
    rig.create(conversation="none", input=[spoken])
    assert told(rig.prompts()[-1])[1:] == [("user", "Hello there.")]


def test_vad_gets_whole_frames_one_request_at_a_time() -> None:
    rig = Rig(auto=())
    rig.hear(10)
    assert not rig.requests
    rig.hear(10_000, live=False, chunk_ms=10_000)
    (first,) = rig.requests
    assert isinstance(first.request, VadRequest) and len(first.request.frames) == 64 * 1024
    rig.answer("vad")
    (second,) = rig.waiting("vad")
    assert isinstance(second.request, VadRequest)
    assert second.request.state == b"state" and second.request.context == first.request.frames[-128:]
