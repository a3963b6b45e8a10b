"""What travels, and how often."""

from __future__ import annotations

from types import SimpleNamespace

from actors.messages import LlmText, Rank, SttRequest, TtsAudio, VadResult
from actors.queue.core import Control, Item, ItemResult, Returns
from actors.queue.items import (
    MAX_PIECE_BYTES,
    decode_controls,
    decode_delivery,
    decode_request,
    decode_returns,
    encode_controls,
    encode_delivery,
    encode_item,
    encode_request,
    encode_returns,
    pieces,
    size_bytes,
)
from actors.queue.pace import MAX_TICK_S, Pace, Recent, Spread, overdue_s


def test_what_is_sent_is_what_arrives() -> None:
    request = SttRequest(b"\1\2", language="en")
    item = Item(1, 2, "g", "s", "1", 0, 0.5, request)
    delivery = decode_delivery(encode_delivery(3, [encode_item(item)]))
    assert (delivery.number, delivery.items) == (3, [item])
    returns = Returns("a", 4, [ItemResult(1, 2, 0, LlmText("x"))], [5], [6], [7])
    assert decode_returns(encode_returns(returns)) == returns
    assert decode_request(encode_request(request)) == request
    controls = [Control("cancel", "s", "1", 0.0, 1)]
    assert decode_controls(encode_controls(controls)) == controls


def test_sound_is_cut_at_samples_into_pieces_that_travel_inline() -> None:
    pcm = bytes(range(250)) * 520
    cut = [piece for piece in pieces(TtsAudio(pcm, 24_000)) if isinstance(piece, TtsAudio)]
    assert b"".join(piece.pcm for piece in cut) == pcm
    assert len(cut) == 3
    assert all(len(piece.pcm) <= MAX_PIECE_BYTES and len(piece.pcm) % 2 == 0 for piece in cut)
    assert pieces(LlmText("x")) == [LlmText("x")]


def test_the_size_of_a_result_is_never_underestimated() -> None:
    for result in (
        TtsAudio(bytes(1000), 24_000),
        VadResult([0.5] * 9, bytes(2048), bytes(128)),
        LlmText("é"),
    ):
        encoded = encode_returns(Returns("", 0, [ItemResult(1 << 40, 1, 1000, result)]))
        assert len(encoded) <= size_bytes(result) + 32


def test_little_work_is_sent_at_once_and_much_of_it_every_ten_milliseconds() -> None:
    pace = Pace()
    pace.sent(1, 0.0)
    assert pace.tick_s(0.0) == 0.0
    for step in range(50):
        pace.sent(16, step * 0.01)
    assert pace.tick_s(0.5) == 0.010
    assert pace.tick_s(3.0) == 0.0


def test_a_far_end_that_answers_slowly_is_asked_less_often_but_within_a_frame() -> None:
    pace = Pace()
    pace.sent(1000, 0.0)
    for _ in range(50):
        pace.answered(0.020)
    assert 0.019 < pace.tick_s(0.0) <= 0.020
    for _ in range(50):
        pace.answered(1.0)
    assert pace.tick_s(0.0) == MAX_TICK_S


def test_the_spread_is_that_of_the_last_values() -> None:
    recent = Recent()
    assert recent.spread() == Spread()
    for value in range(1000):
        recent.add(float(value))
    assert recent.spread() == Spread(872.0, 986.0, 999.0)


def test_only_what_somebody_waits_for_can_be_overdue() -> None:
    waiting = [
        SimpleNamespace(rank=int(Rank.CONFIRMED), due=4.0),
        SimpleNamespace(rank=int(Rank.CONFIRMED), due=3.0),
        SimpleNamespace(rank=int(Rank.SPECULATIVE), due=1.0),
    ]
    assert [overdue_s(waiting, now) for now in (2.0, 5.0)] == [0.0, 2.0]
    assert overdue_s(waiting[2:], 5.0) == overdue_s([], 5.0) == 0.0
