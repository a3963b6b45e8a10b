"""What a conversation is asked to be, and what it asks of its driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class SessionOptions:
    """What the session is asked to be."""

    voice: str | None = None
    instructions: str | None = None
    tools: Sequence[Json] = ()
    push_to_talk: bool = False
    block_microphone: bool = False
    """The server hears silence while an answer is played."""


@dataclass(frozen=True)
class Send:
    """An event for the server."""

    event: Json


@dataclass(frozen=True)
class Call:
    """A tool to run; `Conversation.tool_done` brings its result."""

    call_id: str
    name: str
    arguments: str
    """JSON."""


Effect = Send | Call
