"""Sound on its way to the client's ear: what was heard of each answer, and OpenAI's `output_audio_buffer` events."""

from __future__ import annotations

from orchestration.session.conversation import Entry
from orchestration.session.core import Core
from orchestration.session.errors import ClientError
from orchestration.session.events import (
    OutputAudioBufferCleared,
    OutputAudioBufferStarted,
    OutputAudioBufferStopped,
)

ABOUT_TO_MS = 1_000
"""Where in its sound an answer is, is known to a word or two."""


class OutputBuffer:
    """Follows the playback clock; its events are sent only where the transport paces the sound."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._playing: str | None = None
        """The response whose sound is playing, once `started` was sent."""

    def play(self, response_id: str, item_id: str, seconds: float, now: float) -> None:
        self._core.audio_sent = True
        self._core.playback.queue(item_id, seconds, now)
        if self._core.defaults.paced_output and self._playing != response_id:
            self._stopped()
            self._playing = response_id
            self._core.outbox.send(OutputAudioBufferStarted(response_id=response_id))

    def clear(self, now: float) -> None:
        """`output_audio_buffer.clear`."""
        if not self._core.defaults.paced_output:
            raise ClientError(
                "invalid_request",
                "output_audio_buffer.clear is for WebRTC; here the client holds the sound: stop playing, and "
                "send conversation.item.truncate.",
                "type",
            )
        self.cut(now)

    def cut(self, now: float) -> None:
        """Playback stops; the conversation keeps what was heard."""
        playback, conversation = self._core.playback, self._core.conversation
        for item_id in playback.unheard_items(now):
            conversation.heard_until(item_id, playback.heard_ms(item_id, now))
        playback.cut(now)
        if self._playing is not None:
            self._core.outbox.send(OutputAudioBufferCleared(response_id=self._playing))
            self._playing = None

    def said(self, now: float) -> str:
        """What has come out of the speaker of the latest spoken answers, and is about to."""
        latest = [entry for entry in self._core.conversation.entries if entry.spoken is not None][-2:]
        return " ".join(self._said_of(entry, now) for entry in latest)

    def _said_of(self, entry: Entry, now: float) -> str:
        spoken = entry.spoken
        assert spoken is not None, "only what is spoken is asked for"
        if spoken.heard_ms is not None:
            return spoken.heard
        return spoken.cut(self._core.playback.heard_ms(entry.id, now) + ABOUT_TO_MS)

    def ends_at(self) -> float | None:
        """When `output_audio_buffer.stopped` is due."""
        playback = self._core.playback
        return playback.ends_at if self._playing is not None and not playback.held else None

    def tick(self, now: float, active: str | None) -> None:
        """Say so when the sound of a response that is done has been played."""
        if self._playing is not None and self._playing != active and not self._core.playback.playing(now):
            self._stopped()

    def _stopped(self) -> None:
        if self._playing is not None:
            self._core.outbox.send(OutputAudioBufferStopped(response_id=self._playing))
            self._playing = None
