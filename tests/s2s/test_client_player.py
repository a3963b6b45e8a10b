"""What the speaker plays, and what of it was heard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s.audio import Pcm16
from s2s.client.player import FADE_S, FIRST_PREBUFFER_S, WIRE_HZ, Cut, Player, first_audible, level_db

BLOCK = 480
BLOCK_S = 0.02


def tone(seconds: float) -> Pcm16:
    """Loud, and never 0."""
    return (np.arange(round(seconds * WIRE_HZ)) % 1000 + 5000).astype(np.int16)


def pull(player: Player, blocks: int, start: float = 0.0) -> Pcm16:
    """`blocks` of 20 ms, one after the other from `start` on."""
    return np.concatenate([player.pull(BLOCK, start + number * BLOCK_S) for number in range(blocks)])


def test_silence_where_there_is_nothing() -> None:
    assert not pull(Player(), 3).any()


def test_items_follow_each_other_without_a_gap() -> None:
    player = Player()
    for name in ("a", "b"):
        player.play(name, tone(0.05).tobytes())
        player.finish(name)
    heard = pull(player, 6)
    assert np.array_equal(heard[: 2 * 1200], np.concatenate([tone(0.05), tone(0.05)]))
    assert not heard[2 * 1200 :].any()


@given(
    pieces=st.lists(st.integers(1, 700), min_size=1, max_size=12),
    blocks=st.lists(st.integers(1, 900), min_size=1, max_size=12),
)
def test_pieces_and_blocks_of_any_length_give_the_same_sound(pieces: list[int], blocks: list[int]) -> None:
    player, start = Player(), 0
    whole = tone(sum(pieces) / WIRE_HZ)
    for length in pieces:
        player.play("a", whole[start : start + length].tobytes())
        start += length
    player.finish("a")
    heard = np.concatenate([player.pull(length, 0.0) for length in blocks])
    expected = np.zeros(len(heard), np.int16)
    expected[: len(whole)] = whole[: len(heard)]
    assert np.array_equal(heard, expected)


def test_an_answer_begins_when_a_little_of_it_is_there() -> None:
    player = Player()
    player.play("a", tone(0.02).tobytes())
    assert not player.pull(BLOCK, 0.0).any()
    player.play("a", tone(FIRST_PREBUFFER_S).tobytes())
    assert player.pull(BLOCK, 0.02).all()


def test_a_little_that_stays_alone_is_played_all_the_same() -> None:
    player = Player()
    player.play("a", tone(0.02).tobytes())
    assert pull(player, 4).any()


def test_after_a_gap_more_is_waited_for() -> None:
    player = Player()
    player.play("a", tone(0.06).tobytes())
    assert pull(player, 3).all()
    assert not pull(player, 2).any()
    assert player.underruns == 1
    player.play("a", tone(FIRST_PREBUFFER_S).tobytes())
    assert not pull(player, 1).any(), "what was enough before is not any more"
    player.play("a", tone(FIRST_PREBUFFER_S).tobytes())
    assert pull(player, 4).all()


def test_the_pause_between_two_answers_is_no_gap() -> None:
    player = Player()
    player.play("a", tone(0.06).tobytes())
    player.finish("a")
    pull(player, 5)
    assert player.underruns == 0


def test_heard_is_what_left_the_device_not_what_it_has_fetched() -> None:
    player = Player()
    player.play("a", tone(1.0).tobytes())
    pull(player, 10, start=5.1)  # a device that is 100 ms behind
    assert player.flush(5.25) == [Cut("a", 150)]


def test_a_flush_stops_the_sound_without_a_click() -> None:
    player = Player()
    player.play("a", tone(1.0).tobytes())
    player.play("b", tone(1.0).tobytes())
    pull(player, 5)
    assert player.flush(0.1) == [Cut("a", 100), Cut("b", 0)]
    rest = pull(player, 5, start=0.1)
    fade = round(FADE_S * WIRE_HZ)
    assert 0 < rest[fade - 1] < 100
    assert np.abs(np.diff(rest[:fade].astype(int))).max() < 300
    assert not rest[fade:].any()
    assert not player.plays(0.1)


def test_what_was_heard_to_its_end_is_not_cut() -> None:
    player = Player()
    player.play("a", tone(0.06).tobytes())
    player.finish("a")
    pull(player, 4)
    assert player.holds("a", 0.05)
    assert not player.holds("a", 0.06)
    assert player.flush(0.06) == []


def test_an_unfinished_item_may_get_more() -> None:
    player = Player()
    player.play("a", tone(0.06).tobytes())
    pull(player, 10)
    assert player.plays(1.0)


def test_the_position_does_not_depend_on_the_devices_rate() -> None:
    player = Player(rate_hz=48_000)
    player.play("a", tone(1.0).tobytes())
    player.finish("a")
    for number in range(10):
        player.pull(960, number * BLOCK_S)
    assert player.flush(0.2) == [Cut("a", 200)]


def test_the_whole_of_an_item_is_never_longer_than_what_came() -> None:
    player = Player(rate_hz=44_100)
    player.play("a", tone(0.1).tobytes())
    for number in range(10):
        player.pull(882, number * BLOCK_S)
    (cut,) = player.flush(9.0)
    assert cut.heard_ms <= 100


def test_the_first_audible_sample_comes_after_leading_silence() -> None:
    player = Player()
    player.play("a", np.concatenate([np.zeros(2400, np.int16), tone(0.1)]).tobytes())
    pull(player, 5, start=7.0)
    assert player.audible_at("a") is None
    pull(player, 1, start=7.1)
    assert player.audible_at("a") == pytest.approx(7.1)


def test_levels() -> None:
    assert level_db(np.zeros(480, np.int16)) == -96.0
    assert level_db(np.full(480, 16_384, np.int16)) == pytest.approx(-6.02, abs=0.01)
    assert first_audible(np.zeros(480, np.int16), WIRE_HZ) is None
    assert first_audible(np.full(7, 9000, np.int16), WIRE_HZ) == 0
