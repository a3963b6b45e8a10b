"""What the parts of one session share."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestration.session.config import SessionDefaults
from orchestration.session.conversation import Conversation
from orchestration.session.outbox import Outbox
from orchestration.session.playback import PlaybackClock
from orchestration.session.settings import Settings
from orchestration.session.timeline import Timeline


@dataclass
class Core:
    defaults: SessionDefaults
    settings: Settings
    outbox: Outbox
    conversation: Conversation
    playback: PlaybackClock = field(default_factory=PlaybackClock)
    timeline: Timeline = field(default_factory=Timeline)
    language: str | None = None
    """What was spoken last; ISO 639-1."""
    echoes: bool = False
    """Whether the machine has heard itself: then speech over an answer interrupts it by its words alone."""
    audio_sent: bool = False
    """Whether the session has spoken: from then on its voice is fixed."""
