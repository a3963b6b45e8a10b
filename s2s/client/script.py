"""Says recordings in turn: each when the answer to the one before has been heard to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from s2s.client.conversation import Conversation

SETTLED_S = 0.5
"""An answer that is over this long has no sequel."""
LAG_S = 1.5
"""The server may hear the end of a recording this late."""
NO_SPEECH_S = 5.0
"""So long after a recording nobody takes it for speech any more."""
PATIENCE_S = 60.0
"""A server that owes an answer and says nothing for so long will not give it."""


class Voice(Protocol):
    """What says the recordings."""

    @property
    def saying(self) -> bool: ...

    def say(self, pcm: bytes) -> None: ...


@dataclass(frozen=True)
class Recording:
    """Speech as the wire has it."""

    name: str
    pcm: bytes


class Script:
    """Knows when which recording is to be said, and when all is over."""

    def __init__(self, voice: Voice, recordings: Sequence[Recording]) -> None:
        self.unanswered: list[str] = []
        """Recordings after which no answer came."""
        self._voice = voice
        self._waiting = list(recordings)
        self._now: Recording | None = None
        self._answers = 0
        self._ended = 0.0
        self._busy = 0.0

    def step(self, conversation: Conversation, now: float) -> bool:
        """Go on; True when the last answer has been heard."""
        if self._voice.saying or not conversation.connected:
            self._ended = self._busy = now
            return False
        conversation.release(now)
        if self._now is not None and not self._over(conversation, now):
            return False
        if self._now is not None and conversation.answers == self._answers:
            self.unanswered.append(self._now.name)
        if not self._waiting:
            return True
        self._now = self._waiting.pop(0)
        self._answers = conversation.answers
        self._ended = self._busy = now
        if conversation.options.push_to_talk:
            conversation.press(now)
        self._voice.say(self._now.pcm)
        return False

    def _over(self, conversation: Conversation, now: float) -> bool:
        if conversation.busy(now):
            self._busy = now
            last = max(conversation.last_event, self._ended)
            return not conversation.player.plays(now) and now - last > PATIENCE_S
        answered = conversation.answers > self._answers
        return now - self._busy >= SETTLED_S and now - self._ended >= (LAG_S if answered else NO_SPEECH_S)
