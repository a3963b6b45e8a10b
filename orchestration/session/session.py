"""One conversation, Sans-I/O: client events and stage results in, effects out, the time passed in."""

from __future__ import annotations

from typing import Literal

from actors.messages import Result
from orchestration.session.answers import Answers
from orchestration.session.config import ServerVad, SessionDefaults
from orchestration.session.conversation import Conversation, entry_of
from orchestration.session.core import Core
from orchestration.session.effects import Effect
from orchestration.session.errors import ClientError, error_event
from orchestration.session.events import (
    ClientEvent,
    ConversationItemAdded,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemDeleted,
    ConversationItemDone,
    ConversationItemRetrieve,
    ConversationItemRetrieved,
    ConversationItemTruncate,
    ConversationItemTruncated,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    ResponseCancel,
    ResponseCreate,
    ResponseParams,
    SessionCreated,
    SessionUpdate,
    SessionUpdated,
)
from orchestration.session.items import FunctionCallItem, copied
from orchestration.session.listener import Listener
from orchestration.session.outbox import Outbox
from orchestration.session.settings import Settings
from orchestration.session.timeline import Timeline
from orchestration.session.transcripts import Transcripts


class Session:
    """Call `start` first.  Every method returns what the driver has to do, in order."""

    def __init__(self, session_id: str, defaults: SessionDefaults, now: float) -> None:
        self.id = session_id
        outbox = Outbox(session_id, defaults.timeouts)
        settings = Settings(session_id, defaults)
        self._misfit: ClientError | None = None
        try:
            settings.update(defaults.session, audio_sent=False)
        except ClientError as error:
            self._misfit = error
        conversation = Conversation(outbox.new_id("conv"), defaults.limits.items)
        self._core = Core(defaults, settings, outbox, conversation, language=defaults.language)
        self._transcripts = Transcripts(self._core)
        self._answers = Answers(self._core, self._transcripts)
        self._listener = Listener(self._core, self._answers, self._transcripts)
        self._began_at = now
        self._heard_of_client_at = now

    @property
    def timeline(self) -> Timeline:
        return self._core.timeline

    @property
    def settings(self) -> Settings:
        """The effective session, for the driver's codecs."""
        return self._core.settings

    def start(self, now: float) -> list[Effect]:
        """`session.created`, and an error where the client asked at connect for what cannot hold."""
        self._core.outbox.send(SessionCreated(session=self._core.settings.session))
        if self._misfit is not None:
            self._core.outbox.send(error_event(self._misfit.code, self._misfit.message, self._misfit.param))
        return self._core.outbox.take()

    def receive(self, event: ClientEvent, now: float) -> list[Effect]:
        outbox = self._core.outbox
        if outbox.closed:
            return []
        self._heard_of_client_at = now
        try:
            self._dispatch(event, now)
        except ClientError as error:
            outbox.send(error_event(error.code, error.message, error.param, event.event_id))
        return self._take(now)

    def result(self, work: int, result: Result, now: float) -> list[Effect]:
        """A result of the request that `Submit.work` names."""
        self._core.outbox.result(work, result, now)
        return self._take(now)

    def tick(self, now: float) -> list[Effect]:
        """Does what is due; to be called at `wakeup_at`."""
        outbox, limits = self._core.outbox, self._core.defaults.limits
        if outbox.closed:
            return []
        if limits.session_s is not None and now >= self._began_at + limits.session_s:
            message = f"Your session hit the maximum duration of {limits.session_s / 60:g} minutes."
            return self._end("expired", "session_expired", message)
        if limits.idle_s is not None and now >= self._heard_of_client_at + limits.idle_s:
            return self._end("idle", "session_idle", f"No event came for {limits.idle_s:g} s.")
        outbox.time_out(now)
        self._answers.output.tick(now, self._answers.active.id if self._answers.active else None)
        if self._answers.active is not None:
            self._answers.active.hurry(now)
        idle_at = self._idle_at()
        if idle_at is not None and now >= idle_at:
            self._listener.idle(now)
        return self._take(now)

    def wakeup_at(self) -> float | None:
        """When `tick` is wanted next."""
        if self._core.outbox.closed:
            return None
        limits = self._core.defaults.limits
        times = [self._core.outbox.next_deadline(), self._idle_at(), self._stopped_at()]
        if self._answers.active is not None:
            times.append(self._answers.active.hurry_at())
        if limits.session_s is not None:
            times.append(self._began_at + limits.session_s)
        if limits.idle_s is not None:
            times.append(self._heard_of_client_at + limits.idle_s)
        return min((at for at in times if at is not None), default=None)

    def drain(self, now: float) -> list[Effect]:
        """Begin nothing new; close when the running answers are out."""
        self._answers.draining = True
        return self._take(now)

    def disconnect(self, now: float) -> list[Effect]:
        """The client is gone: stop everything."""
        if not self._core.outbox.closed:
            self._core.outbox.close("client")
        return self._core.outbox.take()

    def _take(self, now: float) -> list[Effect]:
        outbox = self._core.outbox
        if self._answers.draining and not self._answers.busy and not outbox.closed:
            outbox.close("drained")
        return outbox.take()

    def _end(self, reason: Literal["expired", "idle"], code: str, message: str) -> list[Effect]:
        self._core.outbox.send(error_event(code, message))
        self._core.outbox.close(reason)
        return self._core.outbox.take()

    def _idle_at(self) -> float | None:
        detection = self._core.settings.turn_detection
        last = self._answers.last_done_at
        if not isinstance(detection, ServerVad) or detection.idle_timeout_ms is None or last is None:
            return None
        if self._answers.busy or self._listener.turn_on or self._answers.draining:
            return None
        return max(last, self._core.playback.ends_at) + detection.idle_timeout_ms / 1000

    def _stopped_at(self) -> float | None:
        return None if self._answers.active is not None else self._answers.output.ends_at()

    def _dispatch(self, event: ClientEvent, now: float) -> None:
        match event:
            case InputAudioBufferAppend(audio=audio):
                self._listener.append(audio, now)
            case InputAudioBufferCommit():
                self._listener.commit(now)
            case InputAudioBufferClear():
                self._listener.clear(now)
            case SessionUpdate():
                self._update(event, now)
            case ConversationItemCreate():
                self._create_item(event, now)
            case ConversationItemRetrieve(item_id=item_id):
                item = self._core.conversation.retrieved(item_id)
                self._core.outbox.send(ConversationItemRetrieved(item=item))
            case ConversationItemTruncate():
                self._truncate(event, now)
            case ConversationItemDelete(item_id=item_id):
                self._delete(item_id, now)
            case ResponseCreate(response=params):
                self._answers.create(params or ResponseParams(), now)
            case ResponseCancel(response_id=response_id):
                self._answers.cancel(response_id, now)
            case _:
                self._answers.output.clear(now)

    def _update(self, event: SessionUpdate, now: float) -> None:
        settings = self._core.settings
        before = settings.turn_detection
        settings.update(event.session, self._core.audio_sent)
        if settings.turn_detection != before:
            self._listener.configure(now)
            if self._answers.last_done_at is not None:
                self._answers.last_done_at = now  # an idle timeout counts from when it is set
        self._core.outbox.send(SessionUpdated(session=settings.session))

    def _create_item(self, event: ConversationItemCreate, now: float) -> None:
        core = self._core
        item = copied(event.item)
        item.id = item.id or core.outbox.new_id("item")
        item.status = "completed"
        if isinstance(item, FunctionCallItem):
            item.call_id = item.call_id or core.outbox.new_id("call")
        core.conversation.check_room()
        core.conversation.check_call(item)
        entry = entry_of(item)
        core.conversation.add(entry, event.previous_item_id)
        previous = core.conversation.previous_id(item.id)
        core.outbox.send(ConversationItemAdded(previous_item_id=previous, item=copied(item)))
        core.outbox.send(ConversationItemDone(previous_item_id=previous, item=copied(item)))
        self._transcripts.transcribe(entry, self._answers.look, now)

    def _truncate(self, event: ConversationItemTruncate, now: float) -> None:
        self._core.conversation.truncate(event.item_id, event.content_index, event.audio_end_ms)
        if event.item_id in self._core.playback.unheard_items(now):
            self._core.playback.cut(now)
        self._core.outbox.send(
            ConversationItemTruncated(
                item_id=event.item_id, content_index=event.content_index, audio_end_ms=event.audio_end_ms
            )
        )

    def _delete(self, item_id: str, now: float) -> None:
        entry = self._core.conversation.delete(item_id)
        self._core.outbox.send(ConversationItemDeleted(item_id=item_id))
        self._listener.deleted(entry, now)
