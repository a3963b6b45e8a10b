"""The rules that clients rely on, 11 to 20, by number (the model-dependent and socket parts are tested end to end)."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import Failed, LlmDone, LlmText, TtsDone
from orchestration.session import events as ev
from orchestration.session.config import Limits, SessionDefaults, StageTimeouts
from orchestration.session.items import FunctionCallOutputItem
from tests.orchestration.session.session_rig import Rig, call, told

CLOCK = {
    "type": "function",
    "name": "clock",
    "description": "The time.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
}


def a_spoken_turn(rig: Rig) -> None:
    rig.hear(1000)
    rig.quiet(700)


def detect(rig: Rig, **detection: Any) -> None:
    rig.update(audio={"input": {"turn_detection": {"type": "server_vad", **detection}}})


def test_rule_11_a_full_answer_is_incomplete() -> None:
    rig = Rig()
    rig.replies.append([LlmText("This is too"), LlmDone("length", 7, 0, 3)])
    rig.create(max_output_tokens=3)
    response = rig.done()
    assert (response.status, response.status_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output[0].status == "incomplete"
    assert rig.prompts()[0].max_tokens == 3
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (
        7,
        3,
        10,
    )


def test_rule_11_usage_counts_also_what_a_cancelled_response_said() -> None:
    rig = Rig(auto=())
    rig.create()
    rig.answer("llm", LlmText("It", 1), LlmText(" is", 1))
    rig.send(ev.ResponseCancel())
    assert rig.done().usage.output_tokens == 2


def test_rule_11_filtered_content_is_incomplete() -> None:
    rig = Rig()
    rig.replies.append([LlmDone("content_filter")])
    rig.create()
    assert rig.done().status_details.reason == "content_filter"


def test_rule_12_create_response_false_never_answers_by_itself() -> None:
    rig = Rig()
    detect(rig, create_response=False)
    a_spoken_turn(rig)
    assert rig.types()[-1] == "conversation.item.done"
    rig.create()
    assert told(rig.prompts()[0])[1:] == [("user", "Hello there.")]


def test_rule_12_interrupt_response_false_never_cancels() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    detect(rig, interrupt_response=False)
    a_spoken_turn(rig)
    rig.answer("tts")
    a_spoken_turn(rig)
    assert len(rig.of(ev.InputAudioBufferSpeechStarted)) == 2
    assert not rig.of(ev.ResponseDone)
    rig.answer("tts")
    assert rig.done().status == "completed"
    assert len(rig.of(ev.ResponseCreated)) == 2, "the second turn is answered when the first answer is out"


@pytest.mark.parametrize(("said", "ms"), [("Mm-hmm.", 250), ("yeah", 200), ("", 150)])
def test_rule_13_a_backchannel_does_not_stop_the_answer(said: str, ms: int) -> None:
    rig = Rig()
    rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
    a_spoken_turn(rig)
    rig.events.clear()
    rig.transcripts.append(said)
    rig.hear(ms)
    rig.quiet(1000)
    assert rig.events == []


def test_rule_13_yes_as_an_answer_counts() -> None:
    rig = Rig()
    rig.replies.append("Shall I?")
    a_spoken_turn(rig)
    rig.quiet(1000)
    rig.transcripts.append("Yes.")
    rig.hear(250)
    rig.quiet(700)
    assert told(rig.prompts()[-1])[-1] == ("user", "Yes.")


def test_rule_13_short_words_that_want_the_floor_stop_the_answer() -> None:
    rig = Rig()
    rig.replies.append("This is a long answer that goes on and on for quite some time, as you can hear.")
    a_spoken_turn(rig)
    rig.events.clear()
    rig.transcripts.append("Stop!")
    rig.hear(250)
    rig.quiet(1000)
    assert rig.types()[:3] == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
    ]
    assert told(rig.prompts()[-1])[-1] == ("user", "Stop!")


def test_rule_13_a_pause_inside_a_sentence_is_one_turn() -> None:
    rig = Rig()
    rig.update(audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
    rig.turn_probability = 0.1
    rig.hear(800)
    rig.quiet(900)
    rig.turn_probability = 0.9
    rig.hear(600)
    rig.quiet(600)
    assert len(rig.of(ev.InputAudioBufferCommitted)) == 1
    assert rig.session.timeline.turns[0].audio_ms > 2300


def test_rule_14_parallel_calls_all_run_and_their_results_come_once() -> None:
    rig = Rig()
    rig.update(tools=[CLOCK])
    rig.write("What time is it in Oslo and Rome?")
    rig.replies.append(
        [call("clock", '{"zone": "Oslo"}'), call("clock", '{"zone": "Rome"}'), LlmDone("tool_calls")]
    )
    rig.create()
    calls = rig.done().output
    assert [item.arguments for item in calls] == ['{"zone": "Oslo"}', '{"zone": "Rome"}']
    assert len({item.call_id for item in calls}) == 2
    for item in calls:
        rig.send(ev.ConversationItemCreate(item=FunctionCallOutputItem(item.call_id, '{"time": "12:00"}')))
    rig.create()
    _, user, assistant, *results = rig.prompts()[-1].messages
    assert [tool_call.call_id for tool_call in assistant.tool_calls] == [item.call_id for item in calls]
    assert [(m.role, m.text, m.tool_call_id) for m in results] == [
        ("tool", '{"time": "12:00"}', item.call_id) for item in calls
    ]
    assert user.text.startswith("What time")


def test_rule_14_one_call_only_where_parallel_calls_are_off() -> None:
    rig = Rig()
    rig.update(tools=[CLOCK], parallel_tool_calls=False)
    rig.replies.append([call("clock"), call("clock"), LlmDone("tool_calls")])
    rig.create()
    assert len(rig.done().output) == 1


def test_rule_14_a_forced_function_is_asked_for() -> None:
    rig = Rig()
    rig.update(tools=[CLOCK], tool_choice={"type": "function", "name": "clock"})
    rig.create()
    assert rig.prompts()[0].tool_choice == "function:clock"
    assert rig.prompts()[0].tools[0].parameters == CLOCK["parameters"]
    rig.create(tool_choice="none")
    assert (rig.prompts()[1].tool_choice, rig.prompts()[1].tools) == ("none", [])
    rig.create(tools=[])
    assert rig.prompts()[2].tool_choice == "none"


def test_rule_14_loops_end_in_an_answer() -> None:
    rig = Rig(SessionDefaults(limits=Limits(tool_rounds=2)))
    rig.update(tools=[CLOCK], tool_choice="required")
    rig.write("What time is it?")
    for _ in range(2):
        rig.replies.append([call("clock"), LlmDone("tool_calls")])
        rig.create()
        call_id = rig.done().output[0].call_id
        rig.send(ev.ConversationItemCreate(item=FunctionCallOutputItem(call_id, "12:00")))
    rig.create()
    assert [prompt.tool_choice for prompt in rig.prompts()] == ["required", "required", "none"]
    assert rig.done().output[0].content[0].transcript


def test_rule_14_barge_in_at_a_call_leaves_it_final() -> None:
    rig = Rig(auto=("vad", "stt"))
    rig.update(tools=[CLOCK])
    a_spoken_turn(rig)
    rig.give(rig.waiting("llm")[0], call("clock"))
    rig.hear(1000)
    response = rig.done()
    assert (response.status, response.output[0].status) == ("cancelled", "completed")


def test_rule_14_an_output_without_a_call_is_refused() -> None:
    rig = Rig()
    rig.send(ev.ConversationItemCreate(item=FunctionCallOutputItem("call_none", "12:00")))
    assert rig.errors() == ["invalid_value"]


def test_rule_15_nothing_leaks_between_sessions() -> None:
    one, two = Rig(), Rig()
    one.update(instructions="Be rude.", tools=[CLOCK], audio={"output": {"voice": "onyx"}})
    one.write("My name is Ada.")
    two.create()
    assert told(two.prompts()[0]) == [("system", SessionDefaults().instructions)]
    assert two.prompts()[0].tools == [] and two.done().audio.output.voice == "default"


def test_rule_16_a_disconnect_stops_everything() -> None:
    rig = Rig(auto=("vad", "stt"))
    a_spoken_turn(rig)
    rig.give(rig.waiting("llm")[0], LlmText("It is noon. And so"))
    generations = {submit.generation for submit in rig.open.values()}
    rig.do(rig.session.disconnect(rig.now))
    assert generations <= set(rig.cancelled) and rig.closed == "client"
    assert rig.session.wakeup_at() is None
    assert rig.session.tick(rig.now + 1000) == []
    assert rig.session.disconnect(rig.now) == []


@pytest.mark.parametrize("stage", ["stt", "llm", "tts"])
@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_rule_17_a_failing_or_hanging_stage_fails_the_response_and_no_more(stage: str, how: str) -> None:
    stages = {"vad", "stt", "llm", "tts"} - {stage}
    rig = Rig(SessionDefaults(timeouts=StageTimeouts(stt_s=5, llm_s=5, tts_s=5)), auto=tuple(stages))
    a_spoken_turn(rig)
    if how == "fails":
        rig.answer(stage, Failed(f"{stage}: out of memory"))
    else:
        rig.wait(8)
    response = rig.done()
    assert response.status == "failed"
    assert response.status_details.error.code == f"{stage}_failed"
    assert stage in (response.status_details.error.message or "")
    rig.auto.add(stage)
    rig.quiet(3000)
    a_spoken_turn(rig)
    assert rig.done().status == "completed"


def test_rule_17_a_tts_that_returns_nothing_is_a_failure() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    a_spoken_turn(rig)
    rig.answer("tts", TtsDone(0))
    assert rig.done().status_details.error.code == "tts_failed"


def test_rule_17_a_stage_that_answers_something_else_fails_too() -> None:
    for stage in ("stt", "llm", "tts"):
        rig = Rig(auto=tuple({"vad", "stt", "llm", "tts"} - {stage}))
        a_spoken_turn(rig)
        wrong = LlmDone("stop") if stage != "llm" else TtsDone(1)
        rig.answer(stage, wrong)
        assert rig.done().status_details.error.code == f"{stage}_failed"


def test_rule_17_vad_that_fails_is_said_and_the_next_frames_are_heard() -> None:
    rig = Rig(auto=("stt", "llm", "tts"))
    rig.hear(500)
    rig.answer("vad", Failed("vad: gone"))
    (error,) = rig.of(ev.Error)
    assert (error.error.type, error.error.code) == ("server_error", "vad_failed")
    assert rig.requests[-1].generation == "vad-2"
    rig.auto.add("vad")
    rig.answer("vad")
    a_spoken_turn(rig)
    assert rig.done().status == "completed"


def test_rule_18_markup_and_thoughts_are_not_spoken_and_the_transcript_is_as_written() -> None:
    rig = Rig()
    tokens = ("<thi", "nk>hm</think>**Yes**, ", "5 < 10. ")
    rig.replies.append([*map(LlmText, tokens), LlmDone("stop")])
    rig.create()
    assert rig.done().output[0].content[0].transcript == "**Yes**, 5 < 10. "
    said = " ".join(rig.spoken())
    assert "*" not in said and "hm" not in said and "Yes" in said


def test_rule_18_an_answer_without_a_word_to_speak_is_complete() -> None:
    rig = Rig()
    rig.replies.append("🎉")
    rig.create()
    assert rig.done().status == "completed" and rig.spoken() == []
    assert not rig.of(ev.ResponseAudioDelta)


def test_rule_19_clauses_are_spoken_in_order_whatever_order_their_sound_comes_in() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    rig.replies.append("Dr. Smith paid $3.50. Then he left the shop and went home. Goodbye")
    rig.create()
    clauses = rig.spoken()
    assert "".join(clauses).count("Smith paid") == 1 and clauses[-1].endswith("Goodbye")
    requests = rig.waiting("tts")
    assert len(requests) == 3
    for submit in reversed(requests):
        rig.finish(submit)
    lengths = [len(event.delta) for event in rig.of(ev.ResponseAudioDelta)]
    assert sum(lengths) == sum(len(text) for text in clauses) * 100
    assert rig.done().status == "completed"


def test_rule_19_a_clause_is_due_when_the_sound_before_it_ends() -> None:
    rig = Rig(auto=("vad", "stt", "llm"))
    rig.replies.append("One two three four. Five six seven eight nine ten eleven.")
    rig.create()
    first, second = rig.waiting("tts")
    assert first.due_in_s == 0
    assert 0.9 < second.due_in_s < 1.5


@pytest.mark.parametrize("live", [True, False])
def test_rule_20_a_burst_is_served_the_same_as_a_live_client(live: bool) -> None:
    rig = Rig()
    rig.hear(1000, live=live, chunk_ms=1000)
    rig.quiet(700, live=live, chunk_ms=700)
    started, stopped = rig.of(ev.InputAudioBufferSpeechStarted), rig.of(ev.InputAudioBufferSpeechStopped)
    assert [(a.audio_start_ms, b.audio_end_ms) for a, b in zip(started, stopped, strict=True)] == [(0, 1536)]
    assert rig.done().status == "completed"


def test_rule_20_two_turns_in_one_burst_are_both_heard_and_answered() -> None:
    rig = Rig(auto=("llm", "tts"))
    rig.transcripts.extend(["First.", "Second."])
    for ms, speech in ((1000, True), (700, False), (1000, True), (700, False)):
        rig.hear(ms, speech, live=False, chunk_ms=ms)
    while rig.waiting("vad"):
        rig.answer("vad")
    while rig.waiting("stt"):
        rig.answer("stt")
    assert told(rig.prompts()[-1])[1:] == [("user", "First."), ("user", "Second.")]
    assert rig.done().status == "completed"
