"""The conversation: items in order, and what is known of them beyond their wire form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET

from orchestration.session.errors import ClientError
from orchestration.session.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    Item,
    MessageItem,
    OutputAudio,
    copied,
)
from orchestration.session.spoken import Spoken

KEPT_AUDIO_BYTES = 64 << 20
"""Sound kept for `conversation.item.retrieve`; the oldest goes first."""

Transcript = Literal["none", "pending", "words", "empty", "failed"]


@dataclass(eq=False)
class Entry:
    """An item and what belongs to it."""

    item: Item
    pcm: bytes = b""
    """User speech, int16 mono 16 kHz."""
    transcript: Transcript = "none"
    """How far the transcript of user speech is; "none" where the item has no speech of the microphone's."""
    problem: str = ""
    """Why the transcript failed."""
    spoken: Spoken | None = None
    """The sound of an assistant item."""

    @property
    def id(self) -> str:
        return self.item.id


def entry_of(item: Item) -> Entry:
    """An entry for an item that the client wrote, its sound apart from it."""
    entry = Entry(item)
    if isinstance(item, MessageItem):
        for part in item.content:
            if isinstance(part, InputAudio) and isinstance(part.audio, bytes):
                entry.pcm += part.audio
                part.audio = UNSET
    return entry


class Conversation:
    def __init__(self, conversation_id: str, limit_items: int) -> None:
        self.id = conversation_id
        self.entries: list[Entry] = []
        self.revision = 0
        """Changes whenever the next prompt may be another one."""
        self._limit_items = limit_items

    def find(self, item_id: str) -> Entry | None:
        return next((entry for entry in reversed(self.entries) if entry.id == item_id), None)

    def get(self, item_id: str, param: str = "item_id") -> Entry:
        entry = self.find(item_id)
        if entry is None:
            raise ClientError("item_not_found", f"There is no item {item_id!r} in the conversation.", param)
        return entry

    @property
    def last_id(self) -> str | None:
        return self.entries[-1].id if self.entries else None

    def previous_id(self, item_id: str) -> str | None:
        """The item before `item_id`."""
        ids = [entry.id for entry in self.entries]
        at = ids.index(item_id) if item_id in ids else 0
        return ids[at - 1] if at else None

    def add(self, entry: Entry, previous_item_id: str | None = None) -> None:
        """Put `entry` behind `previous_item_id` (`root`: first; None: last)."""
        if self.find(entry.id) is not None:
            raise ClientError("item_already_exists", f"There is an item {entry.id!r} already.", "item.id")
        at = len(self.entries)
        if previous_item_id == "root":
            at = 0
        elif previous_item_id is not None:
            at = self.entries.index(self.get(previous_item_id, "previous_item_id")) + 1
        self.entries.insert(at, entry)
        self.changed()

    def delete(self, item_id: str) -> Entry:
        entry = self.get(item_id)
        self.entries.remove(entry)
        self.changed()
        return entry

    def changed(self) -> None:
        self.revision += 1
        self._forget_old_audio()

    def check_room(self) -> None:
        if len(self.entries) >= self._limit_items:
            raise ClientError(
                "conversation_full", f"A conversation has at most {self._limit_items} items; delete some."
            )

    def check_call(self, item: Item) -> None:
        """A function's output must answer a call that was made."""
        if isinstance(item, FunctionCallOutputItem) and not any(
            isinstance(entry.item, FunctionCallItem) and entry.item.call_id == item.call_id
            for entry in self.entries
        ):
            raise ClientError(
                "invalid_value", f"No function call has call_id {item.call_id!r}.", "item.call_id"
            )

    def pending(self) -> list[Entry]:
        """Items whose transcript is awaited."""
        return [entry for entry in self.entries if entry.transcript == "pending"]

    def retrieved(self, item_id: str) -> Item:
        """A snapshot of the item with its sound."""
        entry = self.get(item_id)
        item = copied(entry.item)
        if isinstance(item, MessageItem):
            for part in item.content:
                if isinstance(part, InputAudio):
                    part.audio = entry.pcm
                elif isinstance(part, OutputAudio) and entry.spoken is not None and entry.spoken.pcm:
                    part.audio, part.rate_hz = bytes(entry.spoken.pcm), entry.spoken.rate_hz
        return item

    def heard_until(self, item_id: str, ms: float) -> None:
        """By our own playback clock nobody heard more of the item; a client that knows better may still truncate it."""
        entry = self.find(item_id)
        if entry is None or entry.spoken is None or not isinstance(entry.item, MessageItem):
            return
        entry.spoken.heard_ms = ms
        entry.item.content[:] = [OutputAudio(entry.spoken.heard)]
        self.changed()

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> None:
        """Nothing of an assistant item's sound was heard after `audio_end_ms`."""
        entry = self.get(item_id)
        item = entry.item
        if not isinstance(item, MessageItem) or item.role != "assistant":
            raise ClientError("invalid_value", "Only assistant messages can be truncated.", "item_id")
        if not 0 <= content_index < len(item.content):
            raise ClientError("invalid_value", f"There is no content {content_index}.", "content_index")
        part = item.content[content_index]
        if not isinstance(part, OutputAudio) or entry.spoken is None:
            raise ClientError("invalid_value", "This content has no audio.", "content_index")
        if not 0 <= audio_end_ms <= entry.spoken.length_ms:
            raise ClientError(
                "invalid_value",
                f"Audio of {entry.spoken.length_ms} ms is already shorter than {audio_end_ms} ms.",
                "audio_end_ms",
            )
        part.transcript = entry.spoken.cut(audio_end_ms)
        entry.spoken.truncate(audio_end_ms)
        self.changed()

    def _forget_old_audio(self) -> None:
        kept = 0
        for entry in reversed(self.entries):
            size = len(entry.pcm) + (len(entry.spoken.pcm) if entry.spoken else 0)
            kept += size
            if size and kept > KEPT_AUDIO_BYTES and entry.transcript != "pending":
                entry.pcm = b""
                if entry.spoken is not None:
                    entry.spoken.pcm.clear()
