"""Work that begins before the turn is certain: used at the endpoint, dropped unheard when the person goes on."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import Failed, Rank, SttResult, TtsRequest
from orchestration.session import events as ev
from orchestration.session.config import SessionDefaults
from orchestration.session.config import Speculation as Level
from orchestration.session.items import InputText, MessageItem
from orchestration.session.timeline import Speculation
from tests.orchestration.session.session_rig import Rig, told


def rig_with(speculation: Level, auto: tuple[str, ...] = ("vad", "turn", "stt", "llm", "tts")) -> Rig:
    return Rig(SessionDefaults(speculation=speculation), auto=auto)


def stages(rig: Rig) -> list[str]:
    return [submit.request.stage for submit in rig.requests if submit.request.stage != "vad"]


def test_off_nothing_begins_before_the_endpoint() -> None:
    rig = rig_with("off")
    rig.hear(1000)
    rig.quiet(400)
    assert stages(rig) == []
    rig.quiet(200)
    assert stages(rig)[:2] == ["stt", "llm"]


@pytest.mark.parametrize(
    ("level", "early"), [("stt", ["stt"]), ("llm", ["stt", "llm"]), ("tts", ["stt", "llm", "tts"])]
)
def test_each_level_goes_as_far_as_it_says(level: Any, early: list[str]) -> None:
    rig = rig_with(level)
    rig.hear(1000)
    rig.quiet(400)
    assert stages(rig) == early
    assert all(s.rank is Rank.SPECULATIVE for s in rig.requests if s.request.stage != "vad")
    assert rig.types() == ["session.created", "input_audio_buffer.speech_started"]
    rig.quiet(200)
    assert stages(rig).count("stt") == 1 and stages(rig).count("llm") == 1
    assert rig.done().status == "completed"
    assert told(rig.prompts()[0])[1:] == [("user", "Hello there.")]


@pytest.mark.parametrize("level", ["stt", "llm", "tts"])
def test_the_person_goes_on_and_nobody_heard_of_it(level: Any) -> None:
    rig = rig_with(level, ("vad", "stt"))
    rig.transcripts.extend(["My name is", "My name is John Doe."])
    rig.hear(1000)
    rig.quiet(300)
    early = [submit.generation for submit in rig.open.values()]
    rig.hear(500)
    assert set(early) <= set(rig.cancelled)
    rig.quiet(700)
    assert len(rig.of(ev.InputAudioBufferCommitted)) == 1
    assert told(rig.prompts()[-1])[1:] == [("user", "My name is John Doe.")]
    assert rig.session.timeline.stt.thrown_away == 1
    assert rig.session.timeline.stt.used == 1


def test_what_was_begun_is_promoted_at_the_endpoint() -> None:
    rig = rig_with("tts", ("vad",))
    rig.hear(1000)
    rig.quiet(600)
    (stt,) = rig.waiting("stt")
    assert rig.promoted == [stt.generation]
    assert "response.created" not in rig.types()
    rig.answer("stt")
    assert "response.created" in rig.types()

    rig = rig_with("tts", ("vad", "stt"))
    rig.hear(1000)
    rig.quiet(600)
    (llm,) = rig.waiting("llm")
    assert llm.generation in rig.promoted
    assert rig.types()[-2:] == ["response.created", "rate_limits.updated"]
    assert rig.session.timeline.answers.used == 1


def test_only_the_first_clause_is_spoken_early() -> None:
    rig = rig_with("tts")
    rig.hear(1000)
    rig.quiet(300)
    assert rig.spoken() == ["It is noon."]
    rig.quiet(300)
    assert rig.spoken() == ["It is noon.", "Have a nice day."]
    later = [s for s in rig.requests if isinstance(s.request, TtsRequest)][1]
    assert later.rank is Rank.CONFIRMED


def test_the_sound_of_a_held_answer_is_all_sent_at_the_endpoint() -> None:
    rig = rig_with("tts")
    rig.replies.append("Noon.")
    rig.hear(1000)
    rig.quiet(300)
    assert not rig.of(ev.ResponseAudioDelta)
    rig.quiet(300)
    assert sum(len(event.delta) for event in rig.of(ev.ResponseAudioDelta)) == 5 * 50 * 2
    assert rig.done().status == "completed"


def test_an_early_failure_is_told_only_when_the_turn_is_real() -> None:
    rig = rig_with("llm", ("vad", "stt"))
    rig.hear(1000)
    rig.quiet(300)
    rig.answer("llm", Failed("llm: gone"))
    assert "response.done" not in rig.types()
    rig.quiet(300)
    assert rig.done().status == "failed"


@pytest.mark.parametrize("change", ["item", "session"])
def test_an_early_answer_to_another_prompt_is_thrown_away(change: str) -> None:
    rig = rig_with("llm", ("vad", "stt"))
    rig.hear(1000)
    rig.quiet(300)
    if change == "item":
        rig.send(
            ev.ConversationItemCreate(item=MessageItem("system", [InputText("Be brief.")])),
        )
    else:
        rig.update(instructions="Be brief.")
    rig.quiet(300)
    assert len(rig.prompts()) == 2
    assert "Be brief." in [text for _, text in told(rig.prompts()[1])]
    assert rig.session.timeline.answers.thrown_away == 1


def test_no_early_answer_while_another_one_is_active_or_none_is_wanted() -> None:
    rig = rig_with("llm", ("vad", "stt"))
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "interrupt_response": False}}})
    rig.create()
    rig.hear(1000)
    rig.quiet(300)
    assert len(rig.prompts()) == 1

    rig = rig_with("llm", ("vad", "stt"))
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    rig.hear(1000)
    rig.quiet(700)
    assert rig.prompts() == []


def test_early_words_that_turn_out_to_be_none_leave_no_answer() -> None:
    rig = rig_with("llm", ("vad",))
    rig.hear(1000)
    rig.quiet(300)
    rig.answer("stt", SttResult("", rejected="no_speech"))
    rig.quiet(400)
    assert rig.of(ev.InputAudioBufferCommitted) and not rig.of(ev.ResponseCreated)
    assert rig.prompts() == []


def test_a_client_response_replaces_the_early_one() -> None:
    rig = rig_with("llm", ("vad", "stt"))
    rig.hear(1000)
    rig.quiet(300)
    early = rig.waiting("llm")[0].generation
    rig.create()
    assert early in rig.cancelled


def test_resume_and_endpoint_in_the_same_batch_of_frames() -> None:
    rig = rig_with("tts", ("stt", "llm", "tts"))
    rig.transcripts.append("All of it.")
    for ms, speech in ((1000, True), (300, False), (500, True), (700, False)):
        rig.hear(ms, speech, live=False, chunk_ms=ms)
    while rig.waiting("vad"):
        rig.answer("vad")
    assert rig.done().status == "completed"
    assert told(rig.prompts()[-1])[1:] == [("user", "All of it.")]


def test_two_barge_ins_in_a_row() -> None:
    rig = rig_with("tts")
    rig.replies.extend(["This is a very long answer that goes on and on. And on, and on."] * 3)
    for _ in range(3):
        rig.hear(1000)
        rig.quiet(600)
    assert [e.response.status for e in rig.of(ev.ResponseDone)] == ["completed"] * 3
    roles = [message.role for message in rig.prompts()[-1].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert all(len(text) < 60 for role, text in told(rig.prompts()[-1]) if role == "assistant")


def test_the_timeline_of_a_turn_that_was_answered_early() -> None:
    rig = rig_with("tts")
    rig.hear(1000)
    rig.quiet(700)
    (turn,) = rig.session.timeline.turns
    moments: list[Any] = [
        turn.speech_start,
        turn.last_speech,
        turn.pause_seen,
        turn.transcript_done,
        turn.first_token,
        turn.first_clause,
        turn.first_audio,
        turn.endpoint,
        turn.first_audio_sent,
        turn.done,
        turn.playback_end,
    ]
    assert None not in moments and moments == sorted(moments)
    assert (turn.transcript, turn.status) == ("Hello there.", "completed")
    assert turn.answer == "It is noon. Have a nice day."


def test_what_became_of_early_work_is_counted_and_adds_up_over_sessions() -> None:
    rig = rig_with("llm", ("vad", "stt", "llm", "tts"))
    rig.hear(1000)
    rig.quiet(300)
    rig.hear(500)
    rig.quiet(700)
    counted = rig.session.timeline.speculation
    assert counted == {"stt": Speculation(1, 1), "answers": Speculation(1, 1)}
    assert counted["stt"] + Speculation(2, 0) == Speculation(3, 1)
