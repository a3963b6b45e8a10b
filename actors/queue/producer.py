"""The producer half of the queue: one outbox a stage, and what each replica has of it.

Sans-I/O: calls come in with the time, and what there is to send, say or deliver goes out as values.  An item
is bound to a replica only when that has room for it, stays here until its last result came, and is sent again
when its replica is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from actors.messages import Failed, Rank, Request, SttRequest, is_final
from actors.queue.items import (
    MAX_BATCH_BYTES,
    Control,
    Item,
    Reference,
    Returns,
    encode_delivery,
    encode_item,
    encode_request,
)
from actors.queue.outbox import Bound, Draft, Entry, Outcome, Outgoing, QueueOptions, Say
from actors.queue.pace import Counts, Figures, overdue_s


class Producer:
    """The outbox of one stage in one gateway."""

    def __init__(self, stage: str, source: str, options: QueueOptions | None = None) -> None:
        self.stage = stage
        self.source = source
        self.options = options or QueueOptions()
        self._waiting: dict[int, Entry] = {}
        self._bound: dict[int, Entry] = {}
        self._replicas: dict[str, Bound] = {}
        self._retired: dict[str, Bound] = {}
        self._lost: set[str] = set()
        self._version = -1
        self._sessions: dict[str, int] = {}
        self._next_session = 0
        self._last_used: dict[str, str] = {}
        self._counts = Counts()

    def set_pool(self, version: int, replicas: Mapping[str, int], now: float) -> None:
        """Take `replicas` (id → max_batch) as the pool; an older version than the last is ignored.

        A replica that left the pool gets no new items, and what it has may finish: it is being drained.
        """
        if version < self._version:
            return
        self._version = version
        self._lost &= set(replicas)
        for name, max_batch in replicas.items():
            if name in self._lost:
                continue
            replica = self._replicas.get(name) or self._retired.pop(name, Bound(name, max_batch, sign_at=now))
            self._replicas[name] = replica
            replica.max_batch = max_batch
            replica.in_pool = True
        for name, replica in list(self._replicas.items()):
            if name not in replicas:
                replica.in_pool = False
                self._retire(replica)

    def submit(
        self,
        session: str,
        generation: str,
        work: int,
        rank: int,
        due_in_s: float,
        request: Request,
        now: float,
    ) -> list[Outcome]:
        """Queue `request`; with the outbox full it fails at once.

        A newer interim transcription takes the place of an older one of the same generation that still waits;
        the older one gets no result.
        """
        if len(self._waiting) >= self.options.outbox_items:
            self._counts.refused += 1
            message = (
                f"{self.stage}: {len(self._waiting)} requests wait already, as many as may; "
                "this one was refused. Add replicas, or take fewer sessions."
            )
            return [Outcome(session, generation, work, Failed(message))]
        number = self._sessions.get(session)
        if number is None:
            number = self._sessions[session] = self._next_session
            self._next_session += 1
        name = number << 32 | work
        if name in self._waiting or name in self._bound:
            raise ValueError(f"{self.stage}: work {work} of session {session} was submitted twice")
        if isinstance(request, SttRequest) and request.interim:
            self._replace_interim(session, generation)
        self._waiting[name] = Entry(name, session, work, generation, int(rank), now + due_in_s, request, now)
        return []

    def cancel(self, session: str, generation: str) -> list[Say]:
        """Drop everything of `generation`: no result of it is delivered from now on."""
        return self._drop("cancel", session, generation)

    def close(self, session: str) -> list[Say]:
        """Drop everything of `session`, and forget it."""
        controls = self._drop("close", session, None)
        self._sessions.pop(session, None)
        self._last_used.pop(session, None)
        return controls

    def promote(self, session: str, generation: str, due_in_s: float, now: float) -> list[Say]:
        """Somebody waits for `generation` now: rank `CONFIRMED`, due in `due_in_s`."""
        controls: dict[str, Say] = {}
        for entry in (*self._waiting.values(), *self._bound.values()):
            if entry.session == session and entry.generation == generation:
                entry.rank = int(Rank.CONFIRMED)
                entry.due = now + due_in_s
                self._counts.promoted += 1
                if entry.replica is not None:
                    number = self._replicas[entry.replica].number
                    control = Control("promote", session, generation, due_in_s, number)
                    controls[entry.replica] = Say(entry.replica, control)
        return list(controls.values())

    def take(self, now: float) -> list[Outgoing]:
        """Bind what waits to replicas with room, by rank and due time, and return the deliveries to make."""
        drafts = self._drafts(now)
        if not any(draft.ready for draft in drafts.values()):
            return []
        for entry in sorted(self._waiting.values(), key=lambda entry: entry.order):
            replica = self._choose(entry, drafts, now)
            if replica is None:
                if not any(draft.ready and draft.room > 0 for draft in drafts.values()):
                    break
                continue
            draft = drafts[replica.id]
            draft.room -= 1
            if draft.ready:
                self._bind(entry, replica, draft, now)
        return [self._send(self._replicas[name], draft, now) for name, draft in drafts.items() if draft.items]

    def recall(self) -> list[Say]:
        """Ask items back that wait behind a busy replica while another one is idle."""
        idle = sum(
            replica.in_pool and not replica.has and not replica.in_flight
            for replica in self._replicas.values()
        )
        if not idle or self._waiting:
            return []
        idle -= sum(entry.recalled for entry in self._bound.values())
        says: list[Say] = []
        for replica in self._replicas.values():
            behind = len(replica.has) - replica.max_batch
            if behind > 0 and not replica.in_flight:
                entries = sorted((self._bound[item] for item in replica.has), key=lambda entry: entry.order)
                for entry in entries[: -behind - 1 : -1]:
                    if not entry.recalled and not entry.delivered and len(says) < idle:
                        entry.recalled = True
                        control = Control("recall", entry.session, "", 0.0, replica.number, entry.id)
                        says.append(Say(replica.id, control))
        return says

    def hold(self, item: int, held: object) -> None:
        """Keep `held` until the ack of `item`."""
        entry = self._bound.get(item)
        if entry is not None:
            entry.held = held

    def answered(self, replica: str, returns: Returns, now: float) -> list[Outcome]:
        """A replica's answer to its delivery."""
        state = self._replicas.get(replica)
        if state is not None and state.in_flight:
            state.in_flight = False
            state.pace.answered(now - state.sent_at)
            self._retire(state)
        return self.returned(returns, now)

    def returned(self, returns: Returns, now: float) -> list[Outcome]:
        """Results and credit from a replica."""
        state = self._replicas.get(returns.replica)
        if state is not None:
            state.sign_at = now
            state.limit = max(state.limit, returns.limit)
        outcomes: list[Outcome] = []
        for returned in returns.results:
            entry = self._bound.get(returned.id)
            if entry is None or returned.attempt != entry.attempt or self._seen(entry, returned.index):
                self._counts.dropped += 1
                continue
            entry.early[returned.index] = returned.result
            self._accept(entry, now, outcomes)
        for item in returns.replaced:
            if (entry := self._bound.get(item)) is not None and entry.replica == returns.replica:
                self._counts.dropped += 1
                self._forget(entry)
        for item in returns.recalled:
            if (entry := self._bound.get(item)) is not None and entry.replica == returns.replica:
                entry.left = entry.replica
                self._requeue(entry, now)
        for item in returns.missed:
            if (entry := self._bound.get(item)) is not None and entry.replica == returns.replica:
                cause = f"its {len(encode_request(entry.request))} bytes could not be fetched"
                self._again(entry, cause, now, outcomes)
        return outcomes

    def lost(self, replica: str, now: float) -> list[Outcome]:
        """`replica` is dead: what it had is rebuilt from what was delivered and queued again.

        Where one of its items had already been at another that died, that one is to blame, and no other.
        """
        state = self._replicas.pop(replica, None)
        if state is None:
            return []
        self._lost.add(replica)
        outcomes: list[Outcome] = []
        for item in sorted(state.has):
            entry = self._bound[item]
            if state.suspect in (None, item):
                entry.suspect = True
                self._again(entry, f"replica {replica} was lost while working on it", now, outcomes)
            else:
                self._requeue(entry, now)
                self._counts.redelivered += 1
        return outcomes

    def stuck(self, now: float) -> list[str]:
        """Replicas that hold items and gave no sign for the stage timeout."""
        return [
            replica.id
            for replica in self._replicas.values()
            if (replica.has or replica.in_flight) and now - replica.sign_at > self.options.stage_timeout_s
        ]

    def expire(self, now: float) -> list[Outcome]:
        """Fail what has waited longer than `give_up_s`."""
        outcomes: list[Outcome] = []
        for entry in list(self._waiting.values()):
            if now - entry.queued_at > self.options.give_up_s:
                pool = sum(replica.in_pool for replica in self._replicas.values())
                message = (
                    f"{self.stage}: no replica took the request in {self.options.give_up_s:g} s "
                    f"({pool} in the pool)."
                )
                self._fail(entry, message, outcomes)
        return outcomes

    def wake_at(self, now: float) -> float | None:
        """When `take` may have something that it does not have now, if nothing else happens."""
        if not self._waiting:
            return None
        times = [
            replica.sent_at + replica.pace.tick_s(now)
            for replica in self._replicas.values()
            if replica.in_pool and not replica.in_flight and replica.sent < replica.limit
        ]
        if self.options.affinity_wait_s:
            times += [entry.queued_at + self.options.affinity_wait_s for entry in self._waiting.values()]
        return min((time for time in times if time > now), default=None)

    @property
    def replicas(self) -> frozenset[str]:
        """Replicas that may be given items, or still have some."""
        return frozenset(self._replicas)

    @property
    def sessions(self) -> list[str]:
        return list(self._sessions)

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._bound

    def figures(self, now: float) -> Figures:
        oldest = min((entry.queued_at for entry in self._waiting.values()), default=now)
        late_s = overdue_s(self._waiting.values(), now)
        return self._counts.figures(len(self._waiting), len(self._bound), now - oldest, late_s)

    def _replace_interim(self, session: str, generation: str) -> None:
        for entry in list(self._waiting.values()):
            if (
                entry.session == session
                and entry.generation == generation
                and isinstance(entry.request, SttRequest)
                and entry.request.interim
            ):
                self._counts.dropped += 1
                self._forget(entry)

    def _drop(self, verb: Literal["cancel", "close"], session: str, generation: str | None) -> list[Say]:
        controls: dict[str, Say] = {}
        for entry in [*self._waiting.values(), *self._bound.values()]:
            if entry.session == session and generation in (None, entry.generation):
                self._counts.cancelled += 1
                if entry.replica is not None:
                    number = self._replicas[entry.replica].number
                    control = Control(verb, session, generation or "", 0.0, number)
                    controls[entry.replica] = Say(entry.replica, control)
                self._forget(entry)
        return list(controls.values())

    def _drafts(self, now: float) -> dict[str, Draft]:
        return {
            replica.id: Draft(
                room=replica.limit - replica.sent,
                ready=not replica.in_flight and now >= replica.sent_at + replica.pace.tick_s(now),
            )
            for replica in self._replicas.values()
            if replica.in_pool and replica.limit > replica.sent
        }

    def _choose(self, entry: Entry, drafts: Mapping[str, Draft], now: float) -> Bound | None:
        """The replica to bind `entry` to; None: it waits."""
        free = [self._replicas[name] for name, draft in drafts.items() if draft.room > 0]
        if entry.suspect:
            free = [replica for replica in free if replica.suspect is None]
        preferred = self._last_used.get(entry.session) if self.options.affinity_wait_s else None
        if preferred in self._replicas and self._replicas[preferred].in_pool and preferred != entry.left:
            for replica in free:
                if replica.id == preferred:
                    return replica
            if now < entry.queued_at + self.options.affinity_wait_s:
                return None
        return min(
            free,
            key=lambda replica: (
                replica.id == entry.left,
                len(replica.has) >= replica.max_batch,
                not drafts[replica.id].ready,
                len(replica.has) / replica.max_batch,
            ),
            default=None,
        )

    def _bind(self, entry: Entry, replica: Bound, draft: Draft, now: float) -> None:
        """Put `entry` into `draft`, unless that is full: then the draft takes no more in this round."""
        encoded = encode_item(self._item(entry, entry.request, now))
        if len(encoded) > MAX_BATCH_BYTES - 16:
            reference = Reference(len(draft.large))
            draft.large.append((entry.id, encode_request(entry.request)))
            encoded = encode_item(self._item(entry, reference, now))
        if draft.size_bytes + len(encoded) > MAX_BATCH_BYTES - 16:
            draft.ready = False
            return
        draft.items.append(encoded)
        draft.size_bytes += len(encoded)
        if not replica.has:
            replica.sign_at = now
        replica.has.add(entry.id)
        if entry.suspect:
            replica.suspect = entry.id
        entry.replica = replica.id
        self._bound[entry.id] = self._waiting.pop(entry.id)
        self._last_used[entry.session] = replica.id
        self._counts.gave_on(now - entry.queued_at, now - entry.due)

    def _item(self, entry: Entry, payload: Request | Reference, now: float) -> Item:
        return Item(
            entry.id,
            entry.attempt,
            self.source,
            entry.session,
            entry.generation,
            entry.rank,
            entry.due - now,
            payload,
        )

    def _send(self, replica: Bound, draft: Draft, now: float) -> Outgoing:
        replica.number += 1
        replica.sent += len(draft.items)
        replica.in_flight = True
        replica.sent_at = now
        replica.pace.sent(len(draft.items), now)
        self._counts.batch_size.add(len(draft.items))
        return Outgoing(replica.id, replica.number, encode_delivery(replica.number, draft.items), draft.large)

    def _seen(self, entry: Entry, index: int) -> bool:
        return index < len(entry.delivered) or index in entry.early

    def _accept(self, entry: Entry, now: float, outcomes: list[Outcome]) -> None:
        """Deliver the results that are next in order."""
        while (result := entry.early.pop(len(entry.delivered), None)) is not None:
            if entry.suspect and not isinstance(result, Failed):
                entry.suspect = False
                self._clear_suspect(entry)
            if isinstance(result, Failed) and result.retry:
                entry.left = entry.replica
                self._again(entry, result.message, now, outcomes)
                return
            entry.delivered.append(result)
            outcomes.append(Outcome(entry.session, entry.generation, entry.work, result))
            if is_final(result):
                self._counts.finished += 1
                self._counts.failed += isinstance(result, Failed)
                self._forget(entry)
                return

    def _again(self, entry: Entry, cause: str, now: float, outcomes: list[Outcome]) -> None:
        """Send `entry` once more, or let it fail if it was sent `max_attempts` times."""
        entry.failures += 1
        if entry.failures >= self.options.max_attempts:
            self._fail(entry, f"{self.stage}: {cause} (attempt {entry.failures}).", outcomes)
            return
        self._requeue(entry, now)
        self._counts.redelivered += 1

    def _requeue(self, entry: Entry, now: float) -> None:
        self._unbind(entry)
        entry.attempt += 1
        entry.request = entry.request.resumed(entry.delivered)
        entry.delivered = []
        entry.early = {}
        entry.held = None
        entry.queued_at = now
        entry.recalled = False
        self._waiting[entry.id] = self._bound.pop(entry.id)

    def _fail(self, entry: Entry, message: str, outcomes: list[Outcome]) -> None:
        self._counts.finished += 1
        self._counts.failed += 1
        self._forget(entry)
        outcomes.append(Outcome(entry.session, entry.generation, entry.work, Failed(message)))

    def _unbind(self, entry: Entry) -> None:
        self._clear_suspect(entry)
        replica = self._replicas.get(entry.replica or "")
        if replica is not None:
            replica.has.discard(entry.id)
            self._retire(replica)
        entry.replica = None

    def _retire(self, replica: Bound) -> None:
        """Let go of a replica that left the pool and has nothing; its counts go on, should it come back."""
        if not (replica.in_pool or replica.has or replica.in_flight):
            self._retired[replica.id] = self._replicas.pop(replica.id)

    def _clear_suspect(self, entry: Entry) -> None:
        replica = self._replicas.get(entry.replica or "")
        if replica is not None and replica.suspect == entry.id:
            replica.suspect = None

    def _forget(self, entry: Entry) -> None:
        self._unbind(entry)
        self._waiting.pop(entry.id, None)
        self._bound.pop(entry.id, None)
