"""Producers, replicas and an unkind network, walked at random: nothing is lost, doubled, starved or out of order."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

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
SESSIONS = st.sampled_from(["s", "t"])
GENERATIONS = st.sampled_from(["1", "2"])


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


class Queue(RuleBasedStateMachine):
    @initialize(max_batch=st.integers(1, 3), continuous=st.booleans(), affinity=st.booleans())
    def start(self, max_batch: int, continuous: bool, affinity: bool) -> None:
        self.now = 0.0
        self.max_batch = max_batch
        self.continuous = continuous
        options = QueueOptions(
            outbox_items=8, affinity_wait_s=0.05 if affinity else 0.0, max_attempts=3, give_up_s=1e9
        )
        self.producers = {source: Producer("llm", source, options) for source in SOURCES}
        self.hosts: dict[str, Host] = {}
        self.started = self.version = self.work = 0
        # in the network: deliveries, words, answers to deliveries, returns
        self.deliveries: list[tuple[str, str, bytes]] = []
        self.delivered: list[tuple[str, str, bytes]] = []
        self.words: list[tuple[str, str, Control]] = []
        self.answers: list[tuple[str, Returns]] = []
        self.returns: list[tuple[str, Returns]] = []
        self.open: dict[tuple[str, str, int], str] = {}
        self.text: dict[tuple[str, str, int], str] = defaultdict(str)
        self.told: dict[tuple[str, str], int] = {}
        self.losses: dict[tuple[str, str, int], int] = defaultdict(int)
        self.interims: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        self.replica_starts()
        self.replica_starts()

    @rule(
        source=st.sampled_from(SOURCES),
        session=SESSIONS,
        generation=GENERATIONS,
        rank=st.sampled_from(list(Rank)),
        due=st.floats(-1, 5),
        interim=st.booleans(),
    )
    def submit(
        self, source: str, session: str, generation: str, rank: Rank, due: float, interim: bool
    ) -> None:
        self.work += 1
        request = SttRequest(b"", interim=True) if interim else LlmRequest([], max_tokens=TOKENS)
        producer = self.producers[source]
        full = producer.figures(self.now).depth >= 8
        refused = producer.submit(session, generation, self.work, rank, due, request, self.now)
        assert bool(refused) == full
        if refused:
            assert isinstance(refused[0].result, Failed)
            return
        self.open[source, session, self.work] = generation
        if interim:
            self.interims[source, session, generation].append(self.work)

    @rule(source=st.sampled_from(SOURCES), session=SESSIONS, generation=GENERATIONS)
    def cancel(self, source: str, session: str, generation: str) -> None:
        for say in self.producers[source].cancel(session, generation):
            self.words.append((source, say.replica, say.control))
        self._drop(source, session, generation)

    @rule(source=st.sampled_from(SOURCES), session=SESSIONS, generation=GENERATIONS)
    def promote(self, source: str, session: str, generation: str) -> None:
        for say in self.producers[source].promote(session, generation, 0.0, self.now):
            self.words.append((source, say.replica, say.control))

    @rule(source=st.sampled_from(SOURCES), session=SESSIONS)
    def close(self, source: str, session: str) -> None:
        for say in self.producers[source].close(session):
            self.words.append((source, say.replica, say.control))
        for generation in ("1", "2"):
            self._drop(source, session, generation)

    @rule(seconds=st.sampled_from([0.001, 0.02, 0.2]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(source=st.sampled_from(SOURCES))
    def pump(self, source: str) -> None:
        producer = self.producers[source]
        for outgoing in producer.take(self.now):
            self.deliveries.append((source, outgoing.replica, outgoing.batch))
        for say in producer.recall():
            self.words.append((source, say.replica, say.control))

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data())
    def delivery_arrives(self, data: st.DataObject) -> None:
        source, replica, batch = self._pick(data, self.deliveries)
        self.delivered.append((source, replica, batch))
        self._receive(source, replica, batch)

    @precondition(lambda self: self.delivered)
    @rule(data=st.data())
    def delivery_arrives_again(self, data: st.DataObject) -> None:
        source, replica, batch = data.draw(st.sampled_from(self.delivered))
        host = self.hosts.get(replica)
        if host is not None:
            host.inbox.receive(source, decode_delivery(batch).number, decode_delivery(batch).items, self.now)

    @precondition(lambda self: self.words)
    @rule(data=st.data())
    def word_arrives(self, data: st.DataObject) -> None:
        source, replica, control = self._pick(data, self.words)
        self._hear(source, replica, control)

    @precondition(lambda self: self.hosts)
    @rule(data=st.data())
    def model_steps(self, data: st.DataObject) -> None:
        host = self.hosts[data.draw(st.sampled_from(sorted(self.hosts)))]
        self._work(host)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer_arrives(self, data: st.DataObject) -> None:
        source, returns = self._pick(data, self.answers)
        self._outcomes(source, self.producers[source].answered(returns.replica, returns, self.now))

    @precondition(lambda self: self.returns)
    @rule(data=st.data(), again=st.booleans())
    def returns_arrive(self, data: st.DataObject, again: bool) -> None:
        source, returns = self._pick(data, self.returns)
        for _ in range(1 + again):
            self._outcomes(source, self.producers[source].returned(returns, self.now))

    @precondition(lambda self: self.hosts)
    @rule(data=st.data())
    def replica_dies(self, data: st.DataObject) -> None:
        self._kill(data.draw(st.sampled_from(sorted(self.hosts))))

    @precondition(lambda self: len(self.hosts) < 3)
    @rule()
    def replica_starts(self) -> None:
        self.started += 1
        name = f"r{self.started}"
        self.hosts[name] = Host(name, self.max_batch, self.continuous)
        self._push_pool()

    @precondition(lambda self: len(self.hosts) > 1)
    @rule(data=st.data())
    def replica_drains(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.hosts)))
        self.version += 1
        for producer in self.producers.values():
            pool = {host: self.max_batch for host in self.hosts if host != name}
            producer.set_pool(self.version, pool, self.now)

    @invariant()
    def nothing_piles_up_in_an_inbox(self) -> None:
        for host in getattr(self, "hosts", {}).values():
            for source in SOURCES:
                waiting = sum(key.source == source for key in host.inbox._waiting)
                assert waiting <= self.max_batch

    def teardown(self) -> None:
        """Once the network is kind, everything that was asked for is done."""
        if not hasattr(self, "hosts"):
            return
        self.replica_starts()
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

    def _pick(self, data: st.DataObject, network: list) -> tuple:  # type: ignore[type-arg]
        return network.pop(data.draw(st.integers(0, len(network) - 1)))

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


Queue.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestQueue = Queue.TestCase
