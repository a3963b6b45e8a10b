"""Whatever step the early work has come to: the person goes on, somebody cancels, results come late."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import LlmDone, LlmText, SttResult, TtsAudio, TtsDone
from orchestration.session import events as ev
from orchestration.session.config import SessionDefaults
from orchestration.session.effects import Submit
from tests.orchestration.session.session_rig import Rig, told

SOUND = TtsAudio(b"\x07\x00" * 200, 1000)
STEPS = ("stt asked", "llm asked", "first token", "clause asked", "first sound", "clause done", "all done")


def at_step(step: str, speech_ms: int = 1000) -> tuple[Rig, list[Submit]]:
    """A session that has paused for 300 ms and whose early work has come to `step`; its requests so far."""
    rig = Rig(SessionDefaults(speculation="tts"), auto=("vad",))
    rig.hear(speech_ms)
    rig.quiet(300)
    run_to(rig, step, "My name is")
    return rig, [submit for submit in rig.requests if submit.request.stage != "vad"]


def run_to(rig: Rig, step: str, transcript: str) -> None:
    """Let the stages work until `step`."""
    reached = STEPS.index(step)
    if reached >= 1:
        rig.answer("stt", SttResult(transcript))
    if reached >= 2:
        rig.answer("llm", LlmText("It is"))
    if reached >= 3:
        rig.answer("llm", LlmText(" noon. And"))
    if reached >= 4:
        rig.answer("tts", SOUND)
    if reached >= 5:
        rig.answer("tts", TtsDone(200))
    if reached >= 6:
        rig.answer("llm", LlmText(" then."), LlmDone("stop", 1, 0, 4))


def late(rig: Rig, requests: list[Submit]) -> None:
    """What was cancelled brings its results after all: nothing comes of it."""
    for submit in requests:
        for result in rig._script(submit.request):
            assert rig.session.result(submit.work, result, rig.now) == []


def finish(rig: Rig) -> None:
    rig.auto = {"vad", "stt", "llm", "tts"}
    while waiting := [submit for submit in rig.open.values() if submit.request.stage != "vad"]:
        rig.finish(waiting[0])


@pytest.mark.parametrize("step", STEPS)
def test_the_person_goes_on(step: str) -> None:
    rig, early = at_step(step)
    rig.hear(500)
    running = {submit.generation for submit in early} - set(rig.cancelled)
    assert not [s for s in rig.open.values() if s.request.stage != "vad"], running
    assert "response.created" not in rig.types()
    late(rig, early)
    rig.transcripts.append("My name is John Doe.")
    rig.auto = {"vad", "stt", "llm", "tts"}
    rig.quiet(700)
    assert told(rig.prompts()[-1])[1:] == [("user", "My name is John Doe.")]
    (done,) = rig.of(ev.ResponseDone)
    assert done.response.status == "completed"
    assert len(rig.of(ev.InputAudioBufferCommitted)) == 1


@pytest.mark.parametrize("step", STEPS)
def test_the_endpoint_at_each_step_loses_nothing_and_doubles_nothing(step: str) -> None:
    rig, _ = at_step(step)
    assert rig.types() == ["session.created", "input_audio_buffer.speech_started"]
    rig.quiet(300)
    rig.transcripts.append("My name is")
    finish(rig)
    assert len([s for s in rig.requests if s.request.stage == "stt"]) == 1
    assert len(rig.prompts()) == 1
    (done,) = rig.of(ev.ResponseDone)
    assert done.response.status == "completed"
    words = "".join(event.delta for event in rig.of(ev.ResponseAudioTranscriptDelta))
    assert words == done.response.output[0].content[0].transcript
    assert len(rig.spoken()) == len(set(rig.spoken()))


@pytest.mark.parametrize("step", STEPS[:-1])
def test_the_client_cancels_after_the_endpoint(step: str) -> None:
    rig, _ = at_step(step)
    rig.quiet(300)
    if step == "stt asked":
        rig.answer("stt", SttResult("My name is"))
    open_before = [submit for submit in rig.open.values() if submit.request.stage != "vad"]
    rig.send(ev.ResponseCancel())
    (done,) = rig.of(ev.ResponseDone)
    assert done.response.status == "cancelled"
    assert [s for s in rig.open.values() if s.request.stage != "vad"] == []
    count = len(rig.events)
    late(rig, open_before)
    assert len(rig.events) == count
    rig.auto = {"vad", "stt", "llm", "tts"}
    rig.create()
    assert rig.done().status == "completed"


@pytest.mark.parametrize("step", STEPS)
def test_the_client_clears_its_sound(step: str) -> None:
    rig, early = at_step(step)
    rig.send(ev.InputAudioBufferClear())
    assert [s for s in rig.open.values() if s.request.stage != "vad"] == []
    late(rig, early)
    rig.quiet(1000)
    assert not rig.of(ev.InputAudioBufferCommitted) and not rig.of(ev.ResponseCreated)


@pytest.mark.parametrize("step", STEPS)
def test_the_client_is_gone(step: str) -> None:
    rig, early = at_step(step)
    rig.do(rig.session.disconnect(rig.now))
    assert [s for s in rig.open.values() if s.request.stage != "vad"] == []
    late(rig, early)


@pytest.mark.parametrize("step", STEPS[:-1])
def test_the_person_interrupts_after_the_endpoint(step: str) -> None:
    rig, _ = at_step(step)
    rig.quiet(300)
    if step == "stt asked":
        rig.answer("stt", SttResult("My name is"))
    before = [submit for submit in rig.open.values() if submit.request.stage != "vad"]
    rig.hear(600)
    (done,) = rig.of(ev.ResponseDone)
    assert done.response.status == "cancelled"
    count = len(rig.events)
    late(rig, before)
    assert len(rig.events) == count
    rig.transcripts.append("John Doe.")
    rig.auto = {"vad", "stt", "llm", "tts"}
    rig.quiet(700)
    assert told(rig.prompts()[-1])[-1] == ("user", "John Doe.")
    assert rig.done().status == "completed"


@pytest.mark.parametrize("step", STEPS)
def test_resume_and_endpoint_in_one_delivery_of_frames(step: str) -> None:
    rig, early = at_step(step)
    rig.auto = {"stt", "llm", "tts"}
    rig.transcripts.append("All of it.")
    rig.hear(500, live=False, chunk_ms=500)
    rig.quiet(700, live=False, chunk_ms=700)
    while rig.waiting("vad"):
        rig.answer("vad")
    late(rig, early)
    (done,) = rig.of(ev.ResponseDone)
    assert done.response.status == "completed"
    assert told(rig.prompts()[-1])[1:] == [("user", "All of it.")]


def test_two_barge_ins_before_the_first_is_answered() -> None:
    rig = Rig(SessionDefaults(speculation="tts"), auto=("vad", "tts"))
    rig.hear(1000)
    rig.quiet(600)
    rig.answer("stt", SttResult("One."))
    rig.answer("llm", LlmText("A first long answer that goes on. "), LlmText("And on. "))
    for number in ("Two.", "Three."):
        rig.hear(700)
        rig.quiet(600)
        rig.answer("stt", SttResult(number))
    rig.auto.add("llm")
    finish(rig)
    statuses = [event.response.status for event in rig.of(ev.ResponseDone)]
    assert statuses == ["cancelled", "cancelled", "completed"]
    said: list[Any] = [text for role, text in told(rig.prompts()[-1]) if role == "user"]
    assert said == ["One.", "Two.", "Three."]
