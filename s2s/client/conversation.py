"""The client's side of a Realtime conversation, without I/O: events and sound in, effects out, the time passed in.

All moments are seconds of the monotonic clock.  Sound is int16, mono, 24 kHz, in frames of any length.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from s2s.client.effects import Call, Effect, Json, Send, SessionOptions
from s2s.client.lines import Lines
from s2s.client.player import WIRE_HZ, Player, level_db
from s2s.client.speech_clock import SpeechClock

ECHO_TAIL_S = 0.25
"""How long a room goes on after the speaker."""
SHORTEST_TURN_S = 0.1
TRANSCRIPT_PATIENCE_S = 20.0
MOST_TOOL_ROUNDS = 8
"""Answers in a row that only call tools; after these the model has to speak."""
ASKED = "ask"
"""The id of our `response.create`, by which its refusal is known."""


class Conversation:
    """See the module; `effects` gives what is to be done after each call."""

    def __init__(self, options: SessionOptions, player: Player) -> None:
        self.options = options
        self.player = player
        self.lines = Lines()
        self.level_db = -96.0
        """Of the last frame from the microphone."""
        self.latencies_s: list[float] = []
        """Of each turn: from the end of speech to the first audible sample."""
        self.answers = 0
        """How many answers with sound or text were complete."""
        self.connected = False
        self.was_connected = False
        """Whether there ever was a session."""
        self.talking = False
        """Push to talk: whether the key is down."""
        self.last_event = 0.0
        self._effects: list[Effect] = []
        self._quiet_from = 0.0
        self._reset()

    def _reset(self) -> None:
        self.hearing = False
        self._clock = SpeechClock()
        self._recorded = 0
        self._starts_at: dict[str, float] = {}
        self._turn_detection: Mapping[str, Any] = {}
        self._response: str | None = None
        self._cut: set[str] = set()
        self._parts: dict[str, int] = {}
        self._calls: set[str] = set()
        self._rounds = 0
        self._owed = False
        self._wants_answer = False
        self._speech_ended: float | None = None

    def effects(self) -> list[Effect]:
        """What is to be done now, in this order; each is given once."""
        effects, self._effects = self._effects, []
        return effects

    def busy(self, now: float) -> bool:
        """Whether somebody speaks, or an answer is still to come or to be played."""
        return bool(
            self.hearing
            or self.talking
            or self._owed
            or self._wants_answer
            or self._response
            or self._calls
            or self.player.plays(now)
        )

    def state(self, now: float) -> str:
        """In a word or two, for the person."""
        if not self.connected:
            return "not connected"
        if self.player.plays(now):
            return "speaking (microphone off)" if self.options.block_microphone else "speaking"
        if self.hearing or self.talking:
            return "hearing you"
        if self.busy(now):
            return "thinking"
        return "press space to talk" if self.options.push_to_talk else "listening"

    def hear(self, frame: bytes, at: float) -> None:
        """Sound from the microphone; its last sample was spoken `at`."""
        self.level_db = level_db(np.frombuffer(frame, "<i2"))
        if not self.connected or (self.options.push_to_talk and not self.talking):
            return
        if self.options.block_microphone:
            if self.player.plays(at):
                self._quiet_from = at + ECHO_TAIL_S
            if at < self._quiet_from:
                frame = bytes(len(frame))
        self._recorded += len(frame) // 2
        self._clock.sent(len(frame) // 2, level_db(np.frombuffer(frame, "<i2")), at)
        self._send("input_audio_buffer.append", audio=base64.b64encode(frame).decode())

    def press(self, now: float) -> None:
        """Push to talk: the person begins to speak, over the answer if there is one."""
        if not self.connected or self.talking:
            return
        self.talking = True
        self._recorded = 0
        self._wants_answer = False
        if self._response is not None:
            self._send("response.cancel")
        self._interrupt(now)
        self._send("input_audio_buffer.clear")

    def release(self, now: float) -> None:
        """Push to talk: the person has spoken."""
        if not self.talking:
            return
        self.talking = False
        if self._recorded < SHORTEST_TURN_S * WIRE_HZ:
            self.lines.note("that was too short to be heard")
            self._send("input_audio_buffer.clear")
            return
        self._speech_ended = now
        self._rounds = 0
        self._send("input_audio_buffer.commit")
        self._wants_answer = True
        self._ask()

    def tool_done(self, call_id: str, output: str) -> None:
        """The result of a `Call`, as the model will read it."""
        if call_id not in self._calls:
            return  # of a connection that was lost
        self._calls.discard(call_id)
        item = {"type": "function_call_output", "call_id": call_id, "output": output}
        self._send("conversation.item.create", item=item)
        self._wants_answer = True
        self._ask()

    def tick(self, now: float) -> None:
        """Look at the speaker: what can be heard since the last time, and what is over."""
        for line in self.lines.open:
            if line.side == "agent":
                at = self.player.audible_at(line.item_id)
                if at is not None and self._speech_ended is not None and at >= self._speech_ended:
                    self.latencies_s.append(at - self._speech_ended)
                    line.notes.insert(0, f"{self.latencies_s[-1]:.2f} s")
                    self._speech_ended = None
                line.done = line.done or (line.spoken and not self.player.holds(line.item_id, now))
            elif line.side == "you" and line.spoken and now - line.since > TRANSCRIPT_PATIENCE_S:
                line.text, line.done = line.text or "…", True

    def lost(self, now: float, reason: str) -> None:
        """The connection is gone, and with it all that the server knew."""
        self.connected = self.talking = False
        self.player.flush(now)
        self.lines.end()
        self.lines.note(reason)
        self._effects.clear()
        self._reset()

    def receive(self, event: Json, now: float) -> None:
        """An event from the server."""
        self.last_event = now
        handler = _HANDLERS.get(str(event.get("type")))
        if handler is not None:
            handler(self, event, now)

    def _send(self, kind: str, **fields: Any) -> None:
        self._effects.append(Send({"type": kind, **fields}))

    def _created(self, event: Json, now: float) -> None:
        if self.was_connected:
            self.lines.note("connected again; the server remembers nothing of what was said before")
        self.connected = self.was_connected = True
        self._turn_detection = _turn_detection(event)
        sound = {"type": "audio/pcm", "rate": WIRE_HZ}
        hears: Json = {"format": sound, "transcription": {"model": "whisper-1"}}
        if self.options.push_to_talk:
            hears["turn_detection"] = None
        speaks: Json = {"format": sound}
        if self.options.voice:
            speaks["voice"] = self.options.voice
        session: Json = {"type": "realtime", "audio": {"input": hears, "output": speaks}}
        if self.options.instructions is not None:
            session["instructions"] = self.options.instructions
        if self.options.tools:
            session["tools"] = list(self.options.tools)
        self._send("session.update", session=session)

    def _updated(self, event: Json, now: float) -> None:
        self._turn_detection = _turn_detection(event)
        if not self._turn_detection and not self.options.push_to_talk:
            self.lines.note("this server does not hear where a turn ends: use --push-to-talk")

    def _speech_started(self, event: Json, now: float) -> None:
        self.hearing = True
        self._starts_at[event["item_id"]] = self._clock.moment(event["audio_start_ms"])
        if self._turn_detection.get("interrupt_response", True):
            self._interrupt(now)
        self.lines.of("you", event["item_id"])

    def _speech_stopped(self, event: Json, now: float) -> None:
        self.hearing = False
        self._owed = True
        self._rounds = 0
        line = self.lines.of("you", event["item_id"])
        line.spoken, line.since = True, now
        start = self._starts_at.pop(event["item_id"], 0.0)
        silence_ms = self._turn_detection.get("silence_duration_ms") or 0
        end = self._clock.moment(event["audio_end_ms"])
        self._speech_ended = self._clock.end_of_speech(start, end, silence_ms)

    def _committed(self, event: Json, now: float) -> None:
        line = self.lines.of("you", event["item_id"])
        line.spoken, line.since = True, now

    def _transcribed(self, event: Json, now: float) -> None:
        line = self.lines.of("you", event["item_id"])
        line.text = str(event["transcript"])
        line.done = True
        if not line.text.strip():
            self._owed, self._speech_ended = False, None
            self.lines.drop(line.item_id)
            self._ask()

    def _transcript_delta(self, event: Json, now: float) -> None:
        self.lines.of("you", event["item_id"]).text += event["delta"]

    def _transcript_failed(self, event: Json, now: float) -> None:
        self._owed = False
        self.lines.drop(event["item_id"])
        self.lines.note(f"your words could not be transcribed: {event['error'].get('message')}")
        self._ask()

    def _response_created(self, event: Json, now: float) -> None:
        self._response = event["response"]["id"]
        self._owed = self._wants_answer = False
        if self.talking:  # the person began anew before it did
            self._send("response.cancel")
            self._cut.add(event["response"]["id"])

    def _answer_text(self, event: Json, now: float) -> None:
        self.lines.of("agent", event["item_id"]).text += event["delta"]

    def _answer_sound(self, event: Json, now: float) -> None:
        if event["response_id"] in self._cut:
            return
        self._parts[event["item_id"]] = event["content_index"]
        self.lines.of("agent", event["item_id"])
        self.player.play(event["item_id"], base64.b64decode(event["delta"]))

    def _answer_sound_done(self, event: Json, now: float) -> None:
        self.player.finish(event["item_id"])

    def _item_done(self, event: Json, now: float) -> None:
        item = event["item"]
        if item["type"] == "function_call" and item.get("status") == "completed":
            self._calls.add(item["call_id"])
            self.lines.note(f"{item['name']}({item['arguments']})")
            self._effects.append(Call(item["call_id"], item["name"], item["arguments"]))
        self._finish(item["id"], now)

    def _finish(self, item_id: str, now: float) -> None:
        """No more will come of the item."""
        self.player.finish(item_id)
        line = self.lines.find(item_id)
        if line is not None and not line.spoken:
            line.spoken, line.since = True, now

    def _response_done(self, event: Json, now: float) -> None:
        response = event["response"]
        self._response = None
        self._cut.discard(response["id"])
        details = response.get("status_details") or {}
        if response["status"] == "failed":
            error = details.get("error") or {}
            self.lines.note(
                f"the answer failed: {error.get('message') or error.get('code') or 'no reason given'}"
            )
        for item in response.get("output", ()):
            if item["type"] == "message":  # some servers end no item, only the response
                self._finish(item["id"], now)
        kinds = [item["type"] for item in response.get("output", ())]
        if response["status"] == "completed":
            self.answers += "message" in kinds
            self._rounds = self._rounds + 1 if "function_call" in kinds else 0
        self._ask()

    def _error(self, event: Json, now: float) -> None:
        error = event["error"]
        if error.get("event_id") == ASKED:
            self._owed = False
        if error.get("code") != "response_cancel_not_active":
            self.lines.note(f"the server says: {error.get('message')}")

    def _interrupt(self, now: float) -> None:
        """Stop the speaker, and tell the server what was heard."""
        if self._response is not None:
            self._cut.add(self._response)
        for cut in self.player.flush(now):
            self._send(
                "conversation.item.truncate",
                item_id=cut.item_id,
                content_index=self._parts.get(cut.item_id, 0),
                audio_end_ms=cut.heard_ms,
            )
            if (line := self.lines.find(cut.item_id)) is not None:
                line.notes.append(f"interrupted after {cut.heard_ms / 1000:.1f} s")

    def _ask(self) -> None:
        """Ask for the answer that is wanted, once nothing stands in its way."""
        if (
            not self._wants_answer
            or self._response
            or self._calls
            or self.hearing
            or self.talking
            or self._owed
        ):
            return
        self._wants_answer = False
        self._owed = True
        limits = {"response": {"tool_choice": "none"}} if self._rounds >= MOST_TOOL_ROUNDS else {}
        self._send("response.create", event_id=ASKED, **limits)


def _turn_detection(event: Json) -> Mapping[str, Any]:
    detection: Mapping[str, Any] = (
        event["session"].get("audio", {}).get("input", {}).get("turn_detection") or {}
    )
    return detection


_HANDLERS = {
    "session.created": Conversation._created,
    "session.updated": Conversation._updated,
    "input_audio_buffer.speech_started": Conversation._speech_started,
    "input_audio_buffer.speech_stopped": Conversation._speech_stopped,
    "input_audio_buffer.committed": Conversation._committed,
    "conversation.item.input_audio_transcription.delta": Conversation._transcript_delta,
    "conversation.item.input_audio_transcription.completed": Conversation._transcribed,
    "conversation.item.input_audio_transcription.failed": Conversation._transcript_failed,
    "response.created": Conversation._response_created,
    "response.output_audio_transcript.delta": Conversation._answer_text,
    "response.output_text.delta": Conversation._answer_text,
    "response.output_audio.delta": Conversation._answer_sound,
    "response.output_audio.done": Conversation._answer_sound_done,
    "response.output_item.done": Conversation._item_done,
    "response.done": Conversation._response_done,
    "error": Conversation._error,
}
