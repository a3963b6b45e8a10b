"""Words while they are being spoken: told once they are stable, never taken back, within a budget."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import Failed, Rank, SttRequest, SttResult
from orchestration.session import events as ev
from orchestration.session.config import SessionDefaults
from orchestration.session.echo import is_echo
from orchestration.session.effects import Submit
from orchestration.session.stable_words import StableWords
from orchestration.session.turns.semantic import is_open
from tests.orchestration.session.session_rig import Rig


def deltas(final: str, *interim: str) -> list[str]:
    words = StableWords()
    told = [*map(words.grow, interim), words.finish(final)]
    assert "".join(told) == words.told
    return told


def test_a_word_is_told_when_two_transcripts_agree_on_it() -> None:
    assert deltas("It was the best of times.", "It was", "It was the", "It was the best of.") == [
        "",
        "It was",
        " the",
        " best of times.",
    ]


def test_marks_and_capitals_do_not_count() -> None:
    assert deltas("Hello there, you.", "hello there.", "Hello, there you") == ["", "Hello, there", " you."]


def test_nothing_is_taken_back_where_the_transcript_changes() -> None:
    assert deltas("I scream now.", "Ice cream", "Ice cream now", "I scream now") == [
        "",
        "Ice cream",
        "",
        " now.",
    ]


def test_the_rest_is_found_behind_what_was_told_wrongly() -> None:
    assert deltas("The cat sat on the mat.", "The cat sad on", "The cat sad on a")[-1] == " the mat."
    assert deltas("Other things entirely now.", "One two", "One two")[-1] == " entirely now."


def test_without_interim_transcripts_all_comes_at_the_end() -> None:
    assert deltas(" As it is.") == [" As it is."]
    assert deltas("") == [""]


def test_nothing_more_is_told_when_all_was() -> None:
    assert deltas("Yes please.", "Yes please", "Yes please") == ["", "Yes please", ""]


@pytest.mark.parametrize(
    ("heard", "said", "echo"),
    [
        ("the weather is fine to day", "Well. The weather is fine today, and", True),
        ("whether is fine today and", "Well. The weather is fine today, and", True),
        ("what is the", "It is a tale of what the sea is to the sailor, and", False),
        ("is fine", "Well. The weather is fine today, and", False),
        ("stop the weather please I have heard it", "Well. The weather is fine today, and", False),
        ("anything at all", "", False),
    ],
)
def test_what_the_machine_says_is_known_when_it_comes_back(heard: str, said: str, echo: bool) -> None:
    assert is_echo(heard, said) is echo


def live(auto: tuple[str, ...] = ("vad", "stt", "llm", "tts"), **options: Any) -> Rig:
    """A session whose client wants words while they are spoken."""
    rig = Rig(SessionDefaults(speculation="off", **options), auto=auto)
    rig.update(audio={"input": {"transcription": {"model": "whisper-1", "delay": "low"}}})
    rig.events.clear()
    return rig


def told_live(rig: Rig) -> list[str]:
    return [event.delta for event in rig.of(ev.InputAudioTranscriptionDelta)]


def test_words_are_told_while_they_are_spoken() -> None:
    rig = live()
    rig.transcripts.extend(["It was", "It was the best", "It was the best of times."])
    rig.hear(1100)
    assert told_live(rig) == ["It was"]
    rig.quiet(700)
    assert told_live(rig) == ["It was", " the best of times."]
    (completed,) = rig.of(ev.InputAudioTranscriptionCompleted)
    assert completed.transcript == "".join(told_live(rig))
    assert {event.item_id for event in rig.of(ev.InputAudioTranscriptionDelta)} == {completed.item_id}
    assert rig.session.timeline.turns[0].transcript == "It was the best of times."


def interim(rig: Rig) -> list[Submit]:
    return [s for s in rig.requests if isinstance(s.request, SttRequest) and s.request.interim]


def test_interim_transcripts_rank_below_all_that_somebody_waits_for() -> None:
    rig = live()
    rig.hear(1100)
    assert {submit.rank for submit in interim(rig)} == {Rank.PARTIAL}
    rig.quiet(700)
    assert [s.rank for s in rig.requests if s.request.stage == "stt"][-1] is Rank.CONFIRMED


def test_interim_transcripts_keep_their_budget() -> None:
    rig = live(auto=("vad",))
    while not interim(rig):
        rig.hear(20)
    first = rig.now
    rig.wait(0.3)
    rig.answer("stt", SttResult("It"))
    while rig.now < first + 0.3 / 0.25 - 0.02:
        rig.hear(20)
    assert len(interim(rig)) == 1
    rig.hear(60)
    assert len(interim(rig)) == 2


def test_without_a_budget_there_are_none() -> None:
    rig = live(partial_share=0.0)
    rig.hear(3000)
    assert interim(rig) == []


def test_who_does_not_ask_for_live_words_pays_nothing() -> None:
    rig = Rig()
    rig.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
    rig.hear(3000)
    assert interim(rig) == []


def test_a_transcription_session_has_live_words() -> None:
    rig = Rig(SessionDefaults(session={"type": "transcription"}))
    rig.transcripts.extend(["One two", "One two three"])
    rig.hear(1100)
    assert told_live(rig) == ["One two"]


def test_the_pause_stops_the_interim_transcript_that_is_running() -> None:
    rig = live(auto=("vad",))
    rig.hear(700)
    (running,) = interim(rig)
    rig.quiet(300)
    assert running.generation in rig.cancelled
    rig.hear(600)
    assert len(interim(rig)) == 2, "the person went on"


def test_interim_transcripts_of_parts_failures_and_rejections_tell_nothing() -> None:
    rig = live(auto=("vad",))
    rig.hear(700)
    rig.answer("stt", SttResult("It", final=False))
    rig.answer("stt", Failed("stt: gone"))
    rig.hear(500)
    rig.answer("stt", SttResult("It", rejected="no_speech"))
    assert told_live(rig) == []


def test_a_commit_by_the_client_keeps_what_was_told() -> None:
    rig = live()
    rig.transcripts.extend(["It was", "It was the", "It was the end."])
    rig.hear(1100)
    rig.commit()
    assert "".join(told_live(rig)) == "It was the end."
    assert rig.of(ev.InputAudioTranscriptionCompleted)[0].transcript == "It was the end."


@pytest.mark.parametrize(
    ("text", "open_end"),
    [
        ("I would like to", True),
        ("My name is, um", True),
        ("Is it yours to?", False),
        ("It is noon.", False),
        ("", False),
    ],
)
def test_a_sentence_that_stops_in_the_middle_is_open(text: str, open_end: bool) -> None:
    assert is_open(text) is open_end


def test_words_that_stop_in_the_middle_keep_a_turn_open_that_sounds_complete() -> None:
    for said, stopped in (("My name is", 0), ("My name is John.", 1)):
        rig = Rig(SessionDefaults(speculation="stt"))
        rig.update(audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
        rig.transcripts.extend([said, "My name is John."])
        rig.turn_probability = 0.9
        rig.hear(1000)
        rig.quiet(1000)
        assert len(rig.of(ev.InputAudioBufferSpeechStopped)) == stopped
