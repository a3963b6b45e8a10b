"""Watches a session's effects and knows what must always hold, whatever happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestration.session import events as ev
from orchestration.session.effects import Cancel, Close, Effect, Send, Submit
from orchestration.session.items import FunctionCallItem, MessageItem, OutputAudio, OutputText


@dataclass
class Item:
    index: int
    closed: bool = False
    part_open: bool = False
    parts: int = 0
    text: str = ""
    text_done: str | None = None
    audio_done: bool = False
    arguments: str = ""
    call_done: bool = False


@dataclass
class Watched:
    in_conversation: bool
    items: dict[str, Item] = field(default_factory=dict)


@dataclass
class Protocol:
    """Feed it effects in order; it asserts."""

    running: dict[str, Watched] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    known_items: set[str] = field(default_factory=set)
    done_items: set[str] = field(default_factory=set)
    event_ids: set[str] = field(default_factory=set)
    works: set[int] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    failures_allowed: bool = False
    closed: bool = False

    def see(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert not self.closed, f"{effect} after the end"
            match effect:
                case Submit():
                    assert effect.work not in self.works
                    assert effect.generation not in self.cancelled, "work for a cancelled generation"
                    self.works.add(effect.work)
                case Cancel(generation):
                    self.cancelled.add(generation)
                case Close():
                    self.closed = True
                case Send(event):
                    self._event(event)

    def _event(self, event: Any) -> None:
        assert event.event_id and event.event_id not in self.event_ids
        self.event_ids.add(event.event_id)
        match event:
            case ev.ResponseCreated(response=response):
                assert response.id not in self.running and response.id not in self.ended
                in_conversation = response.conversation_id is not None
                others = [w for w in self.running.values() if w.in_conversation]
                assert not (in_conversation and others), "two active responses"
                assert response.status == "in_progress" and not response.output
                self.running[response.id] = Watched(in_conversation)
            case ev.ResponseDone(response=response):
                watched = self.running.pop(response.id)
                assert all(item.closed for item in watched.items.values())
                assert [item.id for item in response.output] == list(watched.items)
                assert response.usage is not None
                for item in response.output:
                    if isinstance(item, MessageItem):
                        part = item.content[0]
                        written = part.transcript if isinstance(part, OutputAudio) else part.text
                        assert written == watched.items[item.id].text
                if response.status == "failed":
                    assert self.failures_allowed, response.status_details
                    assert response.status_details.error.message
                self.ended[response.id] = response.status
            case ev.ConversationItemAdded(item=item, previous_item_id=previous):
                assert previous is None or previous in self.known_items
                assert item.id not in self.known_items
                self.known_items.add(item.id)
            case ev.ConversationItemDone(item=item):
                assert item.id in self.known_items and item.id not in self.done_items
                self.done_items.add(item.id)
            case _ if hasattr(event, "response_id") and not event.__struct_config__.tag.startswith("output_"):
                self._of_response(event)

    def _of_response(self, event: Any) -> None:
        assert event.response_id in self.running, f"{event} of a response that is not running"
        items = self.running[event.response_id].items
        match event:
            case ev.ResponseOutputItemAdded(item=added, output_index=index):
                assert index == len(items)
                items[added.id] = Item(index)
                return
            case ev.ResponseOutputItemDone(item=done, output_index=index):
                self._item_done(items[done.id], done, index)
                return
        item = items[event.item_id]
        assert event.output_index == item.index and not item.closed
        match event:
            case ev.ResponseContentPartAdded():
                assert item.parts == 0
                item.parts, item.part_open = 1, True
            case ev.ResponseContentPartDone(part=part):
                assert item.part_open and item.text_done == item.text
                assert (
                    getattr(part, "transcript", None) == item.text or getattr(part, "text", None) == item.text
                )
                assert not isinstance(part, ev.AudioPart) or item.audio_done
                item.part_open = False
            case ev.ResponseTextDelta(delta=delta) | ev.ResponseAudioTranscriptDelta(delta=delta):
                assert delta and item.part_open and item.text_done is None
                item.text += delta
            case ev.ResponseTextDone(text=text) | ev.ResponseAudioTranscriptDone(transcript=text):
                assert item.text_done is None and text == item.text
                item.text_done = text
            case ev.ResponseAudioDelta(delta=delta):
                assert delta and item.part_open and not item.audio_done
            case ev.ResponseAudioDone():
                assert item.part_open and not item.audio_done and item.text_done is None
                item.audio_done = True
            case ev.FunctionCallArgumentsDelta(delta=delta):
                item.arguments += delta
            case ev.FunctionCallArgumentsDone(arguments=arguments):
                assert arguments == item.arguments
                item.call_done = True

    def _item_done(self, seen: Item, item: Any, index: int) -> None:
        assert index == seen.index and not seen.closed and not seen.part_open
        assert item.status in ("completed", "incomplete")
        match item:
            case (
                MessageItem(content=[OutputAudio(transcript=text)])
                | MessageItem(content=[OutputText(text=text)])
            ):
                assert text == seen.text
            case FunctionCallItem(arguments=arguments):
                assert arguments == seen.arguments and seen.call_done
            case _:
                raise AssertionError(item)
        seen.closed = True
