"""The rules that the consumer half keeps."""

from __future__ import annotations

import pytest

from actors.messages import LlmDone, LlmText, Rank, SttRequest, SttResult
from actors.queue.consumer import REMEMBERED_ITEMS
from actors.queue.core import Inbox, Item, Key, Reference
from actors.queue.items import AnyRequest


def item(
    work: int,
    due: float = 0.0,
    rank: Rank = Rank.CONFIRMED,
    source: str = "g",
    session: str = "s",
    generation: str = "1",
    attempt: int = 1,
    payload: AnyRequest | Reference | None = None,
) -> Item:
    return Item(work, attempt, source, session, generation, rank, due, payload or SttRequest(b""))


def ids(inbox: Inbox, now: float = 0.0) -> list[int]:
    return [held.key.id for held in inbox.take(now)]


def test_items_are_taken_by_rank_and_due_time_whoever_sent_them() -> None:
    inbox = Inbox(3)
    inbox.receive("g", 1, [item(1, 5.0), item(2, 3.0), item(3, 0.0, Rank.BACKGROUND)], 0.0)
    inbox.receive("h", 1, [item(4, 1.0, source="h")], 0.0)
    assert ids(inbox) == [4, 2, 1]


def test_a_due_time_is_counted_from_the_receiver_s_clock() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1, 2.0)], 100.0)
    assert inbox.take(105.0)[0].due == 102.0
    assert inbox.figures(105.0).lateness_s.most == 3.0
    assert inbox.figures(105.0).wait_s.most == 5.0


def test_a_batch_ends_before_the_next_begins_unless_requests_may_join() -> None:
    fixed, continuous = Inbox(2), Inbox(2, continuous=True)
    for inbox in (fixed, continuous):
        inbox.receive("g", 1, [item(1)], 0.0)
        assert ids(inbox) == [1]
        inbox.receive("g", 2, [item(2), item(3)], 0.0)
    assert ids(fixed) == []
    assert ids(continuous) == [2]
    assert ids(continuous) == []


def test_results_are_numbered_until_the_last_one() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1)], 0.0)
    ((key),) = [held.key for held in inbox.take(0.0)]
    first, last = inbox.result(key, LlmText("a")), inbox.result(key, LlmDone("stop"))
    assert first is not None and last is not None
    assert (first.index, last.index, last.id, last.attempt) == (0, 1, 1, 1)
    assert inbox.result(key, LlmText("b")) is None
    assert inbox.idle and inbox.running(key) is None


def test_a_delivery_or_an_item_that_comes_twice_is_taken_once() -> None:
    inbox = Inbox(8)
    inbox.receive("g", 1, [item(1)], 0.0)
    inbox.receive("g", 1, [item(1)], 0.0)
    inbox.receive("g", 3, [item(1)], 0.0)
    inbox.receive("g", 3, [item(1)], 0.0)
    assert ids(inbox) == [1]
    inbox.result(Key("g", 1, 1), SttResult(""))
    inbox.receive("g", 2, [item(1)], 0.0)
    assert ids(inbox) == []
    assert inbox.figures(0.0).dropped == 4


def test_a_newer_attempt_takes_the_place_of_an_older_one() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1)], 0.0)
    inbox.take(0.0)
    assert inbox.receive("g", 2, [item(1, attempt=2)], 0.0) == [Key("g", 1, 1)]
    assert [held.key for held in inbox.take(0.0)] == [Key("g", 1, 2)]


def test_finished_items_are_remembered_for_a_while() -> None:
    inbox = Inbox(REMEMBERED_ITEMS + 1)
    inbox.receive("g", 1, [item(work) for work in range(REMEMBERED_ITEMS + 1)], 0.0)
    for held in inbox.take(0.0):
        inbox.result(held.key, SttResult(""))
    inbox.receive("g", 2, [item(0), item(1)], 0.0)
    assert ids(inbox) == [0], "the oldest is forgotten, the next one known"


@pytest.mark.parametrize("verb", ["cancel", "close"])
def test_a_cancel_drops_what_waits_and_stops_what_runs(verb: str) -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1), item(2), item(3, session="t"), item(4, source="h")], 0.0)
    inbox.take(0.0)
    stop = inbox.cancel("g", "s", "1", 1) if verb == "cancel" else inbox.close("g", "s", 1)
    assert stop == [Key("g", 1, 1)]
    assert inbox.figures(0.0).cancelled == 2
    assert ids(inbox) == [3]


def test_a_cancel_that_overtakes_its_delivery_is_remembered_until_that_has_come() -> None:
    inbox = Inbox(8)
    inbox.cancel("g", "s", "1", 2)
    inbox.receive("g", 2, [item(1), item(2, generation="2")], 0.0)
    inbox.receive("g", 1, [item(3)], 0.0)
    inbox.receive("g", 3, [item(4)], 0.0)
    assert ids(inbox) == [2, 4], "later deliveries of the generation are wanted again"


def test_a_cancel_that_its_successors_overtook_leaves_them_alone() -> None:
    inbox = Inbox(8)
    inbox.receive("g", 1, [item(1, 9.0, Rank.SPECULATIVE)], 0.0)
    inbox.receive("g", 2, [item(2, 9.0, Rank.SPECULATIVE)], 0.0)
    inbox.promote("g", "s", "1", 0.0, 1, 0.0)
    assert inbox.figures(0.0).promoted == 1
    inbox.cancel("g", "s", "1", 1)
    assert ids(inbox) == [2]


def test_a_promotion_reaches_what_waits_runs_and_has_yet_to_come() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1, 9.0, Rank.SPECULATIVE), item(2, generation="2")], 0.0)
    inbox.promote("g", "s", "1", 0.0, 2, 0.0)
    inbox.receive("g", 2, [item(3, 9.0, Rank.SPECULATIVE)], 0.0)
    order = []
    for _ in range(3):
        (held,) = inbox.take(0.0)
        order.append(held.key.id)
        assert held.rank == Rank.CONFIRMED
        inbox.result(held.key, SttResult(""))
    assert sorted(order) == [1, 2, 3] and inbox.figures(0.0).promoted == 2
    inbox.promote("g", "s", "1", 0.0, 2, 0.0)
    inbox.receive("g", 3, [item(4, 9.0, Rank.SPECULATIVE)], 0.0)
    assert inbox.take(0.0)[0].rank == Rank.SPECULATIVE


def test_a_newer_partial_takes_the_place_of_one_that_waits() -> None:
    interim = SttRequest(b"", interim=True)
    inbox = Inbox(8)
    inbox.receive("g", 1, [item(1, payload=interim), item(2), item(3, session="t", payload=interim)], 0.0)
    assert not inbox.owes("g", 99)
    inbox.receive("g", 2, [item(4, payload=interim)], 0.0)
    assert inbox.owes("g", 99)
    assert inbox.gone("g") == ([1], [])
    assert inbox.gone("g") == ([], [])
    assert sorted(ids(inbox)) == [2, 3, 4]


def test_an_item_is_given_back_only_while_it_waits() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1), item(2)], 0.0)
    inbox.take(0.0)
    for work in (1, 2, 3):
        inbox.recall("g", work)
    assert inbox.owes("g", 99)
    assert inbox.gone("g") == ([], [2])
    assert inbox.figures(0.0).depth == 0


def test_an_item_that_was_taken_but_not_begun_waits_again() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1)], 0.0)
    inbox.take(0.0)
    inbox.put_back(Key("g", 1, 1))
    inbox.put_back(Key("g", 9, 1))
    assert ids(inbox) == [1]


def test_credit_is_the_producer_s_share_of_the_next_batch() -> None:
    inbox = Inbox(8)
    assert inbox.limit("g") == 8
    inbox.receive("h", 1, [item(1, source="h")], 0.0)
    assert inbox.limit("i") == 4
    inbox.receive("g", 1, [item(work) for work in range(3)], 0.0)
    assert inbox.limit("g") == 8, "a limit never shrinks"
    assert inbox.limit("h") == 1 + 4 - 1
    inbox.take(0.0)
    assert inbox.limit("h") == 1 + 4, "what runs takes no place"


def test_a_full_replica_keeps_a_place_for_every_producer() -> None:
    inbox = Inbox(2, continuous=True)
    inbox.receive("g", 1, [item(1), item(2)], 0.0)
    inbox.take(0.0)
    assert inbox.limit("g") == 3
    assert inbox.limit("h") == 1


def test_items_that_could_not_be_fetched_give_their_credit_back() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [], 0.0, missed=1)
    assert inbox.limit("g") == 2


def test_the_end_of_a_producer_ends_its_work_only() -> None:
    inbox = Inbox(2)
    inbox.receive("g", 1, [item(1), item(2), item(3)], 0.0)
    inbox.receive("h", 1, [item(4, 9.0, source="h")], 0.0)
    inbox.take(0.0)
    assert inbox.sources == {"g", "h"}
    assert inbox.end("g") == [Key("g", 1, 1), Key("g", 2, 1)]
    assert inbox.sources == {"h"}
    assert inbox.limit("g") == 1


def test_figures_tell_depth_and_age() -> None:
    inbox = Inbox(1)
    assert inbox.figures(5.0).oldest_age_s == 0.0
    inbox.receive("g", 1, [item(1), item(2)], 1.0)
    inbox.take(1.0)
    figures = inbox.figures(5.0)
    assert (figures.depth, figures.working, figures.oldest_age_s, figures.taken) == (1, 1, 4.0, 1)


def test_figures_tell_how_long_somebody_has_waited_past_the_due_time() -> None:
    inbox = Inbox(1)
    inbox.receive("g", 1, [item(1, 2.0), item(2, 0.5, rank=Rank.SPECULATIVE)], 1.0)
    assert [inbox.figures(now).overdue_s for now in (1.0, 3.0, 5.0)] == [0.0, 0.0, 2.0]
