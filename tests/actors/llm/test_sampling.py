"""Choosing a token, and its text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.llm.sampling import BROKEN, TextPieces, next_token

SCORES = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))


def choose(scores: np.ndarray = SCORES, recent: list[int] | None = None, **given_settings: float) -> int:
    settings = {
        "temperature": 1.0,
        "top_p": 1.0,
        "repeat_penalty": 1.0,
        "seed": 0,
        "position": 0,
        **given_settings,
    }
    return next_token(scores, recent or [], **settings)  # type: ignore[arg-type]


def test_at_temperature_0_the_likeliest_wins() -> None:
    assert {choose(temperature=0, seed=seed) for seed in range(20)} == {0}


def test_a_draw_depends_on_seed_and_position_alone() -> None:
    assert [choose(seed=3, position=p) for p in range(30)] == [choose(seed=3, position=p) for p in range(30)]
    assert len({choose(seed=3, position=p) for p in range(30)}) > 1


def test_draws_follow_the_probabilities() -> None:
    drawn = np.bincount([choose(position=p) for p in range(4000)], minlength=4) / 4000
    assert np.abs(drawn - np.exp(SCORES)).max() < 0.03


def test_top_p_leaves_the_unlikely_out() -> None:
    assert {choose(position=p, top_p=0.75) for p in range(300)} == {0, 1}


def test_forbidden_tokens_are_never_drawn() -> None:
    scores = np.array([-np.inf, -np.inf, 0.0, -np.inf], dtype=np.float32)
    assert {choose(scores, position=p) for p in range(50)} == {2}


def test_what_was_just_said_is_less_likely() -> None:
    scores = np.array([2.0, 1.9, -1.0], dtype=np.float32)
    assert choose(scores, [0], temperature=0, repeat_penalty=1.1) == 1
    assert choose(scores, [0, *[2] * 64], temperature=0, repeat_penalty=1.1) == 0
    assert scores[0] == 2.0


def decode(ids: list[int]) -> str:
    return bytes(ids).decode("utf-8", errors="replace")


@given(st.text(max_size=20))
def test_pieces_are_whole_characters_and_make_the_text(text: str) -> None:
    text = text.replace(BROKEN, "")
    pieces = TextPieces(decode, list(b"before: "))
    shown = [pieces.push(byte) for byte in text.encode()]
    assert "".join(shown) == text
    assert not any(BROKEN in piece for piece in shown)


@given(st.lists(st.integers(0, 255), max_size=40))
def test_bytes_that_are_no_text_never_show(junk: list[int]) -> None:
    pieces = TextPieces(decode, [])
    assert not any(BROKEN in pieces.push(byte) for byte in junk)
