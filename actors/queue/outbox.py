"""What the producer half keeps and hands out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from actors.messages import Request, Result
from actors.queue.items import Control
from actors.queue.pace import Pace


@dataclass(frozen=True)
class QueueOptions:
    """How a producer treats the items of one stage."""

    outbox_items: int = 1024
    """Items that may wait; one more is refused at once."""
    max_attempts: int = 2
    """Sendings of an item before it fails."""
    affinity_wait_s: float = 0.0
    """How long an item waits for the replica that its session used last; 0: it takes the first free one."""
    stage_timeout_s: float = 30.0
    """A replica that holds items and gives no sign for so long counts as dead."""
    give_up_s: float = 120.0
    """An item that no replica took for so long fails."""


class Outcome(NamedTuple):
    """A result for the session that submitted `work`."""

    session: str
    generation: str
    work: int
    result: Result


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A delivery to make: at most one is under way for each replica."""

    replica: str
    number: int
    batch: bytes
    """An encoded `Delivery`."""
    large: list[tuple[int, bytes]]
    """Requests that go by reference: item id and encoded request, in the order of `Reference.position`."""


class Say(NamedTuple):
    """A word to one replica."""

    replica: str
    control: Control


@dataclass(slots=True)
class Entry:
    """One item, from submission to its last result."""

    id: int
    session: str
    work: int
    generation: str
    rank: int
    due: float
    request: Request
    queued_at: float
    attempt: int = 1
    failures: int = 0
    recalled: bool = False
    """Asked back from its replica, which has not begun it for all we know."""
    suspect: bool = False
    """A replica was lost while it had this item, which has shown no sign of life since."""
    replica: str | None = None
    left: str | None = None
    """The replica that it failed on or was called back from; another is preferred."""
    delivered: list[Result] = field(default_factory=list)
    early: dict[int, Result] = field(default_factory=dict)
    """Results that overtook an earlier one, by index."""
    held: object = None
    """What must live until the ack: the object reference."""

    @property
    def order(self) -> tuple[int, float, int]:
        return self.rank, self.due, self.id


@dataclass(slots=True)
class Bound:
    """What the producer knows of one replica."""

    id: str
    max_batch: int
    in_pool: bool = True
    sent: int = 0
    limit: int = 1
    number: int = 0
    in_flight: bool = False
    sent_at: float = float("-inf")
    sign_at: float = 0.0
    """When it last gave a sign of life, or got its first item after having none."""
    has: set[int] = field(default_factory=set)
    suspect: int | None = None
    pace: Pace = field(default_factory=Pace)


@dataclass(slots=True)
class Draft:
    """A delivery in the making."""

    items: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    large: list[tuple[int, bytes]] = field(default_factory=list)
    room: int = 0
    ready: bool = False
