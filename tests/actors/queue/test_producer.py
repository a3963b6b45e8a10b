"""The rules that the producer half keeps."""

from __future__ import annotations

import pytest

from actors.messages import (
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    Rank,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsDone,
    TtsRequest,
)
from actors.queue.core import (
    Control,
    Delivery,
    ItemResult,
    Outcome,
    Outgoing,
    Producer,
    QueueOptions,
    Reference,
    Returns,
)
from actors.queue.items import MAX_BATCH_BYTES, decode_delivery, decode_request

HEARD = SttRequest(b"")


def make(replicas: dict[str, int] | None = None, **options: float) -> Producer:
    producer = Producer("stt", "gate", QueueOptions(**options))  # type: ignore[arg-type]
    producer.set_pool(1, replicas if replicas is not None else {"a": 8}, 0.0)
    return producer


def submit(
    producer: Producer,
    work: int,
    due: float = 0.0,
    rank: Rank = Rank.CONFIRMED,
    session: str = "s",
    request: SttRequest | LlmRequest | TtsRequest = HEARD,
    now: float = 0.0,
    generation: str = "g",
) -> list[Outcome]:
    return producer.submit(session, generation, work, rank, due, request, now)


def works(outgoing: Outgoing) -> list[int]:
    return [item.id & 0xFFFF for item in decode_delivery(outgoing.batch).items]


def credit(producer: Producer, replica: str, limit: int, now: float = 0.0) -> None:
    producer.answered(replica, Returns(replica, limit), now)


def only(producer: Producer, now: float = 0.0) -> Outgoing:
    (outgoing,) = producer.take(now)
    return outgoing


def result(outgoing: Outgoing, index: int, value: object, position: int = 0) -> ItemResult:
    item = decode_delivery(outgoing.batch).items[position]
    return ItemResult(item.id, item.attempt, index, value)  # type: ignore[arg-type]


def test_work_goes_out_by_rank_then_due_time_then_arrival() -> None:
    producer = make({"a": 8})
    credit(producer, "a", 8)
    submit(producer, 1, due=5.0)
    submit(producer, 2, due=1.0)
    submit(producer, 3, due=0.0, rank=Rank.SPECULATIVE)
    submit(producer, 4, due=1.0)
    assert works(only(producer)) == [2, 4, 1, 3]


def test_a_due_time_travels_as_the_seconds_that_are_left() -> None:
    producer = make()
    submit(producer, 1, due=2.0)
    (item,) = decode_delivery(only(producer, 0.5).batch).items
    assert (item.due_in_s, item.source, item.session, item.attempt) == (1.5, "gate", "s", 1)


def test_an_item_waits_here_until_a_replica_has_room() -> None:
    producer = make({"a": 1})
    submit(producer, 1)
    submit(producer, 2, due=9.0)
    assert works(only(producer)) == [1]
    assert producer.take(0.0) == []
    submit(producer, 3, due=1.0)
    credit(producer, "a", 2)
    assert works(only(producer)) == [3]


def test_one_delivery_is_under_way_at_a_time() -> None:
    producer = make()
    credit(producer, "a", 8)
    submit(producer, 1)
    assert only(producer).number == 1
    submit(producer, 2)
    assert producer.take(0.0) == []
    credit(producer, "a", 8)
    assert only(producer).number == 2


def test_credit_that_arrives_out_of_order_never_shrinks() -> None:
    producer = make()
    credit(producer, "a", 5)
    credit(producer, "a", 2)
    for work in range(6):
        submit(producer, work)
    assert len(works(only(producer))) == 5


def test_an_idle_replica_is_preferred_to_a_busy_one() -> None:
    producer = make({"a": 1, "b": 1})
    submit(producer, 1)
    first = only(producer)
    credit(producer, first.replica, 2)
    submit(producer, 2)
    assert only(producer).replica != first.replica


def test_an_idle_replica_with_a_delivery_under_way_is_waited_for() -> None:
    producer = make({"a": 1, "b": 1})
    credit(producer, "a", 9)
    credit(producer, "b", 9)
    submit(producer, 1)
    first = only(producer)
    credit(producer, first.replica, 9)
    submit(producer, 2, session="t", generation="h")
    second = only(producer)
    producer.cancel("t", "h")
    submit(producer, 3)
    assert producer.take(0.0) == [], "it would have gone behind the busy one"
    credit(producer, second.replica, 9)
    assert only(producer).replica == second.replica


def test_a_batch_stays_below_the_size_at_which_ray_uses_its_object_store() -> None:
    producer = make()
    credit(producer, "a", 8)
    for work in range(3):
        submit(producer, work, request=SttRequest(bytes(40_000)))
    first = only(producer)
    assert works(first) == [0, 1]
    assert len(first.batch) < MAX_BATCH_BYTES
    credit(producer, "a", 8)
    assert works(only(producer)) == [2]


def test_a_large_request_goes_by_reference_and_is_held_until_the_ack() -> None:
    class Held:
        pass

    import weakref

    producer = make()
    request = SttRequest(bytes(200_000))
    submit(producer, 1, request=request)
    outgoing = only(producer)
    (item,) = decode_delivery(outgoing.batch).items
    assert item.payload == Reference(0)
    ((name, encoded),) = outgoing.large
    assert name == item.id and decode_request(encoded) == request
    held = Held()
    alive = weakref.ref(held)
    producer.hold(name, held)
    del held
    assert alive() is not None
    producer.returned(Returns("a", 2, [result(outgoing, 0, SttResult("x"))]), 0.0)
    assert alive() is None
    producer.hold(name, Held())


def test_a_reference_that_could_not_be_fetched_is_sent_again() -> None:
    producer = make()
    submit(producer, 1, request=SttRequest(bytes(200_000)))
    (item,) = decode_delivery(only(producer).batch).items
    assert producer.answered("a", Returns("a", 2, missed=[item.id]), 0.0) == []
    (again,) = decode_delivery(only(producer).batch).items
    assert (again.id, again.attempt) == (item.id, 2)
    (failed,) = producer.answered("a", Returns("a", 3, missed=[item.id, 77]), 0.0)
    assert isinstance(failed.result, Failed) and "could not be fetched" in failed.result.message


def test_results_come_in_order_once_whatever_the_network_does() -> None:
    producer = make()
    submit(producer, 1, request=LlmRequest([]))
    outgoing = only(producer)
    one, two, done = (
        result(outgoing, index, value)
        for index, value in enumerate([LlmText("a"), LlmText("b"), LlmDone("stop")])
    )
    assert producer.returned(Returns("a", 2, [two, two]), 0.0) == []
    got = producer.returned(Returns("a", 2, [one, one, done]), 0.0)
    assert [outcome.result for outcome in got] == [LlmText("a"), LlmText("b"), LlmDone("stop")]
    assert producer.returned(Returns("a", 2, [done]), 0.0) == []
    assert producer.figures(0.0).dropped == 3
    assert producer.idle


def test_a_lost_replica_s_work_goes_on_elsewhere_after_what_was_delivered() -> None:
    producer = make({"a": 8})
    submit(producer, 1, request=LlmRequest([], max_tokens=9))
    submit(producer, 2, request=TtsRequest("clause"), session="t")
    credit(producer, "a", 8)
    first = only(producer)
    speech = TtsAudio(bytes(600), 24_000)
    producer.returned(
        Returns("a", 8, [result(first, 0, LlmText("one ")), result(first, 0, speech, position=1)]), 0.0
    )
    assert producer.lost("a", 1.0) == []
    assert producer.lost("a", 1.0) == []
    producer.set_pool(2, {"a": 8, "b": 8}, 1.0)
    assert producer.replicas == {"b"}, "a replica that was lost does not come back by an old list"
    (item,) = decode_delivery(only(producer, 1.0).batch).items
    assert isinstance(item.payload, LlmRequest)
    assert (item.payload.delivered, item.payload.delivered_tokens, item.attempt) == ("one ", 1, 2)
    stale = result(first, 1, LlmText("two "))
    assert producer.returned(Returns("a", 8, [stale]), 1.0) == []
    token = ItemResult(item.id, 2, 0, LlmText("two "))
    assert producer.answered("b", Returns("b", 8, [token]), 1.0)[0].result == LlmText("two ")
    (speak,) = decode_delivery(only(producer, 1.0).batch).items
    assert isinstance(speak.payload, TtsRequest) and speak.payload.skip_samples == 300


def test_work_that_survived_a_lost_replica_is_tried_one_by_one_until_it_shows_life() -> None:
    producer = make({"a": 8})
    credit(producer, "a", 8)
    for work in range(3):
        submit(producer, work)
    only(producer)
    producer.lost("a", 0.0)
    producer.set_pool(2, {"b": 8}, 0.0)
    credit(producer, "b", 8)
    first = only(producer)
    assert works(first) == [0]
    credit(producer, "b", 8)
    assert producer.take(0.0) == []
    producer.returned(Returns("b", 8, [result(first, 0, SttResult("fine"))]), 0.0)
    assert works(only(producer)) == [1]


def test_a_poisoned_request_fails_after_two_replicas_and_takes_nobody_with_it() -> None:
    producer = make({"a": 8})
    credit(producer, "a", 8)
    submit(producer, 1)
    submit(producer, 2)
    only(producer)
    producer.lost("a", 0.0)
    producer.set_pool(2, {"b": 8}, 0.0)
    credit(producer, "b", 8)
    assert works(only(producer)) == [1]
    (failed,) = producer.lost("b", 0.0)
    assert failed.work == 1 and isinstance(failed.result, Failed)
    assert "stt: replica b was lost" in failed.result.message
    producer.set_pool(3, {"c": 8}, 0.0)
    assert works(only(producer)) == [2]
    figures = producer.figures(0.0)
    assert (figures.redelivered, figures.failed) == (2, 1)


def test_who_is_beside_the_poison_twice_is_not_blamed_for_it() -> None:
    producer = make({"a": 8})
    credit(producer, "a", 8)
    submit(producer, 1)
    submit(producer, 2)
    only(producer)
    producer.lost("a", 0.0)
    producer.set_pool(2, {"b": 8}, 0.0)
    credit(producer, "b", 8)
    first = only(producer)
    producer.returned(Returns("b", 8, [result(first, 0, SttResult("so far", final=False))]), 0.0)
    credit(producer, "b", 8)
    assert (works(first), works(only(producer))) == ([1], [2])
    (failed,) = producer.lost("b", 0.0)
    assert failed.work == 2 and isinstance(failed.result, Failed)
    producer.set_pool(3, {"c": 8}, 0.0)
    assert works(only(producer)) == [1]


def test_cancelling_a_suspect_lets_the_next_one_go() -> None:
    producer = make({"a": 8})
    credit(producer, "a", 8)
    submit(producer, 1, generation="g")
    submit(producer, 2, generation="h")
    only(producer)
    producer.lost("a", 0.0)
    producer.set_pool(2, {"b": 8}, 0.0)
    credit(producer, "b", 8)
    only(producer)
    credit(producer, "b", 8)
    producer.cancel("s", "g")
    assert works(only(producer)) == [2]


def test_a_failure_that_another_replica_may_not_have_is_retried_there() -> None:
    producer = make({"a": 1, "b": 1})
    submit(producer, 1)
    first = only(producer)
    failed = Failed("out of memory", retry=True)
    credit(producer, first.replica, 2)
    assert producer.returned(Returns(first.replica, 2, [result(first, 0, failed)]), 0.0) == []
    second = only(producer)
    assert second.replica != first.replica
    (outcome,) = producer.returned(Returns(second.replica, 2, [result(second, 0, failed)]), 0.0)
    assert isinstance(outcome.result, Failed) and "out of memory (attempt 2)" in outcome.result.message


def test_a_failure_of_the_request_itself_is_not_retried() -> None:
    producer = make()
    submit(producer, 1)
    failed = Failed("no such voice")
    (outcome,) = producer.returned(Returns("a", 2, [result(only(producer), 0, failed)]), 0.0)
    assert outcome.result == failed and producer.figures(0.0).failed == 1


def test_a_full_outbox_refuses_in_words() -> None:
    producer = make({}, outbox_items=1)
    assert submit(producer, 1) == []
    (refused,) = submit(producer, 2)
    assert isinstance(refused.result, Failed) and "1 requests wait already" in refused.result.message
    assert producer.figures(0.0).refused == 1


def test_work_is_submitted_once() -> None:
    producer = make()
    submit(producer, 1)
    with pytest.raises(ValueError, match="work 1 of session s"):
        submit(producer, 1)


def test_a_newer_partial_takes_the_place_of_one_that_still_waits() -> None:
    producer = make({})
    submit(producer, 1, request=SttRequest(b"", interim=True))
    submit(producer, 2, request=SttRequest(b""))
    submit(producer, 3, request=SttRequest(b"", interim=True), generation="h")
    submit(producer, 4, request=SttRequest(b"", interim=True))
    producer.set_pool(2, {"a": 8}, 0.0)
    credit(producer, "a", 8)
    assert works(only(producer)) == [2, 3, 4]


def test_a_partial_that_gave_way_at_the_replica_is_forgotten() -> None:
    producer = make()
    submit(producer, 1)
    (item,) = decode_delivery(only(producer).batch).items
    assert producer.answered("a", Returns("a", 3, replaced=[item.id, 99]), 0.0) == []
    assert producer.idle


def test_a_cancel_drops_what_waits_and_names_the_last_delivery_to_replicas_that_have_some() -> None:
    producer = make()
    submit(producer, 1)
    outgoing = only(producer)
    submit(producer, 2)
    submit(producer, 3, generation="h")
    ((replica, control),) = producer.cancel("s", "g")
    assert (replica, control) == ("a", Control("cancel", "s", "g", 0.0, 1))
    assert producer.returned(Returns("a", 9, [result(outgoing, 0, SttResult("late"))]), 0.0) == []
    credit(producer, "a", 9)
    assert works(only(producer)) == [3]


def test_closing_a_session_drops_all_of_it_and_its_name_starts_anew() -> None:
    producer = make()
    submit(producer, 1)
    only(producer)
    ((_, control),) = producer.close("s")
    assert (control.verb, control.generation) == ("close", "")
    assert producer.sessions == []
    submit(producer, 1)
    assert producer.sessions == ["s"]
    assert producer.close("nobody") == []


def test_promoted_work_goes_first_wherever_it_is() -> None:
    producer = make({"a": 1})
    submit(producer, 1, rank=Rank.SPECULATIVE)
    only(producer)
    submit(producer, 2, rank=Rank.SPECULATIVE, due=9.0)
    submit(producer, 3, rank=Rank.SPECULATIVE, generation="h")
    ((replica, control),) = producer.promote("s", "g", 0.5, 1.0)
    assert (replica, control) == ("a", Control("promote", "s", "g", 0.5, 1))
    credit(producer, "a", 2, 1.0)
    assert works(only(producer, 1.0)) == [2]
    assert producer.figures(1.0).promoted == 2


def test_a_session_waits_a_while_for_the_replica_that_it_used_last() -> None:
    producer = make({"a": 1, "b": 1}, affinity_wait_s=0.1)
    submit(producer, 1)
    first = only(producer)
    credit(producer, first.replica, 1)
    producer.returned(Returns(first.replica, 1, [result(first, 0, SttResult(""))]), 0.0)
    submit(producer, 2, now=1.0)
    assert producer.take(1.0) == []
    assert producer.wake_at(1.0) == pytest.approx(1.1)
    assert only(producer, 1.1).replica != first.replica


def test_a_session_goes_back_to_the_replica_that_it_used_last() -> None:
    producer = make({"a": 1, "b": 1}, affinity_wait_s=0.1)
    submit(producer, 1)
    first = only(producer)
    credit(producer, first.replica, 9)
    submit(producer, 2, session="t")
    other = only(producer)
    credit(producer, other.replica, 9)
    submit(producer, 3)
    assert only(producer).replica == first.replica


def test_a_replica_that_left_the_pool_finishes_what_it_has_and_gets_no_more() -> None:
    producer = make({"a": 8})
    submit(producer, 1)
    outgoing = only(producer)
    credit(producer, "a", 8)
    producer.set_pool(2, {}, 0.0)
    producer.set_pool(1, {"z": 1}, 0.0)
    submit(producer, 2)
    assert producer.take(0.0) == [] and producer.replicas == {"a"}
    (outcome,) = producer.returned(Returns("a", 8, [result(outgoing, 0, SttResult("done"))]), 0.0)
    assert outcome.work == 1 and producer.replicas == frozenset()
    producer.set_pool(3, {"b": 1}, 0.0)
    producer.set_pool(4, {}, 0.0)
    assert producer.replicas == frozenset()


def test_a_replica_that_comes_back_to_the_pool_is_counted_on() -> None:
    producer = make({"a": 8})
    submit(producer, 1)
    outgoing = only(producer)
    producer.returned(Returns("a", 8, [result(outgoing, 0, SttResult("done"))]), 0.0)
    producer.set_pool(2, {}, 0.0)
    assert producer.replicas == {"a"}, "its answer is still to come"
    credit(producer, "a", 8)
    assert producer.replicas == frozenset()
    producer.set_pool(3, {"a": 8}, 0.0)
    submit(producer, 2)
    assert only(producer).number == 2


def test_a_replica_that_holds_work_and_gives_no_sign_is_stuck() -> None:
    producer = make(stage_timeout_s=10.0)
    assert producer.stuck(100.0) == []
    submit(producer, 1, now=100.0)
    only(producer, 100.0)
    assert producer.stuck(109.0) == []
    producer.returned(Returns("a", 1), 109.0)
    assert producer.stuck(118.0) == []
    assert producer.stuck(120.0) == ["a"]


def test_what_nobody_takes_fails_in_the_end() -> None:
    producer = make({}, give_up_s=60.0)
    submit(producer, 1)
    assert producer.expire(60.0) == []
    (failed,) = producer.expire(61.0)
    assert (
        isinstance(failed.result, Failed) and "no replica took the request in 60 s" in failed.result.message
    )
    assert producer.idle


def test_items_are_called_back_from_behind_a_busy_replica_when_another_is_idle() -> None:
    producer = make({"a": 1})
    submit(producer, 1)
    first = only(producer)
    credit(producer, "a", 3)
    submit(producer, 2, due=1.0)
    submit(producer, 3, due=2.0)
    second = only(producer)
    assert producer.recall() == [], "no replica is idle"
    producer.set_pool(2, {"a": 1, "b": 1}, 0.0)
    assert producer.recall() == [], "the delivery is still under way"
    credit(producer, "a", 3)
    ((replica, control),) = producer.recall()
    last = decode_delivery(second.batch).items[1].id
    assert (replica, control.verb, control.item) == ("a", "recall", last)
    assert producer.recall() == [], "one idle replica is given one item"
    producer.returned(Returns("a", 3, recalled=[last, 77]), 0.0)
    assert producer.recall() == [], "something waits: that goes to the idle one"
    moved = only(producer)
    assert (moved.replica, works(moved)) == ("b", [3])
    assert decode_delivery(moved.batch).items[0].attempt == 2
    assert producer.figures(0.0).redelivered == 0
    assert works(first) == [1]


def test_under_load_deliveries_are_spaced_and_the_producer_says_when_to_come_back() -> None:
    producer = make({"a": 64})
    credit(producer, "a", 200)
    for work in range(100):
        submit(producer, work)
    assert producer.wake_at(0.0) is None
    only(producer)
    credit(producer, "a", 200)
    submit(producer, 100)
    assert producer.take(0.005) == []
    assert producer.wake_at(0.005) == pytest.approx(0.010)
    assert works(only(producer, 0.011)) == [100]
    assert producer.wake_at(0.011) is None


def test_figures_tell_depth_age_wait_and_lateness() -> None:
    producer = make({"a": 1})
    submit(producer, 1, due=1.0)
    submit(producer, 2, due=9.0)
    only(producer, 3.0)
    figures = producer.figures(4.0)
    assert (figures.depth, figures.working, figures.oldest_age_s) == (1, 1, 4.0)
    assert (figures.wait_s.most, figures.lateness_s.most, figures.batch_size.p50) == (3.0, 2.0, 1.0)
    assert (figures.overdue_s, producer.figures(12.0).overdue_s) == (0.0, 3.0)


def test_a_final_result_of_speech_ends_its_clause() -> None:
    producer = make()
    submit(producer, 1, request=TtsRequest("x"))
    outgoing = only(producer)
    values = [TtsAudio(b"", 1), TtsDone(0)]
    producer.returned(Returns("a", 2, [result(outgoing, n, value) for n, value in enumerate(values)]), 0.0)
    assert producer.idle and isinstance(decode_delivery(outgoing.batch), Delivery)
