"""A stage and the link to it, in one event loop and without Ray."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from actors import registry
from actors.messages import (
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    Message,
    Rank,
    Request,
    Result,
    SttRequest,
    SttResult,
    TextPart,
    TtsAudio,
    TtsDone,
    TtsRequest,
    is_final,
)
from actors.queue.core import Item, QueueOptions, Reference
from actors.queue.items import decode_returns, encode_delivery, encode_item, encode_request
from actors.queue.link import Replica, StageLink
from actors.stage import Stage, StageError
from tests.actors.inprocess import ActorUnavailableError, Handle, Ref

Start = Callable[..., Coroutine[Any, Any, "Pair"]]


class Pair:
    """A gateway with its link to some replicas."""

    def __init__(self, stage: str, handles: dict[str, Handle], options: QueueOptions | None) -> None:
        self.stage, self.handles = stage, handles
        self.got: dict[tuple[str, int], list[Result]] = {}
        self.done: dict[tuple[str, int], asyncio.Future[list[Result]]] = {}
        self.dead: list[tuple[str, str]] = []
        self.on_result: Callable[[Result], None] = lambda result: None
        self.sink = Handle(self)
        self.link = StageLink(
            stage, "gate", self._deliver, self.sink, lambda *dead: self.dead.append(dead), options
        )
        self.pool(1, *handles)

    def pool(self, version: int, *names: str) -> None:
        self.link.set_pool(version, [Replica(name, self.handles[name], 4) for name in names])

    async def results(self, stage: str, batch: bytes) -> None:
        assert stage == self.stage
        self.link.results(batch)

    def ask(
        self, request: Request, session: str = "s", work: int = 0, generation: str = "g"
    ) -> asyncio.Future[list[Result]]:
        self.got[session, work] = []
        done = self.done[session, work] = asyncio.get_running_loop().create_future()
        self.link.submit(session, generation, work, Rank.CONFIRMED, 0.0, request)
        assert not done.done(), "a result was delivered from within submit"
        return done

    def _deliver(self, session: str, work: int, result: Result) -> None:
        self.got[session, work].append(result)
        self.on_result(result)
        if is_final(result):
            self.done[session, work].set_result(self.got[session, work])


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    stages: list[Stage] = []
    pairs: list[Pair] = []

    async def make(
        stage: str,
        backend: str = "echo:Counter",
        names: str = "a",
        queue: QueueOptions | None = None,
        **options: Any,
    ) -> Pair:
        handles = {}
        for name in names:
            made = Stage(stage, backend, options, "cpu", "auto", 1, name)
            await made.load()
            stages.append(made)
            handles[name] = Handle(made)
        pair = Pair(stage, handles, queue)
        pairs.append(pair)
        return pair

    yield make
    for pair in pairs:
        pair.link.stop()
    await asyncio.sleep(0)
    for pair in pairs:
        for handle in pair.handles.values():
            for ref in handle.calls:
                ref.die()
    for stage in stages:
        await stage.stop()
    await asyncio.sleep(0)


async def soon(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds; fails after 10 s."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def count(tokens: int, word: str = "count") -> LlmRequest:
    return LlmRequest([Message("user", [TextPart(word)])], max_tokens=tokens)


def words(results: list[Result]) -> str:
    return "".join(result.text for result in results if isinstance(result, LlmText))


def numbers(count: int) -> str:
    return "".join(f"{number} " for number in range(count))


async def test_results_come_back_in_order(start: Start) -> None:
    pair = await start("llm")
    answers = [pair.ask(count(10), f"s{index}") for index in range(9)]
    for answer in await asyncio.gather(*answers):
        assert words(answer) == numbers(10)
        assert answer[-1] == LlmDone("stop", output_tokens=10)
    assert pair.link.figures().finished == 9


async def test_loading_tells_what_was_loaded(start: Start) -> None:
    stage = Stage("llm", "echo:Counter", {"max_batch": 3}, "cpu", "auto", 1, "a")
    loaded = await stage.load()
    assert loaded.capabilities.max_batch == 3 and loaded.device == "cpu" and loaded.memory_mb > 0
    await stage.stop()


@pytest.mark.parametrize(
    ("backend", "options", "words"),
    [
        ("echo:Counter", {"fail_load": True}, "OSError: no weights here"),
        (
            "echo:Counter",
            {"max_bach": 1},
            "option max_bach .* is not known. Known: fail_load, max_batch, step_s",
        ),
        ("echo:Counter", {"max_batch": "many"}, "Expected `int`, got `str`"),
        ("counter", {}, "llm backend 'counter' is not known"),
    ],
)
async def test_what_cannot_be_loaded_says_why(backend: str, options: dict[str, Any], words: str) -> None:
    stage = Stage("llm", backend, options, "cpu", "auto", 1, "a")
    with pytest.raises(StageError, match=f"llm: backend '{backend}' could not be loaded on cpu: .*{words}"):
        await stage.load()


async def test_a_backend_without_its_library_says_which_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = registry.Entry("llm", "echo", "echo:Counter", ("cpu",), "loud", "counts")
    monkeypatch.setattr(registry, "ENTRIES", (entry,))

    def load(self: Any, device: str, dtype: str, threads: int) -> None:
        importlib.import_module("no_such_library")

    monkeypatch.setattr(entry.backend_class(), "load", load)
    with pytest.raises(
        StageError, match=r"No module named 'no_such_library'; install the extra: pip install 's2s\[loud\]'"
    ):
        await Stage("llm", "echo", {}, "cpu", "auto", 1, "a").load()


async def test_work_for_a_replica_that_is_not_loaded_is_refused() -> None:
    stage = Stage("llm", "echo:Counter", {}, "cpu", "auto", 1, "a")
    with pytest.raises(StageError, match="before it was loaded"):
        await stage.deliver(encode_delivery(1, []), "gate", None)


async def test_one_poisoned_request_of_a_batch_fails_alone_and_the_actor_lives(start: Start) -> None:
    pair = await start("llm", step_s=0.002)
    good = [pair.ask(count(20), f"s{index}") for index in range(3)]
    bad = pair.ask(count(20, "raise"), "bad")
    for answer in await asyncio.gather(*good):
        assert words(answer) == numbers(20)
    (failed,) = await bad
    assert isinstance(failed, Failed) and "RuntimeError: scripted (attempt 2)" in failed.message
    assert words(await pair.ask(count(3), "after")) == numbers(3)
    assert pair.dead == []


async def test_a_request_that_a_backend_forgets_fails(start: Start) -> None:
    pair = await start("stt", "echo:Forgetful")
    (failed,) = await pair.ask(SttRequest(b""))
    assert isinstance(failed, Failed) and "ended without a last result" in failed.message


async def test_a_cancel_stops_the_compute_and_silences_the_rest(start: Start) -> None:
    pair = await start("llm", step_s=0.002)
    pair.ask(count(10_000))
    await soon(lambda: len(pair.got["s", 0]) > 3)
    pair.link.cancel("s", "g")
    heard = len(pair.got["s", 0])
    stage = pair.handles["a"].actor._host
    await soon(lambda: stage._run is None)
    assert len(pair.got["s", 0]) == heard
    assert words(await pair.ask(count(5), work=1)) == numbers(5)


async def test_a_running_backend_that_does_not_look_is_stopped_between_its_results(start: Start) -> None:
    pair = await start("tts", "echo:Deaf")
    pair.ask(TtsRequest("x"))
    await soon(lambda: len(pair.got["s", 0]) > 3)
    pair.link.cancel("s", "g")
    await soon(lambda: pair.handles["a"].actor._host._run is None)


async def test_a_result_may_cancel_those_that_came_with_it(start: Start) -> None:
    pair = await start("llm")
    pair.on_result = lambda result: pair.link.cancel("s", "g")
    pair.ask(count(50))
    other = pair.ask(count(50), "t")
    pair.on_result = lambda result: pair.link.close("s") if pair.got["s", 0] else None
    assert words(await other) == numbers(50)
    assert len(pair.got["s", 0]) == 1


async def test_a_session_that_fails_on_a_result_does_not_hurt_another(start: Start) -> None:
    pair = await start("llm")

    def fail(result: Result) -> None:
        if result == LlmText("3 "):
            raise RuntimeError("session bug")

    pair.on_result = fail
    assert words(await pair.ask(count(10))) == numbers(10)


async def test_a_killed_replica_s_answer_goes_on_elsewhere(start: Start) -> None:
    pair = await start("llm", names="ab", step_s=0.002)
    answer = pair.ask(count(40))
    await soon(lambda: len(pair.got["s", 0]) > 5)
    pair.handles["a"].kill()
    assert words(await answer) == numbers(40)
    assert [name for name, _ in pair.dead] == ["a"]


async def test_work_waits_for_a_replacement_when_the_last_replica_dies(start: Start) -> None:
    pair = await start("llm", names="ab", step_s=0.002)
    pair.pool(2, "a")
    answer = pair.ask(count(40))
    await soon(lambda: len(pair.got["s", 0]) > 5)
    pair.handles["a"].kill()
    await soon(lambda: bool(pair.dead))
    assert not answer.done()
    pair.pool(3, "b")
    assert words(await answer) == numbers(40)


async def test_a_drained_replica_finishes_its_work_and_is_let_go(start: Start) -> None:
    pair = await start("llm", names="ab", step_s=0.002)
    answer = pair.ask(count(30))
    await soon(lambda: len(pair.got["s", 0]) > 2)
    pair.pool(2, "b")
    await pair.handles["a"].actor.drain()
    assert words(await answer) == numbers(30)
    assert pair.link.figures().redelivered == 0
    pair.handles["a"].kill()
    await asyncio.sleep(0)
    assert pair.dead == []


async def test_a_replica_without_a_sign_of_life_is_reported(start: Start) -> None:
    pair = await start(
        "stt", "echo:Echo", names="a", queue=QueueOptions(stage_timeout_s=0.05, max_attempts=1), step_s=1.0
    )
    (failed,) = await pair.ask(SttRequest(b""))
    assert isinstance(failed, Failed)
    assert pair.dead == [("a", "no sign of life for 0.05 s")]


async def test_a_full_outbox_answers_at_once(start: Start) -> None:
    pair = await start("llm", names="", queue=QueueOptions(outbox_items=1))
    pair.ask(count(1))
    (refused,) = await pair.ask(count(1), work=1)
    assert isinstance(refused, Failed) and "refused" in refused.message


async def test_a_gone_producer_ends_its_work(start: Start) -> None:
    pair = await start("llm", step_s=0.001)
    pair.ask(count(100_000))
    await soon(lambda: len(pair.got["s", 0]) > 3)
    pair.sink.kill()
    stage = pair.handles["a"].actor._host
    await soon(lambda: stage._inbox.idle and stage._run is None)


async def test_a_producer_that_is_away_for_a_moment_gets_everything(start: Start) -> None:
    pair = await start("llm", step_s=0.002)
    failures = iter([ActorUnavailableError("away"), ActorUnavailableError("away")])
    pair.sink.fail = lambda name: next(failures, None)
    assert words(await pair.ask(count(40))) == numbers(40)


async def test_sound_travels_in_small_pieces(start: Start) -> None:
    pair = await start("tts", "echo:Loud")
    results = await pair.ask(TtsRequest("x"))
    audio = [result.pcm for result in results if isinstance(result, TtsAudio)]
    assert len(b"".join(audio)) == 200_000 and max(map(len, audio)) <= 64_000
    assert results[-1] == TtsDone(100_000)


async def test_promotion_reaches_the_replica(start: Start) -> None:
    pair = await start("llm", step_s=0.002, max_batch=1)
    first = pair.ask(count(30))
    await soon(lambda: len(pair.got["s", 0]) > 2)
    pair.done["s", 1] = asyncio.get_running_loop().create_future()
    pair.got["s", 1] = []
    pair.link.submit("s", "later", 1, Rank.SPECULATIVE, 5.0, count(3))
    stage = pair.handles["a"].actor._host
    await soon(lambda: stage._inbox.figures(0.0).depth == 1)
    pair.link.promote("s", "later", 0.0)
    await soon(lambda: stage._inbox.figures(0.0).promoted == 1)
    assert words(await first) == numbers(30) and words(await pair.done["s", 1]) == numbers(3)


async def test_a_request_by_reference_is_fetched_and_a_lost_one_is_reported_missed(start: Start) -> None:
    pair = await start("stt", "echo:Echo")
    handle = pair.handles["a"]
    items = [Item(n, 1, "x", "s", "g", 0, 0.0, Reference(n)) for n in range(2)]
    items.append(Item(2, 1, "x", "s", "g", 0, 0.0, SttRequest(bytes(6))))

    async def fetched() -> bytes:
        return encode_request(SttRequest(bytes(200)))

    async def lost() -> bytes:
        raise OSError("its owner died")

    references = [Ref(fetched(), handle), Ref(lost(), handle)]
    got: list[Any] = []

    class Sink:
        async def results(self, stage: str, batch: bytes) -> None:
            got.extend(decode_returns(batch).results)

    reply = await handle.actor.deliver(
        encode_delivery(1, [encode_item(item) for item in items]), "x", Handle(Sink()), references
    )
    returns = decode_returns(reply)
    got.extend(returns.results)
    assert returns.missed == [1]
    await soon(lambda: len(got) == 2)
    assert sorted(numbered.result.text for numbered in got) == ["100", "3"]


async def test_a_large_request_is_put_in_the_object_store(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = await start("stt", "echo:Echo")

    async def stored(encoded: bytes) -> bytes:
        return encoded

    fake = SimpleNamespace(put=lambda encoded: Ref(stored(encoded), pair.sink), is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", fake)
    assert await pair.ask(SttRequest(bytes(400_000))) == [SttResult("200000")]


async def test_a_quick_stage_answers_in_the_reply(start: Start) -> None:
    pair = await start("stt", "echo:Echo")
    stage = pair.handles["a"].actor._host
    stage._run_s = 0.0
    called: list[str] = []
    pair.sink.fail = lambda name: called.append(name)
    assert await pair.ask(SttRequest(bytes(8))) == [SttResult("4")]
    assert called == []


async def test_waiting_producers_hear_that_the_model_gets_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.host.SIGN_OF_LIFE_S", 0.01)
    pair = await start("llm", step_s=0.001, max_batch=1)
    other = Pair("llm", pair.handles, QueueOptions(stage_timeout_s=0.4))
    first = pair.ask(count(300))
    await soon(lambda: len(pair.got["s", 0]) > 2)
    second = other.ask(count(2))
    assert words(await first) == numbers(300)
    assert words(await second) == numbers(2)
    assert other.dead == []
    other.link.stop()


async def test_figures_of_a_replica(start: Start) -> None:
    pair = await start("llm", step_s=0.002)
    answer = pair.ask(count(20))
    await soon(lambda: len(pair.got["s", 0]) > 2)
    figures = await pair.handles["a"].actor.figures()
    assert (figures.stage, figures.replica, figures.queue.working, figures.failures) == ("llm", "a", 1, 0)
    assert figures.busy_s > 0
    assert (await pair.handles["a"].actor.figures()).busy_s >= figures.busy_s, "whoever else has asked"
    await answer
