"""Speech over an answer: suspected, then confirmed or not; what is held, what is cut, what goes on."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import LlmDone, LlmText, SttResult
from orchestration.session import events as ev
from orchestration.session.config import Pace, SessionDefaults
from orchestration.session.playback import PlaybackClock
from tests.orchestration.session.session_rig import Rig, told

LONG = "This is a long answer that goes on and on for quite some time, as you can hear."
ALL = ("vad", "turn", "stt", "llm", "tts")


def answering(auto: tuple[str, ...] = ALL, first_words: bool = False, **options: Any) -> Rig:
    """A session that has begun to say `LONG` (4 s) some 200 ms ago."""
    rig = Rig(SessionDefaults(speculation="off", **options), first_words=first_words)
    rig.replies.append(LONG)
    rig.transcripts.append("Hello.")
    rig.hear(1000)
    rig.quiet(700)
    rig.auto = set(auto)
    rig.events.clear()
    return rig


def heard_of_answer(rig: Rig) -> str:
    """What the conversation keeps of the first answer."""
    (first, *_) = [e for e in rig.session._core.conversation.entries if e.spoken is not None]
    assert first.spoken is not None
    return first.spoken.heard


# Where the server paces the sound


def test_the_sound_is_held_as_soon_as_somebody_may_be_speaking() -> None:
    rig = answering(paced_output=True)
    began = rig.now
    rig.hear(150)
    ((at, held),) = rig.holds
    assert held and at - began <= 0.150
    assert rig.events == [], "no event tells of a suspicion"


def test_a_confirmed_interruption_ends_the_answer_before_the_hold() -> None:
    rig = answering(paced_output=True)
    rig.hear(500)
    assert [held for _, held in rig.holds] == [True, False]
    assert rig.types()[0] == "input_audio_buffer.speech_started"
    assert "output_audio_buffer.cleared" in rig.types()


def test_what_was_not_confirmed_goes_on_where_it_was_held() -> None:
    rig = answering(paced_output=True)
    rig.transcripts.append("mm-hmm")
    ends_at = rig.session._core.playback.ends_at
    rig.hear(200)
    rig.quiet(300)
    (_, (released, held)) = rig.holds
    assert not held and rig.events == []
    held_s = released - rig.holds[0][0]
    assert rig.session._core.playback.ends_at == pytest.approx(ends_at + held_s)
    rig.quiet(1000)
    assert rig.events == [] and len(rig.holds) == 2


def test_nothing_is_heard_while_it_is_held() -> None:
    rig = answering(("vad", "llm", "tts"), paced_output=True)
    rig.hear(200)
    item = rig.session._core.conversation.last_id
    assert item is not None
    before = rig.session._core.playback.heard_ms(item, rig.now)
    rig.quiet(2000)  # STT is slow
    assert rig.session._core.playback.heard_ms(item, rig.now) == before
    rig.answer("stt", SttResult("Stop."))
    assert rig.types()[0] == "input_audio_buffer.speech_started"
    assert rig.session._core.playback.heard_ms(item, rig.now) == before


def test_each_burst_of_speech_is_held_anew() -> None:
    rig = answering(paced_output=True)
    rig.transcripts.extend(["mm", "mm mm"])
    rig.hear(200)
    rig.quiet(250)
    rig.hear(200)
    rig.quiet(700)
    assert [held for _, held in rig.holds] == [True, False, True, False]
    assert rig.events == []


def test_a_clear_lets_go() -> None:
    rig = answering(paced_output=True)
    rig.hear(200)
    rig.send(ev.InputAudioBufferClear())
    assert [held for _, held in rig.holds] == [True, False]


def test_turning_detection_off_lets_go() -> None:
    rig = answering(paced_output=True)
    rig.hear(200)
    rig.manual()
    assert [held for _, held in rig.holds] == [True, False]


def test_a_client_that_holds_the_sound_itself_is_told_nothing() -> None:
    rig = answering()
    rig.hear(200)
    assert rig.holds == []


def test_a_held_clock_stands_still() -> None:
    clock = PlaybackClock()
    clock.queue("a", 1.0, 0.0)
    clock.queue("b", 1.0, 0.0)
    clock.hold(0.4)
    assert clock.heard_ms("a", 5.0) == 400 and clock.playing(5.0) and clock.remaining_s(5.0) == 1.6
    clock.queue("b", 0.5, 5.0)
    clock.release(5.0)
    clock.release(6.0)
    assert clock.ends_at == pytest.approx(7.1)
    assert clock.heard_ms("a", 5.3) == 700 and clock.heard_ms("b", 5.7) == 100
    clock.hold(5.7)
    clock.cut(9.0)
    assert clock.heard_ms("b", 99.0) == 100 and not clock.held


# The trade-off


@pytest.mark.parametrize(("barge_in_ms", "speech_ms"), [(200, 250), (450, 500), (800, 850)])
def test_how_long_speech_must_last_is_one_setting(barge_in_ms: int, speech_ms: int) -> None:
    rig = answering(pace=Pace(barge_in_ms=barge_in_ms))
    rig.hear(barge_in_ms - 50)
    assert rig.events == []
    rig.hear(speech_ms - barge_in_ms + 50)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


# Its first words


def test_first_words_that_want_the_floor_interrupt_before_speech_has_lasted() -> None:
    rig = answering(first_words=True)
    rig.transcripts.append(SttResult("Stop", logprob=-0.4))
    rig.hear(350)
    assert rig.types()[0] == "input_audio_buffer.speech_started"
    assert len(heard_of_answer(rig)) < len(LONG) / 2


@pytest.mark.parametrize(
    "said",
    [
        SttResult("Yeah.", logprob=-0.4),
        SttResult("Mayhem", logprob=-1.2),
        SttResult("", rejected="no_speech"),
        SttResult("This is a", logprob=-0.2),
    ],
    ids=["backchannel", "hardly understood", "no words", "the machine's own"],
)
def test_first_words_that_are_no_reason_to_stop_must_last_twice_as_long(said: SttResult) -> None:
    rig = answering(first_words=True)
    rig.transcripts.extend([said] * 9)
    rig.hear(850)
    assert rig.events == []
    rig.hear(150)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


def test_first_words_that_a_backchannel_may_be_mistaken_for_must_last() -> None:
    rig = answering(first_words=True)
    rig.transcripts.extend([SttResult("Emmett", logprob=-0.5)] * 4)
    rig.hear(430)
    assert rig.events == []
    rig.hear(70)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


@pytest.mark.parametrize(
    ("said", "speech_ms", "interrupts"),
    [("Emmett", 400, False), ("Next", 480, True), ("Wait", 300, True), ("Right, right", 400, False)],
)
def test_a_burst_interrupts_by_its_words_or_by_its_words_and_length(
    said: str, speech_ms: int, interrupts: bool
) -> None:
    rig = answering(pace=Pace(barge_in_ms=470))
    rig.transcripts.append(SttResult(said, logprob=-0.5))
    rig.hear(speech_ms)
    rig.quiet(700)
    assert ("input_audio_buffer.speech_started" in rig.types()) is interrupts


def test_a_burst_that_was_hardly_understood_is_no_interruption() -> None:
    rig = answering()
    rig.transcripts.append(SttResult("Em", logprob=-1.2))
    rig.hear(300)
    rig.quiet(700)
    assert rig.events == []


def test_words_that_become_clear_interrupt_then() -> None:
    rig = answering(first_words=True)
    rig.transcripts.extend([SttResult("Hm", logprob=-1.2), SttResult("Hold on", logprob=-0.5)])
    rig.hear(300)
    assert rig.events == []
    rig.hear(100)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


def test_where_stt_says_nothing_in_time_speech_that_lasts_interrupts() -> None:
    rig = answering(auto=("vad", "turn", "llm", "tts"), first_words=True)
    rig.hear(430)
    assert rig.events == []
    rig.hear(70)
    assert rig.types()[0] == "input_audio_buffer.speech_started"
    assert any(generation.startswith("first-words-") for generation in rig.cancelled)


def test_doubtful_sound_does_not_make_speech_last() -> None:
    rig = answering()
    rig.hear(400)
    rig.speech_probability = 0.4
    rig.hear(300)
    assert rig.events == []
    rig.speech_probability = 0.95
    rig.hear(64)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


def test_where_the_endpoint_comes_before_the_pause_is_seen_the_words_are_heard_then() -> None:
    rig = answering(pace=Pace(pause_ms=700))
    rig.transcripts.append("Stop.")
    rig.hear(200)
    rig.quiet(600)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


# An answer that was cut for nothing


def test_an_answer_that_noise_has_cut_goes_on_with_what_was_not_heard() -> None:
    rig = answering()
    rig.transcripts.append(SttResult("", rejected="no_speech"))
    rig.hear(600)
    heard = heard_of_answer(rig)
    assert LONG.startswith(heard) and heard != LONG
    rig.quiet(700)
    assert rig.done().status == "completed"
    (item,) = rig.done().output
    assert f"{heard} {item.content[0].transcript}" == LONG
    assert len(rig.prompts()) == 1, "the model had written all of it"
    assert rig.done().usage.total_tokens == 0, "and the response that was cut has counted it"


def test_what_the_model_had_not_written_it_writes_then() -> None:
    rig = Rig(SessionDefaults(speculation="off"), auto=("vad", "tts"))
    rig.hear(1000)
    rig.quiet(600)
    rig.answer("stt", SttResult("Tell me."))
    rig.give(rig.waiting("llm")[0], LlmText("Once there was a lighthouse. "), LlmText("It sto"))
    rig.quiet(500)
    rig.hear(600)
    heard = heard_of_answer(rig)
    assert rig.done().status == "cancelled" and heard
    rig.quiet(600)
    rig.answer("stt", SttResult("Mm-hmm."))
    (llm,) = rig.waiting("llm")
    request: Any = llm.request
    assert request.delivered == "Once there was a lighthouse. It sto"
    assert told(request)[1:] == [("user", "Tell me.")]
    assert rig.done().usage.output_tokens == 2
    rig.give(llm, LlmText("od on a rock."), LlmDone("stop", 1, 0, 4))
    assert rig.done().status == "completed"
    assert (rig.done().usage.input_tokens, rig.done().usage.output_tokens) == (1, 2), (
        "of 4, 2 were counted before"
    )
    rest = rig.done().output[0].content[0].transcript
    assert f"{heard} {rest}" == "Once there was a lighthouse. It stood on a rock."


def test_words_that_cut_an_answer_are_answered() -> None:
    rig = answering()
    rig.transcripts.append("Stop it.")
    rig.hear(600)
    rig.quiet(700)
    assert told(rig.prompts()[-1])[-1] == ("user", "Stop it.")
    assert len(rig.prompts()) == 2


def test_what_was_cut_is_not_said_after_another_answer() -> None:
    rig = answering()
    rig.transcripts.extend(["Stop it.", SttResult("", rejected="no_speech")])
    rig.replies.append("Fine.")
    rig.hear(600)
    rig.quiet(3000)
    assert len(rig.prompts()) == 2
    rig.hear(600)
    rig.quiet(700)
    assert len(rig.prompts()) == 2 and len(rig.of(ev.ResponseCreated)) == 1


@pytest.mark.parametrize("why", ["setting", "create_response", "draining"])
def test_an_answer_does_not_go_on_where_none_is_wanted(why: str) -> None:
    rig = answering(resume_answers=why != "setting")
    if why == "create_response":
        rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    rig.transcripts.append(SttResult("", rejected="no_speech"))
    rig.hear(600)
    if why == "draining":
        rig.session._answers.draining = True
    rig.quiet(700)
    assert not rig.of(ev.ResponseCreated)


def test_function_calls_are_not_made_twice() -> None:
    from tests.orchestration.session.session_rig import call

    rig = Rig(SessionDefaults(speculation="off"))
    rig.update(tools=[{"type": "function", "name": "clock", "parameters": {"type": "object"}}])
    rig.replies.append([LlmText(LONG), call("clock"), LlmDone("tool_calls")])
    rig.transcripts.extend(["Hello.", SttResult("", rejected="no_speech")])
    rig.hear(1000)
    rig.quiet(700)
    rig.hear(600)
    rig.quiet(700)
    assert len(rig.of(ev.FunctionCallArgumentsDone)) == 1 and len(rig.of(ev.ResponseCreated)) == 1


# The machine's own echo


def test_the_machines_own_words_are_no_turn_and_do_not_interrupt_again() -> None:
    rig = answering()
    rig.transcripts.append("this is a long answer that")
    rig.quiet(500)
    rig.hear(600)
    assert rig.types()[0] == "input_audio_buffer.speech_started", "once"
    rig.quiet(700)
    assert rig.session.timeline.turns[-1].transcript == ""
    assert len(rig.prompts()) == 1, "it is not answered"
    assert rig.done().status == "completed", "the answer went on"
    rig.events.clear()
    rig.transcripts.extend(["goes on and on"] * 9)
    rig.hear(900)
    assert rig.events == []


def test_who_speaks_over_an_echo_is_heard_by_the_words() -> None:
    rig = answering()
    rig.session._core.echoes = True
    rig.transcripts.extend(["this is a long", "Stop that please, I have another question."])
    rig.hear(900)
    assert rig.events == []
    rig.hear(900)
    assert rig.types()[0] == "input_audio_buffer.speech_started"
    assert [s.request.interim for s in rig.requests if s.request.stage == "stt"][1:] == [True, True]


def test_nothing_is_held_where_the_machine_hears_itself() -> None:
    rig = answering(paced_output=True)
    rig.session._core.echoes = True
    rig.hear(400)
    assert rig.holds == []


def test_the_same_words_by_a_person_who_is_not_speaking_over_them_are_a_turn() -> None:
    rig = answering()
    rig.quiet(5000)
    rig.transcripts.append("this is a long answer that goes on")
    rig.hear(900)
    rig.quiet(700)
    assert told(rig.prompts()[-1])[-1] == ("user", "this is a long answer that goes on")
