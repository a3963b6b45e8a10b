"""Producers, replicas and an unkind network, walked at random: nothing is lost, doubled, starved or out of order."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.messages import (
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    Rank,
    SttRequest,
    SttResult,
)
from actors.queue.core import Control, Held, Inbox, ItemResult, Key, Outcome, Producer, QueueOptions, Returns
from actors.queue.items import decode_delivery

TOKENS = 4
SOURCES = ("g", "h")


class Host:
    """A replica: an inbox, and a model that gives one token a step."""

    def __init__(self, name: str, max_batch: int, continuous: bool) -> None:
        self.name = name
        self.inbox = Inbox(max_batch, continuous)
        self.max_batch = max_batch
        self.at: dict[Key, tuple[Held, int]] = {}

    def begin(self, now: float) -> None:
        before = dict(self.inbox._waiting)
        taken = self.inbox.take(now)
        left = [held for key, held in before.items() if key not in {held.key for held in taken}]
        if taken and left:
            assert max(held.order for held in taken) < min(held.order for held in left)
        for held in taken:
            done = held.request.delivered_tokens if isinstance(held.request, LlmRequest) else 0
            self.at[held.key] = held, done

    def step(self) -> dict[str, list[ItemResult]]:
        out: dict[str, list[ItemResult]] = defaultdict(list)
        for key, (held, token) in list(self.at.items()):
            if self.inbox.running(key) is None:
                del self.at[key]
                continue
            if isinstance(held.request, SttRequest):
                result: LlmText | LlmDone | SttResult = SttResult("heard")
            elif token == TOKENS:
                result = LlmDone("stop")
            else:
                result = LlmText(f"{token} ")
            numbered = self.inbox.result(key, result)
            assert numbered is not None
            out[key.source].append(numbered)
            if self.inbox.running(key) is None:
                del self.at[key]
            else:
                self.at[key] = held, token + 1
        return out


class Walk:
    """One random walk."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.max_batch = self.random.choice([1, 2, 3])
        self.continuous = self.random.random() < 0.5
        options = QueueOptions(
            outbox_items=8,
            affinity_wait_s=self.random.choice([0.0, 0.05]),
            max_attempts=3,
            give_up_s=1e9,
        )
        self.producers = {source: Producer("llm", source, options) for source in SOURCES}
        self.hosts: dict[str, Host] = {}
        self.started = self.version = self.work = 0
        # on the network: deliveries, words, answers to deliveries, returns
        self.deliveries: list[tuple[str, str, bytes]] = []
        self.delivered: list[tuple[str, str, bytes]] = []
        self.words: list[tuple[str, str, Control]] = []
        self.answers: list[tuple[str, Returns]] = []
        self.returns: list[tuple[str, Returns]] = []
        self.seen: list[tuple[str, Returns]] = []
        self.told: dict[tuple[str, str], int] = {}
        self.open: dict[tuple[str, str, int], str] = {}
        self.text: dict[tuple[str, str, int], str] = defaultdict(str)
        self.losses: dict[tuple[str, str, int], int] = defaultdict(int)
        self.interims: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        self.replica_starts()
        self.replica_starts()

    def step(self) -> None:
        """One thing happens."""
        happenings = {
            self.submit: 8,
            self.pump: 12,
            self.delivery_arrives: 12,
            self.model_steps: 16,
            self.answer_arrives: 12,
            self.returns_arrive: 16,
            self.word_arrives: 6,
            self.time_passes: 6,
            self.cancel: 2,
            self.promote: 2,
            self.close: 1,
            self.delivery_arrives_again: 1,
            self.returns_arrive_again: 3,
            self.replica_dies: 1,
            self.replica_starts: 1,
            self.replica_drains: 1,
        }
        (happening,) = self.random.choices(list(happenings), list(happenings.values()))
        happening()
        self.nothing_piles_up_in_an_inbox()

    def submit(self) -> None:
        source, session, generation = self._names()
        self.work += 1
        interim = self.random.random() < 0.2
        request = SttRequest(b"", interim=True) if interim else LlmRequest([], max_tokens=TOKENS)
        producer = self.producers[source]
        full = producer.figures(self.now).depth >= 8
        rank, due = self.random.choice(list(Rank)), self.random.uniform(-1, 5)
        refused = producer.submit(session, generation, self.work, rank, due, request, self.now)
        assert bool(refused) == full
        if not refused:
            self.open[source, session, self.work] = generation
            if interim:
                self.interims[source, session, generation].append(self.work)

    def cancel(self) -> None:
        source, session, generation = self._names()
        for say in self.producers[source].cancel(session, generation):
            self.words.append((source, say.replica, say.control))
        self._drop(source, session, generation)

    def promote(self) -> None:
        source, session, generation = self._names()
        for say in self.producers[source].promote(session, generation, 0.0, self.now):
            self.words.append((source, say.replica, say.control))

    def close(self) -> None:
        source, session, _ = self._names()
        for say in self.producers[source].close(session):
            self.words.append((source, say.replica, say.control))
        for generation in ("1", "2"):
            self._drop(source, session, generation)

    def time_passes(self) -> None:
        self.now += self.random.choice([0.001, 0.02, 0.2])

    def pump(self, source: str | None = None) -> None:
        source = source or self.random.choice(SOURCES)
        producer = self.producers[source]
        for outgoing in producer.take(self.now):
            self.deliveries.append((source, outgoing.replica, outgoing.batch))
        for say in producer.recall():
            self.words.append((source, say.replica, say.control))

    def delivery_arrives(self) -> None:
        if self.deliveries:
            source, replica, batch = self._pick(self.deliveries)
            self.delivered.append((source, replica, batch))
            self._receive(source, replica, batch)

    def delivery_arrives_again(self) -> None:
        if self.delivered:
            source, replica, batch = self.random.choice(self.delivered)
            host = self.hosts.get(replica)
            if host is not None:
                delivery = decode_delivery(batch)
                host.inbox.receive(source, delivery.number, delivery.items, self.now)

    def word_arrives(self) -> None:
        if self.words:
            self._hear(*self._pick(self.words))

    def model_steps(self) -> None:
        self._work(self.random.choice(list(self.hosts.values())))

    def answer_arrives(self) -> None:
        if self.answers:
            source, returns = self._pick(self.answers)
            self._outcomes(source, self.producers[source].answered(returns.replica, returns, self.now))

    def returns_arrive(self) -> None:
        if self.returns:
            source, returns = self._pick(self.returns)
            self.seen.append((source, returns))
            self._outcomes(source, self.producers[source].returned(returns, self.now))

    def returns_arrive_again(self) -> None:
        if self.seen:
            source, returns = self.random.choice(self.seen)
            self._outcomes(source, self.producers[source].returned(returns, self.now))

    def replica_dies(self) -> None:
        if len(self.hosts) > 1:
            self._kill(self.random.choice(list(self.hosts)))

    def replica_starts(self) -> None:
        if len(self.hosts) == 3:
            return
        self.started += 1
        name = f"r{self.started}"
        self.hosts[name] = Host(name, self.max_batch, self.continuous)
        self._push_pool()

    def replica_drains(self) -> None:
        name = self.random.choice(list(self.hosts))
        self.version += 1
        for producer in self.producers.values():
            pool = {host: self.max_batch for host in self.hosts if host != name}
            producer.set_pool(self.version, pool, self.now)

    def nothing_piles_up_in_an_inbox(self) -> None:
        for host in self.hosts.values():
            for source in SOURCES:
                waiting = sum(key.source == source for key in host.inbox._waiting)
                assert waiting <= self.max_batch

    def end(self) -> None:
        """Once the network is kind, everything that was asked for is done."""
        self.replica_starts()
        self._push_pool()
        for _ in range(400):
            if not (self.deliveries or self.answers or self.returns) and self._idle():
                break
            self.now += 0.1
            for source in SOURCES:
                self.pump(source)
            while self.deliveries:
                self._receive(*self.deliveries.pop(0))
            while self.words:
                self._hear(*self.words.pop(0))
            for host in self.hosts.values():
                self._work(host)
            for box, take in ((self.answers, True), (self.returns, False)):
                while box:
                    source, returns = box.pop(0)
                    producer = self.producers[source]
                    if take:
                        self._outcomes(source, producer.answered(returns.replica, returns, self.now))
                    else:
                        self._outcomes(source, producer.returned(returns, self.now))
        replaced = {
            (source, session, work)
            for (source, session, _), works in self.interims.items()
            for work in works[:-1]
        }
        assert set(self.open) <= replaced, "work was lost"
        assert self._idle()

    def _idle(self) -> bool:
        return all(producer.idle for producer in self.producers.values()) and all(
            host.inbox.idle for host in self.hosts.values()
        )

    def _names(self) -> tuple[str, str, str]:
        return self.random.choice(SOURCES), self.random.choice("st"), self.random.choice("12")

    def _pick(self, network: list[Any]) -> Any:
        return network.pop(self.random.randrange(len(network)))

    def _push_pool(self) -> None:
        self.version += 1
        for producer in self.producers.values():
            producer.set_pool(self.version, {name: self.max_batch for name in self.hosts}, self.now)

    def _receive(self, source: str, replica: str, batch: bytes) -> None:
        host = self.hosts.get(replica)
        if host is None:
            return
        delivery = decode_delivery(batch)
        host.inbox.receive(source, delivery.number, delivery.items, self.now)
        host.begin(self.now)
        replaced, recalled = host.inbox.gone(source)
        returns = Returns(replica, host.inbox.limit(source), [], replaced, recalled)
        self.answers.append((source, returns))

    def _hear(self, source: str, replica: str, control: Control) -> None:
        host = self.hosts.get(replica)
        if host is None:
            return
        inbox, number = host.inbox, control.number
        match control.verb:
            case "cancel":
                inbox.cancel(source, control.session, control.generation, number)
            case "close":
                inbox.close(source, control.session, number)
            case "promote":
                inbox.promote(source, control.session, control.generation, 0.0, number, self.now)
            case "recall":
                inbox.recall(source, control.item)
        self._tell(host, {})

    def _work(self, host: Host) -> None:
        host.begin(self.now)
        results = host.step()
        host.begin(self.now)
        self._tell(host, results)

    def _tell(self, host: Host, results: dict[str, list[ItemResult]]) -> None:
        for source in SOURCES:
            told = self.told.get((source, host.name), 0)
            if results.get(source) or host.inbox.owes(source, told):
                gone = host.inbox.gone(source)
                limit = self.told[source, host.name] = host.inbox.limit(source)
                self.returns.append((source, Returns(host.name, limit, results.get(source, []), *gone)))

    def _kill(self, name: str) -> None:
        del self.hosts[name]
        self.answers = [(source, returns) for source, returns in self.answers if returns.replica != name]
        for source, producer in self.producers.items():
            for entry in producer._bound.values():
                if entry.replica == name:
                    self.losses[source, entry.session, entry.work] += 1
            self._outcomes(source, producer.lost(name, self.now))

    def _drop(self, source: str, session: str, generation: str) -> None:
        for key in [
            key for key, of in self.open.items() if key[:2] == (source, session) and of == generation
        ]:
            del self.open[key]

    def _outcomes(self, source: str, outcomes: list[Outcome]) -> None:
        for session, generation, work, result in outcomes:
            key = source, session, work
            assert self.open.get(key) == generation, "a result of cancelled or finished work"
            match result:
                case LlmText(text):
                    self.text[key] += text
                    assert "0 1 2 3 ".startswith(self.text[key])
                case LlmDone():
                    assert self.text[key] == "0 1 2 3 "
                    del self.open[key]
                case Failed():
                    assert self.losses[key] == 3
                    del self.open[key]
                case SttResult():
                    del self.open[key]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_lost_doubled_starved_or_out_of_order(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(150):
        walk.step()
    walk.end()
