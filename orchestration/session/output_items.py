"""The items of one response and their events, each part and item opened and closed exactly once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from orchestration.session.conversation import Entry
from orchestration.session.core import Core
from orchestration.session.events import (
    AudioPart,
    ConversationItemAdded,
    ConversationItemDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    ResponseAudioDelta,
    ResponseAudioDone,
    ResponseAudioTranscriptDelta,
    ResponseAudioTranscriptDone,
    ResponseContentPartAdded,
    ResponseContentPartDone,
    ResponseOutputItemAdded,
    ResponseOutputItemDone,
    ResponseTextDelta,
    ResponseTextDone,
    ServerEvent,
    TextPart,
)
from orchestration.session.gate import Gate
from orchestration.session.items import (
    FunctionCallItem,
    Item,
    ItemStatus,
    MessageItem,
    OutputAudio,
    OutputText,
    copied,
)
from orchestration.session.spoken import Spoken


class MessageOutput:
    """The assistant message of a response: one content part, text or audio."""

    def __init__(
        self,
        core: Core,
        gate: Gate,
        response_id: str,
        output_index: int,
        modality: Literal["text", "audio"],
        in_conversation: bool,
        spoken: Spoken,
    ) -> None:
        self._core = core
        self._gate = gate
        self._response_id = response_id
        self._index = output_index
        self._audio = modality == "audio"
        self._in_conversation = in_conversation
        self._text = ""
        self.item = MessageItem("assistant", [], core.outbox.new_id("item"), status="in_progress")
        self.entry = Entry(self.item, spoken=spoken if self._audio else None)

    def open(self, now: float) -> None:
        added = ResponseOutputItemAdded(
            response_id=self._response_id, output_index=self._index, item=copied(self.item)
        )
        self._send(added, now)
        if self._in_conversation:
            _add(self._core, self._gate, self.entry, now)
        part = AudioPart("") if self._audio else TextPart("")
        self._part(lambda **ids: ResponseContentPartAdded(**ids, part=part), now)
        self._write("")

    def text(self, delta: str, now: float) -> None:
        self._text += delta
        self._write(self._text)
        kind = ResponseAudioTranscriptDelta if self._audio else ResponseTextDelta
        self._part(lambda **ids: kind(**ids, delta=delta), now)

    def sound(self, pcm: bytes, rate_hz: int, now: float) -> None:
        self._part(lambda **ids: ResponseAudioDelta(**ids, delta=pcm, rate_hz=rate_hz), now)

    @property
    def written(self) -> str:
        """Its whole text."""
        return self._text

    def close(self, status: ItemStatus, now: float) -> None:
        text = self._text
        if self._audio:
            self._part(lambda **ids: ResponseAudioDone(**ids), now)
            self._part(lambda **ids: ResponseAudioTranscriptDone(**ids, transcript=text), now)
        else:
            self._part(lambda **ids: ResponseTextDone(**ids, text=text), now)
        part = AudioPart(text) if self._audio else TextPart(text)
        self._part(lambda **ids: ResponseContentPartDone(**ids, part=part), now)
        self._write(text)
        self.item.status = status
        done = ResponseOutputItemDone(
            response_id=self._response_id, output_index=self._index, item=copied(self.item)
        )
        self._send(done, now)
        if self._in_conversation:
            _done(self._core, self._gate, self.item, now)

    def _write(self, text: str) -> None:
        self.item.content[:] = [OutputAudio(text) if self._audio else OutputText(text)]

    def _part(self, build: Callable[..., ServerEvent], now: float) -> None:
        event = build(
            response_id=self._response_id,
            item_id=self.item.id,
            output_index=self._index,
            content_index=0,
        )
        self._send(event, now)

    def _send(self, event: ServerEvent, now: float) -> None:
        _send(self._core, self._gate, event, now)


def call_output(
    core: Core,
    gate: Gate,
    response_id: str,
    output_index: int,
    name: str,
    arguments: str,
    in_conversation: bool,
    now: float,
) -> Item:
    """A whole function call, from `output_item.added` to `item.done`."""
    outbox = core.outbox
    item = FunctionCallItem(
        name, "", outbox.new_id("item"), status="in_progress", call_id=outbox.new_id("call")
    )
    added = copied(item)
    _send(
        core,
        gate,
        ResponseOutputItemAdded(response_id=response_id, output_index=output_index, item=added),
        now,
    )
    if in_conversation:
        _add(core, gate, Entry(item), now)
    item.arguments, item.status = arguments, "completed"
    delta = FunctionCallArgumentsDelta(
        response_id=response_id,
        item_id=item.id,
        output_index=output_index,
        call_id=item.call_id,
        delta=arguments,
    )
    done = FunctionCallArgumentsDone(
        response_id=response_id,
        item_id=item.id,
        output_index=output_index,
        call_id=item.call_id,
        name=name,
        arguments=arguments,
    )
    item_done = ResponseOutputItemDone(response_id=response_id, output_index=output_index, item=copied(item))
    _send(core, gate, delta, now)
    _send(core, gate, done, now)
    _send(core, gate, item_done, now)
    if in_conversation:
        _done(core, gate, item, now)
    return item


def _send(core: Core, gate: Gate, event: ServerEvent, now: float) -> None:
    gate.do(lambda _: core.outbox.send(event), now)


def _add(core: Core, gate: Gate, entry: Entry, now: float) -> None:
    shown = copied(entry.item)

    def step(_: float) -> None:
        previous = core.conversation.last_id
        core.conversation.add(entry)
        core.outbox.send(ConversationItemAdded(previous_item_id=previous, item=shown))

    gate.do(step, now)


def _done(core: Core, gate: Gate, item: Item, now: float) -> None:
    shown = copied(item)

    def step(_: float) -> None:
        previous = core.conversation.previous_id(item.id)
        core.outbox.send(ConversationItemDone(previous_item_id=previous, item=shown))

    gate.do(step, now)
