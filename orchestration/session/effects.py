"""What the session core asks its driver to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from actors.messages import Rank, Request
from orchestration.session.events import ServerEvent


@dataclass(frozen=True, slots=True)
class Submit:
    """Give `request` to its stage; its results come back to `Session.result(work, …)`."""

    work: int
    """Names this request within the session."""
    generation: str
    """The cancellable thing that it belongs to."""
    request: Request
    rank: Rank
    due_in_s: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop everything of `generation`, queued or running; later results of it are dropped."""

    generation: str


@dataclass(frozen=True, slots=True)
class Promote:
    """`generation` was speculative and is wanted now."""

    generation: str
    due_in_s: float


@dataclass(frozen=True, slots=True)
class Send:
    """Send `event` to the client."""

    event: ServerEvent


@dataclass(frozen=True, slots=True)
class Hold:
    """Where the transport paces the sound: stop sending it at once, or go on where it stopped.

    Somebody may have begun to speak over it.  If they did, the answer ends before the hold does.
    """

    held: bool


@dataclass(frozen=True, slots=True)
class Close:
    """The session is over: say `reason` to the client and free everything."""

    reason: Literal["client", "expired", "idle", "drained", "error"]


Effect = Submit | Cancel | Promote | Send | Hold | Close
