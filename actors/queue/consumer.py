"""The consumer half of the queue: the inbox of one replica.

Sans-I/O, like the producer half.  Items wait by rank and due time, whoever sent them; the replica takes as
many as it can work on, and every producer always has a place here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from actors.messages import Rank, Request, Result, SttRequest, is_final
from actors.queue.items import Item, ItemResult, Reference
from actors.queue.pace import Counts, Figures, overdue_s

REMEMBERED_ITEMS = 1024
"""Finished sendings kept for each producer, so that a duplicate is recognised."""


class Key(NamedTuple):
    """One sending of one item."""

    source: str
    id: int
    attempt: int


@dataclass(slots=True)
class Held:
    """An item that waits here or is worked on."""

    key: Key
    session: str
    generation: str
    rank: int
    due: float
    request: Request
    number: int
    """Of the delivery that it came with."""
    received_at: float
    index: int = 0
    """Index of the next result."""
    sent: list[Result] = field(default_factory=list)
    """Results that have gone out, for `request.resumed` should it have to start over here."""

    @property
    def order(self) -> tuple[int, float, float, Key]:
        return self.rank, self.due, self.received_at, self.key


@dataclass(frozen=True, slots=True)
class _Word:
    """A cancel, close or promotion that may have overtaken its items."""

    number: int
    session: str
    generation: str | None
    due: float | None
    """None: drop them."""

    def names(self, item: Item | Held, number: int) -> bool:
        """Whether it is about `item`, which came with delivery `number`."""
        return (
            number <= self.number
            and item.session == self.session
            and self.generation in (None, item.generation)
        )


@dataclass(slots=True)
class _Source:
    """What the inbox knows of one producer."""

    seen: int = 0
    """All deliveries up to this number have been seen."""
    ahead: set[int] = field(default_factory=set)
    """Deliveries seen beyond the first gap."""
    received: int = 0
    limit: int = 1
    words: list[_Word] = field(default_factory=list)
    finished: dict[tuple[int, int], None] = field(default_factory=dict)
    replaced: list[int] = field(default_factory=list)
    recalled: list[int] = field(default_factory=list)


class Inbox:
    """What one replica has to do."""

    def __init__(self, max_batch: int, continuous: bool = False) -> None:
        self._max_batch = max_batch
        self._continuous = continuous
        self._waiting: dict[Key, Held] = {}
        self._running: dict[Key, Held] = {}
        self._sources: dict[str, _Source] = {}
        self._counts = Counts()

    def receive(
        self, source: str, number: int, items: Iterable[Item], now: float, missed: int = 0
    ) -> list[Key]:
        """Take delivery `number` of `source`, less the `missed` items that could not be fetched.

        Returns running items to stop, which a newer attempt overtook.
        """
        state = self._source(source)
        if number <= state.seen or number in state.ahead:
            self._counts.dropped += 1
            return []
        stop: list[Key] = []
        state.received += missed
        for item in items:
            state.received += 1
            stop += self._admit(state, item, number, now)
        state.ahead.add(number)
        while state.seen + 1 in state.ahead:
            state.seen += 1
            state.ahead.remove(state.seen)
        state.words = [word for word in state.words if word.number > state.seen]
        return stop

    def take(self, now: float) -> list[Held]:
        """The items to work on next: those due first, as many as there is room for."""
        if self._running and not self._continuous:
            return []
        room = self._max_batch - len(self._running)
        if room <= 0 or not self._waiting:
            return []
        taken = sorted(self._waiting.values(), key=lambda held: held.order)[:room]
        for held in taken:
            self._running[held.key] = self._waiting.pop(held.key)
            self._counts.gave_on(now - held.received_at, now - held.due)
        self._counts.batch_size.add(len(self._running))
        return taken

    def put_back(self, key: Key) -> None:
        """An item that was taken but never begun waits again."""
        held = self._running.pop(key, None)
        if held is not None:
            self._waiting[key] = held

    def running(self, key: Key) -> Held | None:
        return self._running.get(key)

    def result(self, key: Key, result: Result) -> ItemResult | None:
        """Number `result`, and finish the item if it is final; None: nobody wants it any more."""
        held = self._running.get(key)
        if held is None:
            self._counts.dropped += 1
            return None
        numbered = ItemResult(key.id, key.attempt, held.index, result)
        held.index += 1
        held.sent.append(result)
        if is_final(result):
            self._counts.finished += 1
            self._finish(key)
        return numbered

    def cancel(self, source: str, session: str, generation: str, number: int) -> list[Key]:
        """Drop `generation`, in deliveries up to `number`; returns the running items to stop."""
        return self._drop(source, _Word(number, session, generation, None))

    def close(self, source: str, session: str, number: int) -> list[Key]:
        """Drop everything of `session`, in deliveries up to `number`; returns the running items to stop."""
        return self._drop(source, _Word(number, session, None, None))

    def promote(
        self, source: str, session: str, generation: str, due_in_s: float, number: int, now: float
    ) -> None:
        """Make `generation` confirmed work, in deliveries up to `number`."""
        state = self._source(source)
        word = _Word(number, session, generation, now + due_in_s)
        for held in (*self._waiting.values(), *self._running.values()):
            if held.key.source == source and word.names(held, held.number):
                self._counts.promoted += 1
                held.rank, held.due = int(Rank.CONFIRMED), now + due_in_s
        if number > state.seen:
            state.words.append(word)

    def recall(self, source: str, item: int) -> None:
        """Give `item` back to its producer, if it still waits."""
        for key in [key for key in self._waiting if key[:2] == (source, item)]:
            del self._waiting[key]
            self._source(source).recalled.append(item)

    def end(self, source: str) -> list[Key]:
        """The producer is gone: drop all its work; returns the running items to stop."""
        self._sources.pop(source, None)
        return self._remove(lambda held: held.key.source == source)

    def limit(self, source: str) -> int:
        """The credit of `source`: how many items it may have sent, all in all."""
        state = self._source(source)
        waiting = sum(key.source == source for key in self._waiting)
        others = {key.source for key in (*self._waiting, *self._running)} - {source}
        next_batch = self._max_batch - len(self._running) if self._continuous else self._max_batch
        places = max(1, next_batch // (len(others) + 1))
        state.limit = max(state.limit, state.received + places - waiting)
        return state.limit

    def gone(self, source: str) -> tuple[list[int], list[int]]:
        """Items of `source` that gave way to newer ones, and those given back, since the last call."""
        state = self._source(source)
        replaced, recalled = state.replaced, state.recalled
        state.replaced, state.recalled = [], []
        return replaced, recalled

    def owes(self, source: str, told: int) -> bool:
        """Whether `source` should hear something that is no result, having been told a limit of `told`."""
        state = self._source(source)
        return bool(state.replaced or state.recalled) or self.limit(source) > told

    @property
    def sources(self) -> set[str]:
        """Producers with work here."""
        return {key.source for key in (*self._waiting, *self._running)}

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._running

    def figures(self, now: float) -> Figures:
        oldest = min((held.received_at for held in self._waiting.values()), default=now)
        late_s = overdue_s(self._waiting.values(), now)
        return self._counts.figures(len(self._waiting), len(self._running), now - oldest, late_s)

    def _source(self, source: str) -> _Source:
        return self._sources.setdefault(source, _Source())

    def _admit(self, state: _Source, item: Item, number: int, now: float) -> list[Key]:
        key = Key(item.source, item.id, item.attempt)
        known = [k for k in (*self._waiting, *self._running) if k[:2] == key[:2]]
        if (item.id, item.attempt) in state.finished or any(k.attempt >= item.attempt for k in known):
            self._counts.dropped += 1
            return []
        stop = self._remove(lambda held: held.key in known) if known else []
        rank, due = item.rank, now + item.due_in_s
        for word in state.words:
            if word.names(item, number):
                if word.due is None:
                    self._counts.cancelled += 1
                    return stop
                self._counts.promoted += 1
                rank, due = int(Rank.CONFIRMED), word.due
        assert not isinstance(item.payload, Reference), "references are fetched before the inbox"
        held = Held(key, item.session, item.generation, rank, due, item.payload, number, now)
        if isinstance(held.request, SttRequest) and held.request.interim:
            self._replace_interim(state, held)
        self._waiting[key] = held
        return stop

    def _replace_interim(self, state: _Source, newer: Held) -> None:
        for held in list(self._waiting.values()):
            if (
                held.key.source == newer.key.source
                and held.session == newer.session
                and held.generation == newer.generation
                and isinstance(held.request, SttRequest)
                and held.request.interim
            ):
                self._counts.dropped += 1
                state.replaced.append(held.key.id)
                del self._waiting[held.key]

    def _drop(self, source: str, word: _Word) -> list[Key]:
        state = self._source(source)
        if word.number > state.seen:
            state.words.append(word)
        return self._remove(lambda held: held.key.source == source and word.names(held, held.number))

    def _remove(self, chosen: Callable[[Held], bool]) -> list[Key]:
        """Drop the chosen items; returns those that were running."""
        stop = [key for key, held in self._running.items() if chosen(held)]
        wait = [key for key, held in self._waiting.items() if chosen(held)]
        self._counts.cancelled += len(stop) + len(wait)
        for key in wait:
            del self._waiting[key]
        for key in stop:
            self._finish(key)
        return stop

    def _finish(self, key: Key) -> None:
        del self._running[key]
        state = self._sources.get(key.source)
        if state is not None:
            state.finished[(key.id, key.attempt)] = None
            if len(state.finished) > REMEMBERED_ITEMS:
                del state.finished[next(iter(state.finished))]
