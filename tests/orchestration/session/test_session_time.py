"""What time does to a session: idle time-outs, playback, limits, draining."""

from __future__ import annotations

from orchestration.session import events as ev
from orchestration.session.config import Limits, SessionDefaults, StageTimeouts
from orchestration.session.playback import PlaybackClock
from tests.orchestration.session.session_rig import Rig


def idle_rig() -> Rig:
    rig = Rig()
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}})
    return rig


def test_after_a_silence_the_machine_speaks_first() -> None:
    rig = idle_rig()
    rig.wait(60)
    assert not rig.of(ev.InputAudioBufferTimeoutTriggered), "there was no answer yet"
    rig.hear(1000)
    rig.quiet(700)
    rig.events.clear()
    rig.quiet(6000)  # the answer plays 1.35 s
    assert rig.events == []
    rig.quiet(500)
    assert rig.types()[:5] == [
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    timeout = rig.events[0]
    assert timeout.audio_end_ms - timeout.audio_start_ms > 6000
    assert [role for role, _ in [(m.role, m.text) for m in rig.prompts()[-1].messages]] == [
        "system",
        "user",
        "assistant",
    ]


def test_an_idle_time_out_counts_from_when_it_is_set() -> None:
    rig = Rig()
    rig.create()
    rig.wait(60)
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}})
    rig.wait(4)
    assert not rig.of(ev.InputAudioBufferTimeoutTriggered)
    rig.wait(1)
    assert rig.of(ev.InputAudioBufferTimeoutTriggered)


def test_speech_puts_the_idle_time_out_off() -> None:
    rig = idle_rig()
    rig.create()
    rig.wait(5)
    rig.hear(3000)
    assert not rig.of(ev.InputAudioBufferTimeoutTriggered)
    rig = idle_rig()
    rig.auto.remove("llm")
    rig.create()
    rig.wait(20)
    assert not rig.of(ev.InputAudioBufferTimeoutTriggered), "a response is running"


def test_a_session_ends_at_its_limit() -> None:
    rig = Rig(SessionDefaults(limits=Limits(session_s=60)), auto=("vad", "stt"))
    rig.create()
    rig.wait(59)
    assert rig.closed is None
    rig.wait(1)
    assert (rig.errors(), rig.closed) == (["session_expired"], "expired")
    assert rig.session.result(1, None, rig.now) == []  # type: ignore[arg-type]


def test_a_session_without_events_ends_where_the_server_says_so() -> None:
    rig = Rig(SessionDefaults(limits=Limits(None, idle_s=30)))
    rig.wait(29)
    rig.write("Hello")
    rig.wait(29)
    assert rig.closed is None
    rig.wait(1)
    assert (rig.errors(), rig.closed) == (["session_idle"], "idle")
    assert rig.write("Hello?") == []


def test_draining_lets_the_running_answer_out_and_begins_nothing_new() -> None:
    rig = Rig(auto=("vad", "stt", "tts"))
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", "interrupt_response": False}}})
    rig.create()
    rig.do(rig.session.drain(rig.now))
    rig.create(conversation="none")
    assert rig.errors() == ["server_draining"] and rig.closed is None
    rig.hear(1000)
    rig.quiet(700)
    assert len(rig.prompts()) == 1
    rig.answer("llm")
    assert rig.closed == "drained"


def test_draining_an_idle_session_closes_it() -> None:
    rig = Rig()
    rig.do(rig.session.drain(rig.now))
    assert rig.closed == "drained"


def test_the_input_buffer_has_its_limit() -> None:
    rig = Rig(SessionDefaults(limits=Limits(buffered_audio_s=2)))
    rig.manual()
    rig.hear(2000, chunk_ms=1000)
    rig.hear(20)
    assert rig.errors() == ["input_audio_buffer_full"]
    rig.commit()
    rig.hear(20)
    assert len(rig.errors()) == 1


def test_a_stage_that_works_on_is_not_late() -> None:
    from actors.messages import LlmText

    rig = Rig(SessionDefaults(timeouts=StageTimeouts(llm_s=5)), auto=("tts",))
    rig.create()
    for _ in range(4):
        rig.wait(4)
        rig.give(rig.waiting("llm")[0], LlmText("It "))
    assert not rig.of(ev.ResponseDone)
    rig.wait(5)
    assert rig.done().status == "failed"


def test_two_requests_late_at_once() -> None:
    rig = Rig(SessionDefaults(timeouts=StageTimeouts(tts_s=5, llm_s=20)), auto=())
    rig.create()
    rig.create(conversation="none")
    rig.wait(30)
    assert [event.response.status for event in rig.of(ev.ResponseDone)] == ["failed", "failed"]


def paced() -> Rig:
    return Rig(SessionDefaults(paced_output=True))


def test_a_paced_transport_is_told_when_sound_starts_and_stops() -> None:
    rig = paced()
    rig.create()
    kinds = [
        kind for kind in rig.types() if kind.startswith("output_audio_buffer") or kind == "response.done"
    ]
    assert kinds == ["output_audio_buffer.started", "response.done"]
    rig.wait(1.3)
    assert not rig.of(ev.OutputAudioBufferStopped)
    rig.wait(0.1)
    assert rig.of(ev.OutputAudioBufferStopped)[0].response_id == rig.done().id
    rig.wait(10)
    assert len(rig.of(ev.OutputAudioBufferStopped)) == 1


def test_a_new_answers_sound_ends_that_of_the_one_before() -> None:
    rig = paced()
    rig.create()
    rig.create()
    kinds = [kind for kind in rig.types() if kind.startswith("output_audio_buffer")]
    assert kinds == [
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
        "output_audio_buffer.started",
    ]


def test_clearing_the_output_of_a_paced_transport() -> None:
    rig = paced()
    rig.create()
    rig.wait(0.3)
    assert rig.types(rig.send(ev.OutputAudioBufferClear())) == ["output_audio_buffer.cleared"]
    rig.write("And?")
    rig.create()
    assert rig.prompts()[-1].messages[1].text == "It"
    rig.send(ev.OutputAudioBufferClear())
    assert rig.send(ev.OutputAudioBufferClear()) == []


def test_elsewhere_the_client_holds_the_sound() -> None:
    rig = Rig()
    rig.send(ev.OutputAudioBufferClear())
    assert rig.errors() == ["invalid_request"]


def test_barge_in_clears_a_paced_output_before_the_response_ends() -> None:
    rig = paced()
    rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
    rig.hear(1000)
    rig.quiet(700)
    rig.hear(1000)
    assert "output_audio_buffer.cleared" in rig.types()


def test_playback_goes_on_where_it_was_and_forgets_what_was_cut() -> None:
    clock = PlaybackClock()
    clock.queue("a", 1.0, 0.0)
    clock.queue("a", 1.0, 0.5)
    clock.queue("b", 1.0, 1.0)
    clock.queue("a", 1.0, 9.0)
    assert (clock.heard_ms("a", 1.5), clock.heard_ms("b", 2.5), clock.heard_ms("a", 9.5)) == (1500, 500, 2500)
    assert clock.unheard_items(1.0) == ["a", "b"]
    assert clock.remaining_s(9.25) == 0.75
    clock.cut(2.5)
    assert not clock.playing(2.5) and clock.heard_ms("b", 99.0) == 500
