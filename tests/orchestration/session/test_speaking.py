"""How an answer is spoken: the odd ways."""

from __future__ import annotations

from random import Random

from actors.messages import LlmDone, LlmText
from orchestration.session import events as ev
from orchestration.session import items
from orchestration.session.config import SessionDefaults, StageTimeouts
from tests.orchestration.session.session_rig import MS_PER_CHARACTER, Rig, call, told


def test_a_clause_that_comes_late_is_cut_when_the_sound_runs_out() -> None:
    rig = Rig(auto=("vad", "stt", "tts"))
    rig.create()
    (llm,) = rig.waiting("llm")
    rig.give(llm, LlmText("Well then. "))
    assert rig.spoken() == ["Well then."]  # 0.5 s of sound
    rig.give(llm, LlmText("let me see what we have here and "))
    assert len(rig.spoken()) == 1
    rig.wait(0.5)
    assert rig.spoken()[1].startswith("let me see")
    rig.give(llm, LlmText("what is there "), LlmDone("stop"))
    assert " ".join(rig.spoken()) == "Well then. let me see what we have here and what is there"
    assert rig.done().status == "completed"


def test_text_that_comes_after_the_sound_ran_out_is_cut_at_once() -> None:
    rig = Rig(auto=("vad", "stt", "tts"))
    rig.create()
    (llm,) = rig.waiting("llm")
    rig.give(llm, LlmText("Well then. "))
    rig.wait(3)
    rig.give(llm, LlmText("let me see what "))
    assert len(rig.spoken()) == 2


def test_a_clause_asked_for_after_a_later_one_is_done() -> None:
    rig = Rig(auto=("vad", "stt"))
    rig.create()
    (llm,) = rig.waiting("llm")
    rig.give(llm, LlmText("One two three four. Five six seven eight nine ten eleven. "))
    first, second = rig.waiting("tts")
    rig.finish(second)
    rig.give(llm, LlmText("And this is the last of them all, my friend."), LlmDone("stop"))
    third = rig.waiting("tts")[-1]
    assert third.due_in_s < second.due_in_s + 0.1
    rig.finish(third)
    rig.finish(first)
    assert rig.done().status == "completed"


def test_two_clauses_late_at_once_fail_the_answer_once() -> None:
    rig = Rig(SessionDefaults(timeouts=StageTimeouts(tts_s=5)), auto=("llm",))
    rig.create()
    rig.now += 20
    rig.do(rig.session.tick(rig.now))
    assert len(rig.of(ev.ResponseDone)) == 1 and rig.done().status == "failed"


def test_a_call_out_of_band_is_no_item_of_the_conversation() -> None:
    rig = Rig()
    rig.update(tools=[{"type": "function", "name": "clock"}])
    rig.replies.append([LlmText("Hm. "), call("clock"), LlmDone("tool_calls")])
    rig.create(conversation="none")
    assert [type(item) for item in rig.done().output] == [items.MessageItem, items.FunctionCallItem]
    assert not rig.of(ev.ConversationItemAdded)


def test_speech_stops_a_written_answer_too() -> None:
    rig = Rig(auto=("vad", "stt"))
    rig.update(output_modalities=["text"])
    rig.create()
    rig.give(rig.waiting("llm")[0], LlmText("It is"))
    rig.hear(1000)
    assert rig.done().status_details.reason == "turn_detected"
    rig.quiet(700)
    assert told(rig.prompts()[-1])[1] == ("assistant", "It is")


def test_an_answer_may_refer_to_what_was_said() -> None:
    rig = Rig()
    rig.hear(1000)
    rig.quiet(700)
    spoken = rig.of(ev.InputAudioBufferCommitted)[0].item_id
    rig.create(conversation="none", input=[items.ItemReference(spoken)])
    assert told(rig.prompts()[-1])[1:] == [("user", "Hello there.")]


def test_an_answer_that_was_deleted_while_it_plays_is_simply_gone() -> None:
    rig = Rig()
    rig.create()
    rig.send(ev.ConversationItemDelete(item_id=rig.done().output[0].id))
    rig.hear(1000)
    rig.quiet(700)
    assert [role for role, _ in told(rig.prompts()[-1])] == ["system", "user"]


def test_calls_are_retrieved_as_they_are() -> None:
    rig = Rig()
    rig.update(tools=[{"type": "function", "name": "clock"}])
    rig.replies.append([call("clock", '{"zone": "UTC"}'), LlmDone("tool_calls")])
    rig.create()
    (retrieved,) = rig.send(ev.ConversationItemRetrieve(item_id=rig.done().output[0].id))
    assert retrieved.item.arguments == '{"zone": "UTC"}'


def test_twenty_turns_with_interruptions_at_random_moments_keep_what_was_heard() -> None:
    rig = Rig()
    random = Random(7)
    answer = "The first thing that you should know is this. The second thing is rather longer than that one."
    heard: list[str] = []
    sent_at = 0.0
    for turn in range(20):
        rig.replies.append(answer)
        rig.transcripts.append(f"Question {turn}.")
        starts = len(rig.of(ev.InputAudioBufferSpeechStarted))
        while len(rig.of(ev.InputAudioBufferSpeechStarted)) == starts:
            rig.hear(20)
        if turn:
            characters = (rig.now - sent_at) * 1000 / MS_PER_CHARACTER
            kept = told_now(rig)
            assert answer.startswith(kept)
            between = sum(0 < answer.find(clause) < len(kept) for clause in set(rig.spoken()))
            spoken = len(kept) - between  # nobody speaks the space between two clauses
            assert characters - 10 < spoken <= characters + 1, "at most one word less, and none more"
            heard.append(kept)
        rig.hear(600)
        before = len(rig.of(ev.ResponseAudioDelta))
        while len(rig.of(ev.ResponseAudioDelta)) == before:
            rig.quiet(20)
        sent_at = rig.now
        rig.wait(random.uniform(0.1, 4.0))
    said = [text for role, text in told(rig.prompts()[-1]) if role == "assistant"]
    assert said == [text for text in heard if text]


def told_now(rig: Rig) -> str:
    """What the item of the last answer says now."""
    item_id = rig.done().output[0].id
    (event,) = rig.send(ev.ConversationItemRetrieve(item_id=item_id))
    return str(event.item.content[0].transcript).rstrip()


def test_the_first_clause_is_short_and_the_next_ones_grow() -> None:
    rig = Rig()
    rig.replies.append(" ".join(["every word of this sentence comes without a mark"] * 6) + ".")
    rig.create()
    first, second, *_ = rig.spoken()
    assert len(first) <= 20 < len(second) <= 40
