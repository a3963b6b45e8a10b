"""`serve --timeline`: one line a turn, in ms from the end of what was said."""

from __future__ import annotations

from orchestration.session.timeline import TurnRecord
from s2s.timeline_view import timeline_line


def test_moments_count_from_the_last_speech() -> None:
    turn = TurnRecord(number=3, status="completed", speech_ms=1200, transcript="secret", answer="secret too")
    turn.last_speech, turn.pause_seen, turn.endpoint, turn.first_audio_sent = 10.0, 10.2, 10.512, 10.6
    line = timeline_line("sess_1", turn)
    assert line == "sess_1 turn 3 completed: speech 1200 ms  pause +200  endpoint +512  sent +600"


def test_a_committed_turn_counts_from_its_endpoint() -> None:
    turn = TurnRecord(number=1, status="cancelled", endpoint=5.0, first_token=5.25, cancelled=5.5)
    assert timeline_line("s", turn) == "s turn 1 cancelled: speech 0 ms  endpoint +0  token +250  cancel +500"


def test_an_answer_without_a_turn_counts_from_its_first_moment() -> None:
    turn = TurnRecord(number=1, status="completed", first_token=2.0, done=3.0)
    assert timeline_line("s", turn).endswith("token +0  done +1000")
    assert timeline_line("s", TurnRecord(number=2, status="failed")).endswith("speech 0 ms  ")
