"""When a turn begins, pauses and ends."""

from __future__ import annotations

import pytest

from actors.messages import Failed, SttResult
from orchestration.session import events as ev
from orchestration.session.config import Pace, SemanticVad, ServerVad, SessionDefaults
from orchestration.session.turns import endpointing
from orchestration.session.turns.base import Ended, Paused, Resumed, Signal, Started
from orchestration.session.turns.semantic import WAITS
from orchestration.session.vad_feed import Frame
from tests.orchestration.session.session_rig import Rig


def run(detection: ServerVad | SemanticVad | None, *runs: tuple[float, int], **pace: int) -> list[Signal]:
    """Signals for runs of (probability, frames)."""
    strategy = endpointing(detection, Pace(**pace))
    signals: list[Signal] = []
    at = 0
    for probability, frames in runs:
        for _ in range(frames):
            signals += strategy.frame(Frame(at * 512, probability))
            at += 1
    return signals


def test_three_frames_in_a_row_begin_a_turn() -> None:
    assert run(ServerVad(), (0.9, 2), (0.1, 1), (0.9, 2)) == []
    assert run(ServerVad(), (0.1, 4), (0.9, 3)) == [Started(4 * 512)]


def test_the_threshold_is_the_sessions() -> None:
    assert run(ServerVad(threshold=0.95), (0.9, 9)) == []
    assert run(ServerVad(threshold=0.3), (0.4, 9)) == [Started(0)]


def test_doubtful_frames_neither_end_nor_break_speech() -> None:
    assert run(ServerVad(), (0.9, 3), (0.4, 60)) == [Started(0)]
    assert run(ServerVad(), (0.9, 3), (0.1, 3), (0.4, 20))[-1] == Ended(19 * 512, 3 * 512)


def test_a_click_in_a_pause_is_no_speech() -> None:
    signals = run(ServerVad(), (0.9, 3), (0.1, 8), (0.9, 1), (0.1, 7))
    assert signals == [Started(0), Paused(3 * 512), Ended(19 * 512, 3 * 512)]


def test_speech_ends_a_pause() -> None:
    signals = run(ServerVad(), (0.9, 3), (0.1, 8), (0.9, 2), (0.1, 15))
    assert signals == [Started(0), Paused(3 * 512), Resumed(11 * 512), Paused(13 * 512)]


def test_speech_before_the_pause_is_seen_needs_no_word_of_it() -> None:
    assert run(ServerVad(), (0.9, 3), (0.1, 1), (0.9, 2), pause_ms=64) == [Started(0)]


@pytest.mark.parametrize(("silence_ms", "frames"), [(500, 16), (200, 7), (0, 1)])
def test_the_silence_is_the_sessions(silence_ms: int, frames: int) -> None:
    signals = run(ServerVad(silence_duration_ms=silence_ms), (0.9, 3), (0.1, frames))
    assert signals[-1] == Ended((3 + frames) * 512, 3 * 512)


def test_manual_turns_have_no_signals() -> None:
    strategy = endpointing(None, Pace())
    assert strategy.frame(Frame(0, 1.0)) == [] and strategy.judged(1.0) == []
    assert strategy.said("And then") == []
    strategy.reset()


def test_silence_alone_asks_no_turn_model() -> None:
    assert endpointing(ServerVad(), Pace()).judged(1.0) == []


def semantic(probability: float | None, eagerness: str = "auto", speculation: str = "off") -> Rig:
    rig = Rig(SessionDefaults(speculation=speculation))  # type: ignore[arg-type]
    rig.update(audio={"input": {"turn_detection": {"type": "semantic_vad", "eagerness": eagerness}}})
    if probability is None:
        rig.auto.remove("turn")
    else:
        rig.turn_probability = probability
    return rig


def ends_after_ms(rig: Rig) -> int:
    """How much silence ends the turn."""
    rig.hear(992)
    for ms in range(0, 10_000, 32):
        rig.hear(32, False, chunk_ms=32)
        if rig.of(ev.InputAudioBufferSpeechStopped):
            return ms + 32
    return 10_000


def test_a_complete_turn_ends_soon_and_an_incomplete_one_late() -> None:
    assert ends_after_ms(semantic(0.9, "high")) < 300
    assert ends_after_ms(semantic(0.9)) == WAITS["auto"].complete_ms
    assert 600 < ends_after_ms(semantic(0.9, "low")) < 700
    assert 1900 < ends_after_ms(semantic(0.1, "high")) < 2100
    assert 3900 < ends_after_ms(semantic(0.1)) < 4100


def test_without_the_turn_model_silence_decides() -> None:
    assert 3900 < ends_after_ms(semantic(None)) < 4100
    rig = semantic(None)
    rig.hear(1000)
    rig.quiet(300)
    rig.answer("turn", Failed("turn: gone"))
    rig.quiet(4000)
    assert rig.done().status == "completed"


def test_the_turn_model_is_asked_again_after_a_longer_pause() -> None:
    rig = semantic(0.1)
    rig.hear(1000)
    rig.quiet(250)
    rig.turn_probability = 0.9
    rig.quiet(250)
    assert rig.of(ev.InputAudioBufferSpeechStopped)


def test_a_late_judgement_after_the_person_went_on_counts_no_more() -> None:
    rig = semantic(None)
    rig.hear(1000)
    rig.quiet(300)
    (asked,) = rig.waiting("turn")
    rig.hear(500)
    assert asked.generation in rig.cancelled
    rig.turn_probability = 1.0
    rig.finish(asked)
    rig.quiet(100)
    assert not rig.of(ev.InputAudioBufferSpeechStopped)


def test_the_judgement_that_comes_after_enough_silence_ends_the_turn_at_once() -> None:
    rig = semantic(None)
    rig.hear(1000)
    rig.quiet(415)
    rig.answer("turn")
    assert rig.of(ev.InputAudioBufferSpeechStopped)


def test_the_turn_model_hears_at_most_eight_seconds() -> None:
    rig = semantic(0.9)
    rig.hear(10_000)
    rig.quiet(300)
    (asked,) = [submit.request for submit in rig.requests if submit.request.stage == "turn"]
    assert len(asked.audio) == 8 * 32_000


def test_padding_is_part_of_the_turn() -> None:
    rig = Rig()
    rig.quiet(992)
    rig.hear(1000)
    rig.quiet(700)
    assert rig.of(ev.InputAudioBufferSpeechStarted)[0].audio_start_ms == 992 - 300
    assert (
        rig.session.timeline.turns[0].audio_ms
        == rig.of(ev.InputAudioBufferSpeechStopped)[0].audio_end_ms - 692
    )


def test_clear_forgets_the_turn_that_is_on() -> None:
    rig = Rig(SessionDefaults(speculation="stt"), auto=("vad",))
    rig.hear(1000)
    rig.quiet(300)
    rig.send(ev.InputAudioBufferClear())
    assert rig.cancelled == ["turn-1.1"]
    rig.quiet(1000)
    assert not rig.of(ev.InputAudioBufferCommitted)


def test_a_commit_ends_the_turn_that_is_on_under_its_own_id() -> None:
    rig = Rig()
    rig.hear(1000)
    item_id = rig.of(ev.InputAudioBufferSpeechStarted)[0].item_id
    rig.commit()
    assert rig.of(ev.InputAudioBufferCommitted)[0].item_id == item_id
    rig.quiet(2000)
    assert len(rig.of(ev.InputAudioBufferCommitted)) == 1
    assert not rig.of(ev.ResponseCreated)


def test_turning_detection_off_keeps_the_sound_for_a_commit() -> None:
    rig = Rig()
    rig.hear(1000)
    rig.manual()
    rig.commit()
    assert rig.of(ev.InputAudioBufferCommitted)
    assert rig.session.timeline.turns[-1].audio_ms == 1000


def test_silence_is_not_kept_for_ever() -> None:
    rig = Rig()
    rig.quiet(40_000, chunk_ms=1000)
    rig.commit()
    assert 29_000 < rig.session.timeline.turns[-1].audio_ms < 31_500


def test_a_commit_waits_for_the_frames_on_their_way_and_loses_no_sound() -> None:
    rig = Rig(auto=("stt",))
    rig.manual()
    rig.hear(1000, live=False, chunk_ms=7)
    rig.commit()
    rig.hear(500, live=False)
    assert rig.requests[-1].request.stage != "stt"
    while rig.waiting("vad"):
        rig.answer("vad")
    (stt,) = [submit.request for submit in rig.requests if submit.request.stage == "stt"]
    assert len(stt.audio) == 32_000
    assert rig.session.timeline.turns[0].speech_ms == 1024


def test_speech_over_an_answer_is_announced_when_it_lasts() -> None:
    rig = Rig()
    rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
    rig.hear(1000)
    rig.quiet(700)
    rig.events.clear()
    rig.hear(400)
    assert rig.events == []
    rig.hear(150)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


def test_speech_is_announced_when_the_answer_ends_beneath_it() -> None:
    rig = Rig()
    rig.replies.append("Yes?")
    rig.hear(1000)
    rig.quiet(550)
    rig.events.clear()
    rig.hear(250)
    assert rig.types() == ["input_audio_buffer.speech_started"]


def test_a_backchannel_whose_words_come_late_waits_for_them() -> None:
    rig = Rig(auto=("vad", "llm", "tts"))
    rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
    rig.hear(1000)
    rig.quiet(550)
    rig.answer("stt")
    rig.events.clear()
    rig.hear(250)
    rig.quiet(600)
    (stt,) = rig.waiting("stt")
    assert rig.events == [] and stt.generation in rig.promoted
    rig.hear(200)  # it goes on: the same turn
    assert stt.generation in rig.cancelled
    rig.quiet(600)
    rig.answer("stt", SttResult("Wait."))
    assert rig.types()[:2] == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"]


def test_an_answer_put_off_for_a_turn_without_words_is_given_then() -> None:
    rig = Rig(auto=("vad", "llm", "tts"))
    rig.hear(1000)
    rig.quiet(600)
    (first,) = rig.waiting("stt")
    rig.hear(500)
    rig.finish(first)
    assert not rig.of(ev.ResponseCreated), "somebody is speaking"
    rig.quiet(600)
    rig.answer("stt", SttResult("", rejected="no_speech"))
    assert rig.done().status == "completed"
    assert len(rig.of(ev.ResponseCreated)) == 1


def test_a_yeah_counts_once_the_answer_is_over() -> None:
    rig = Rig()
    rig.replies.append("Shall I go on?")  # 0.7 s
    rig.hear(1000)
    rig.quiet(550)
    rig.quiet(400)
    rig.transcripts.append("Yeah.")
    rig.events.clear()
    rig.hear(200)
    rig.quiet(700)
    assert rig.types()[:2] == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"]


def test_speech_over_an_answer_that_ends_at_once_is_still_asked_for_its_words() -> None:
    for said, kinds in (("Stop!", 2), ("mm-hmm", 0)):
        rig = Rig()
        rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 30}}})
        rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
        rig.hear(1000)
        rig.quiet(100)
        rig.transcripts.append(said)
        rig.events.clear()
        rig.hear(200)
        rig.quiet(200)
        assert len([kind for kind in rig.types() if "speech_st" in kind]) == kinds


def test_where_the_model_hears_only_lasting_speech_interrupts() -> None:
    rig = Rig(SessionDefaults(hears="audio"))
    rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
    rig.hear(1000)
    rig.quiet(550)
    rig.events.clear()
    rig.hear(200)
    rig.quiet(700)
    assert rig.events == []
    rig.hear(600)
    assert rig.types()[0] == "input_audio_buffer.speech_started"


def test_interim_transcripts_are_not_the_transcript() -> None:
    rig = Rig(auto=("vad", "llm", "tts"))
    rig.hear(1000)
    rig.quiet(700)
    rig.answer("stt", SttResult("Hel", final=False), SttResult("Hello.", final=True))
    assert rig.session.timeline.turns[0].transcript == "Hello."


def test_a_cough_before_the_answer_is_heard_does_not_lose_it() -> None:
    rig = Rig(auto=("vad", "tts"))
    rig.hear(1000)
    rig.quiet(600)
    rig.answer("stt", SttResult("What time is it?"))
    rig.hear(200)  # nothing plays yet: it is announced and interrupts
    assert rig.done().status == "cancelled"
    rig.quiet(600)
    rig.answer("stt", SttResult("", rejected="no_speech"))
    rig.answer("llm")
    assert rig.done().status == "completed"
    rig.hear(1000)
    rig.quiet(600)
    rig.answer("stt", SttResult("", rejected="no_speech"))
    assert len(rig.prompts()) == 2, "that one was heard"


@pytest.mark.parametrize(("said", "over"), [("My name is Ada.", True), ("My name is", False)])
def test_a_complete_turn_waits_for_its_words(said: str, over: bool) -> None:
    rig = semantic(1.0, speculation="tts")
    rig.auto.remove("stt")
    rig.hear(600)
    rig.quiet(1000)
    assert "input_audio_buffer.speech_stopped" not in rig.types()
    rig.answer("stt", SttResult(said))
    assert ("input_audio_buffer.speech_stopped" in rig.types()) is over
