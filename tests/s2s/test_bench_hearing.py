"""What counts as a clause that is missing, or said twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s.bench.hearing import align, compare

STORY = [
    ["once", "there", "was", "an", "old", "ship"],
    ["it", "crossed", "the", "northern", "sea"],
    ["and", "nobody", "ever", "saw", "it", "again"],
]
ALL = [word for clause in STORY for word in clause]
WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


def test_what_was_heard_whole_has_no_faults() -> None:
    heard = compare(STORY, ALL)
    assert (heard.wer, heard.missing, heard.doubled) == (0.0, (), ())


@pytest.mark.parametrize("lost", range(3))
def test_a_clause_that_was_not_said_is_missing(lost: int) -> None:
    rest = [word for clause in STORY if clause is not STORY[lost] for word in clause]
    heard = compare(STORY, rest)
    assert heard.missing == (" ".join(STORY[lost]),)
    assert heard.doubled == ()


@pytest.mark.parametrize("twice", range(3))
def test_a_clause_that_was_said_twice_is_doubled(twice: int) -> None:
    words = [word for clause in STORY for word in clause * (2 if clause is STORY[twice] else 1)]
    heard = compare(STORY, words)
    assert heard.doubled == (" ".join(STORY[twice]),)
    assert heard.missing == ()


def test_half_a_clause_twice_is_doubled_too() -> None:
    words = [*STORY[0][:4], *ALL]
    assert compare(STORY, words).doubled == (" ".join(STORY[0]),)


def test_misheard_words_are_errors_and_no_missing_clause() -> None:
    words = ["shop" if word == "ship" else word for word in ALL]
    heard = compare(STORY, words)
    assert heard.wer == pytest.approx(1 / len(ALL))
    assert (heard.missing, heard.doubled) == ((), ())


def test_a_clause_that_the_answer_itself_repeats_is_not_doubled() -> None:
    assert compare([STORY[0], STORY[0]], STORY[0] * 2).doubled == ()


def test_a_word_of_its_own_counts_with_its_neighbours() -> None:
    assert compare([["yes"], *STORY], ALL).missing == ()


@given(WORDS, WORDS)
def test_an_alignment_uses_every_word_once_and_in_order(said: list[str], heard: list[str]) -> None:
    pairs = align(said, heard)
    assert [mine for mine, _ in pairs if mine is not None] == list(range(len(said)))
    assert [other for _, other in pairs if other is not None] == list(range(len(heard)))


@given(WORDS, WORDS)
def test_as_many_errors_as_jiwer_counts(said: list[str], heard: list[str]) -> None:
    import jiwer

    if not said:
        return
    assert compare([said], heard).wer == pytest.approx(jiwer.wer(" ".join(said), " ".join(heard)))
