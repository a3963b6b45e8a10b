"""Sessions and single requests of one gateway: their places, their end, and who waits for whom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from actors.messages import Failed, LlmDone, LlmRequest, LlmText, Message, Request, Result, TextPart
from orchestration.session import events, items
from orchestration.session.config import SessionDefaults
from orchestration.session.effects import Close, Hold
from orchestration.session.session import Session
from s2s.session_driver import SessionDriver
from s2s.sessions import AtCapacity, Draining, RequestFailed, Sessions
from tests.s2s.fake_links import FakeLinks, plain_answers

QUESTION = LlmRequest([Message("user", [TextPart("hi")])])


class Rig:
    def __init__(self, max_sessions: int = 8) -> None:
        self.links = FakeLinks()
        self.sessions = Sessions(self.links, SessionDefaults(), max_sessions)
        self.links.deliver = self.sessions.deliver
        self.sent: list[events.ServerEvent] = []
        self.closed: list[Close] = []

    def open(self) -> SessionDriver:
        """A client that goes when its session is over."""

        def closed(close: Close) -> None:
            self.closed.append(close)
            self.sessions.close(driver)

        driver = self.sessions.open(self.sent.append, closed)
        driver.start()
        return driver

    def ask(self, driver: SessionDriver) -> None:
        item = items.MessageItem(role="user", content=[items.InputText(text="hi")])
        driver.receive(events.ConversationItemCreate(item=item))
        driver.receive(events.ResponseCreate())


async def test_every_place_can_be_taken_and_is_free_again() -> None:
    rig = Rig(max_sessions=2)
    first, second = rig.open(), rig.open()
    with pytest.raises(AtCapacity, match="All 2 sessions"):
        rig.open()
    rig.sessions.close(first)
    rig.sessions.close(first)
    third = rig.open()
    assert set(rig.sessions.drivers) == {second.session.id, third.session.id}
    assert first.session.id in rig.links.closed


async def test_draining_lets_the_running_answer_out_and_takes_nothing_new() -> None:
    rig = Rig()
    driver = rig.open()
    rig.ask(driver)
    assert await rig.sessions.drain(5.0)
    (done,) = [event for event in rig.sent if isinstance(event, events.ResponseDone)]
    assert done.response.status == "completed"
    assert [close.reason for close in rig.closed] == ["drained"]
    with pytest.raises(Draining):
        rig.open()


async def test_draining_waits_no_longer_than_it_was_told() -> None:
    rig = Rig()
    rig.links.answer = lambda request: [] if isinstance(request, LlmRequest) else plain_answers(request)
    driver = rig.open()
    rig.ask(driver)
    assert not await rig.sessions.drain(0.01)
    assert driver.session.id in rig.sessions.drivers


async def test_a_request_of_its_own_ends_with_its_last_result() -> None:
    rig = Rig()
    results = [result async for result in rig.sessions.run(QUESTION)]
    assert [type(result) for result in results] == [LlmText, LlmText, LlmDone]
    assert len(rig.links.closed) == 1


async def test_leaving_a_request_stops_its_work() -> None:
    rig = Rig()
    running = rig.sessions.run(QUESTION)
    await anext(running)
    await running.aclose()  # type: ignore[attr-defined]
    assert len(rig.links.closed) == 1


@pytest.mark.parametrize("answer", [[Failed("llm: out of memory")], []])
async def test_a_request_that_fails_or_is_never_answered_raises(answer: Sequence[Result]) -> None:
    rig = Rig()

    def answers(request: Request) -> Sequence[Result]:
        return answer

    rig.links.answer = answers
    with pytest.raises(RequestFailed, match=r"out of memory|no result within"):
        await anext(rig.sessions.run(QUESTION, timeout_s=0.01))
    assert len(rig.links.closed) == 1


async def test_a_late_result_of_a_session_that_is_over_is_dropped() -> None:
    rig = Rig()
    driver = rig.open()
    rig.ask(driver)
    rig.sessions.close(driver)
    before = len(rig.sent)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(rig.sent) == before


async def test_each_turn_that_is_over_is_told_once_also_when_its_session_is_gone() -> None:
    rig = Rig()
    told: list[tuple[str, int]] = []
    rig.sessions.turn_over = lambda session, turn: told.append((session, turn.number))
    driver = rig.open()
    rig.ask(driver)
    for _ in range(10):  # each stage answers on the next turn of the loop
        await asyncio.sleep(0)
    rig.sessions.look_for_turns()
    rig.sessions.look_for_turns()
    rig.sessions.close(driver)
    assert told == [(driver.session.id, 1)]


async def test_early_work_is_counted_beyond_the_end_of_its_session() -> None:
    rig = Rig()
    first, second = rig.open(), rig.open()
    first.session.timeline.stt.used, second.session.timeline.stt.thrown_away = 2, 1
    rig.sessions.close(first)
    counted = rig.sessions.speculation()["stt"]
    assert (counted.used, counted.thrown_away) == (2, 1)


async def test_a_transport_that_paces_is_told_to_hold() -> None:
    rig, held = Rig(), []
    driver = SessionDriver(
        Session("sess_1", SessionDefaults(), 0.0), rig.links, rig.sent.append, rig.closed.append, held.append
    )
    driver._carry_out([Hold(True), Hold(False)])
    assert held == [True, False]
