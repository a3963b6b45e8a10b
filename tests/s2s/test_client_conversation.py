"""The client's side of a conversation: what the server says, what the person does, and what becomes of it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from s2s.client.conversation import (
    ECHO_TAIL_S,
    MOST_TOOL_ROUNDS,
    TRANSCRIPT_PATIENCE_S,
    Conversation,
)
from s2s.client.effects import Call, Send, SessionOptions
from s2s.client.player import WIRE_HZ, Player

Json = dict[str, Any]
FRAME_S = 0.02
QUIET = bytes(960)
LOUD = np.full(480, 8000, np.int16).tobytes()
VAD = {"type": "server_vad", "silence_duration_ms": 500, "interrupt_response": True}


class Scene:
    """A conversation with its clock: microphone and speaker run in step, 20 ms at a time."""

    def __init__(self, **options: Any) -> None:
        self.player = Player()
        self.conversation = Conversation(SessionOptions(**options), self.player)
        self.now = 100.0
        self.sent: list[Json] = []
        self.calls: list[Call] = []
        self.played: list[bytes] = []

    def connect(self, turn_detection: Json | None = VAD) -> Json:
        """The session's settings that were asked for."""
        session = {"audio": {"input": {"turn_detection": turn_detection}}}
        self.server("session.created", session=session)
        return self.kinds("session.update")[-1]["session"]

    def server(self, kind: str, **fields: Any) -> None:
        self.conversation.receive({"type": kind, **fields}, self.now)
        self.collect()

    def live(self, seconds: float, frame: bytes = QUIET) -> None:
        for _ in range(round(seconds / FRAME_S)):
            self.played.append(self.player.pull(480, self.now).tobytes())
            self.now += FRAME_S
            self.conversation.hear(frame, self.now)
            self.conversation.tick(self.now)
            self.collect()

    def collect(self) -> None:
        for effect in self.conversation.effects():
            if isinstance(effect, Send):
                self.sent.append(effect.event)
            else:
                self.calls.append(effect)

    def kinds(self, kind: str) -> list[Json]:
        return [event for event in self.sent if event["type"] == kind]

    def turn(self, item_id: str = "user-1") -> None:
        """A second of speech that the server hears, and half a second of silence."""
        start_ms = self.heard_ms
        self.live(0.2, LOUD)
        self.server("input_audio_buffer.speech_started", item_id=item_id, audio_start_ms=start_ms)
        self.live(0.8, LOUD)
        self.live(0.5)
        self.server("input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=self.heard_ms)
        self.server("input_audio_buffer.committed", item_id=item_id)

    @property
    def heard_ms(self) -> int:
        return sum(len(sound) for sound in self.sound()) * 1000 // 2 // WIRE_HZ

    def sound(self) -> list[bytes]:
        return [base64.b64decode(event["audio"]) for event in self.kinds("input_audio_buffer.append")]

    def answer(self, seconds: float, response_id: str = "resp-1", item_id: str = "agent-1") -> None:
        """The server begins an answer and sends this much of its sound."""
        self.server("response.created", response={"id": response_id})
        self.sound_of(seconds, response_id, item_id)

    def sound_of(self, seconds: float, response_id: str = "resp-1", item_id: str = "agent-1") -> None:
        names = {"response_id": response_id, "item_id": item_id, "content_index": 0}
        self.server("response.output_audio_transcript.delta", **names, delta="Two is two. ")
        pcm = np.full(round(seconds * WIRE_HZ), 6000, np.int16).tobytes()
        self.server("response.output_audio.delta", **names, delta=base64.b64encode(pcm).decode())

    def end(self, response_id: str = "resp-1", item_id: str = "agent-1", status: str = "completed") -> None:
        item = {"type": "message", "id": item_id, "status": status}
        self.server("response.output_item.done", item=item)
        self.server("response.done", response={"id": response_id, "status": status, "output": [item]})

    def call(self, call_id: str, response_id: str = "resp-1", done: bool = True) -> None:
        """The server's answer is a call."""
        item = {
            "type": "function_call", "id": f"item-{call_id}", "status": "completed", "call_id": call_id,
            "name": "f", "arguments": "{}",
        }  # fmt: skip
        self.server("response.output_item.done", item=item)
        if done:
            self.server(
                "response.done", response={"id": response_id, "status": "completed", "output": [item]}
            )

    def lines(self) -> list[str]:
        return [str(line) for line in self.conversation.lines.take()]


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.connect()
    return scene


def test_the_session_is_asked_for_what_the_person_wants_and_nothing_else() -> None:
    session = Scene().connect()
    assert set(session) == {"type", "audio"}
    assert set(session["audio"]["input"]) == {"format", "transcription"}
    assert set(session["audio"]["output"]) == {"format"}
    tools = [{"type": "function", "name": "f"}]
    session = Scene(voice="af_sky", instructions="", tools=tools, push_to_talk=True).connect()
    assert session["audio"]["output"]["voice"] == "af_sky"
    assert session["audio"]["input"]["turn_detection"] is None
    assert (session["instructions"], session["tools"]) == ("", tools)


@pytest.mark.parametrize(("push_to_talk", "notes"), [(False, 1), (True, 0)])
def test_a_server_without_turn_detection_needs_the_key(push_to_talk: bool, notes: int) -> None:
    scene = Scene(push_to_talk=push_to_talk)
    scene.connect(None)
    scene.server("session.updated", session={"audio": {"input": {"turn_detection": None}}})
    assert ["--push-to-talk" in line for line in scene.lines()] == [True] * notes


def test_every_frame_reaches_the_server_once_connected() -> None:
    scene = Scene()
    scene.live(0.1, LOUD)
    assert scene.sound() == []
    scene.connect()
    scene.live(0.1, LOUD)
    assert scene.sound() == [LOUD] * 5


def test_a_turn_is_shown_with_its_latency(scene: Scene) -> None:
    scene.turn()
    scene.server(
        "conversation.item.input_audio_transcription.completed", item_id="user-1", transcript="One and one?"
    )
    scene.live(0.1)
    scene.answer(0.5)
    scene.end()
    assert scene.conversation.busy(scene.now)
    scene.live(0.6)
    assert not scene.conversation.busy(scene.now)
    assert scene.lines() == ["you:   One and one?", "agent: Two is two.  (0.60 s)"]
    assert scene.conversation.latencies_s == [pytest.approx(0.6)]
    assert scene.conversation.answers == 1


def test_latency_counts_from_the_last_speech_not_from_the_servers_end() -> None:
    scene = Scene()
    scene.connect({"type": "semantic_vad"})  # which may wait for seconds and names no silence
    scene.turn()
    scene.answer(0.5)
    scene.live(0.2)
    assert scene.conversation.latencies_s == [pytest.approx(0.5)]


def test_latency_counts_to_what_can_be_heard(scene: Scene) -> None:
    scene.turn()
    scene.server("response.created", response={"id": "r"})
    names = {"response_id": "r", "item_id": "a", "content_index": 0}
    pcm = np.concatenate([np.zeros(2400, np.int16), np.full(2400, 6000, np.int16)]).tobytes()
    scene.server("response.output_audio.delta", **names, delta=base64.b64encode(pcm).decode())
    scene.live(0.2)
    assert scene.conversation.latencies_s == [pytest.approx(0.6)]


def test_speech_over_an_answer_stops_it_where_it_was_heard(scene: Scene) -> None:
    scene.turn()
    scene.answer(3.0)
    scene.live(1.0)
    scene.server("input_audio_buffer.speech_started", item_id="user-2", audio_start_ms=2400)
    truncation = scene.kinds("conversation.item.truncate")[-1]
    assert truncation == {
        "type": "conversation.item.truncate", "item_id": "agent-1", "content_index": 0, "audio_end_ms": 1000,
    }  # fmt: skip
    scene.live(0.02)  # in which the sound fades
    scene.live(1.0)
    assert not any(any(block) for block in scene.played[-50:])


def test_what_still_comes_of_an_interrupted_answer_is_not_played(scene: Scene) -> None:
    scene.answer(1.0)
    scene.live(0.2)
    scene.server("input_audio_buffer.speech_started", item_id="user-2", audio_start_ms=0)
    scene.sound_of(1.0)
    scene.end(status="cancelled")
    assert not scene.player.plays(scene.now)
    scene.live(0.02)
    assert "interrupted after 0.2 s" in str(scene.conversation.lines.find("agent-1"))
    scene.answer(1.0, "resp-2", "agent-2")
    assert scene.player.plays(scene.now)


def test_an_answer_that_came_whole_is_truncated_too(scene: Scene) -> None:
    scene.answer(2.0)
    scene.end()
    scene.live(0.5)
    scene.server("input_audio_buffer.speech_started", item_id="user-2", audio_start_ms=0)
    assert scene.kinds("conversation.item.truncate")[-1]["audio_end_ms"] == 500


def test_nothing_is_truncated_where_nothing_plays(scene: Scene) -> None:
    scene.answer(0.2)
    scene.end()
    scene.live(1.0)
    scene.server("input_audio_buffer.speech_started", item_id="user-2", audio_start_ms=0)
    assert scene.kinds("conversation.item.truncate") == []


def test_an_answer_that_may_not_be_interrupted_goes_on() -> None:
    scene = Scene()
    scene.connect({**VAD, "interrupt_response": False})
    scene.answer(1.0)
    scene.live(0.2)
    scene.server("input_audio_buffer.speech_started", item_id="user-2", audio_start_ms=0)
    assert scene.player.plays(scene.now)


def test_a_turn_without_words_leaves_no_line_and_no_answer_is_awaited(scene: Scene) -> None:
    scene.turn()
    assert scene.conversation.busy(scene.now)
    scene.server("conversation.item.input_audio_transcription.completed", item_id="user-1", transcript=" ")
    assert not scene.conversation.busy(scene.now)
    assert scene.conversation.lines.open == []


def test_a_tools_result_is_answered_though_a_cough_came_between(scene: Scene) -> None:
    scene.server("response.created", response={"id": "resp-1"})
    scene.call("call-1")
    scene.turn("cough")
    scene.conversation.tool_done("call-1", "7")
    scene.collect()
    assert scene.kinds("response.create") == []
    scene.server("conversation.item.input_audio_transcription.completed", item_id="cough", transcript="")
    assert len(scene.kinds("response.create")) == 1


def test_the_latency_of_a_turn_is_not_that_of_an_answer_before_it() -> None:
    scene = Scene()
    scene.connect({**VAD, "interrupt_response": False})
    scene.turn()
    scene.answer(5.0)
    scene.live(0.2)
    scene.turn("user-2")
    scene.live(0.1)
    assert len(scene.conversation.latencies_s) == 1


def test_where_the_server_ends_only_the_response_its_answer_is_over_too(scene: Scene) -> None:
    scene.connect()
    scene.turn()
    scene.answer(0.5)
    item = {"type": "message", "id": "agent-1", "status": "completed"}
    scene.server("response.done", response={"id": "resp-1", "status": "completed", "output": [item]})
    scene.live(TRANSCRIPT_PATIENCE_S + 1)
    assert not scene.player.plays(scene.now)
    assert any("Two is two." in line for line in scene.lines())


def test_lines_keep_their_order_and_a_transcript_that_never_comes_holds_them_up_for_a_while(
    scene: Scene,
) -> None:
    scene.turn()
    scene.answer(0.1)
    scene.end()
    scene.live(0.5)
    assert scene.lines() == []
    scene.live(TRANSCRIPT_PATIENCE_S)
    assert scene.lines() == ["you:   …", "agent: Two is two.  (0.50 s)"]


def test_a_failed_answer_is_told(scene: Scene) -> None:
    scene.server("response.created", response={"id": "r"})
    details = {"error": {"message": "TTS is gone"}}
    scene.server("response.done", response={"id": "r", "status": "failed", "status_details": details})
    assert scene.lines() == ["note:  the answer failed: TTS is gone"]
    assert not scene.conversation.busy(scene.now)


def test_an_error_is_told_and_the_conversation_goes_on(scene: Scene) -> None:
    scene.server("error", error={"code": "invalid_value", "message": "No such voice."})
    assert scene.lines() == ["note:  the server says: No such voice."]
    scene.live(0.02, LOUD)
    assert scene.sound() == [LOUD]


def test_unknown_events_are_no_trouble(scene: Scene) -> None:
    scene.server("something.new", anything=1)
    assert scene.lines() == []


def test_a_blocked_microphone_hears_silence_while_an_answer_plays_and_a_moment_longer() -> None:
    scene = Scene(block_microphone=True)
    scene.connect()
    scene.answer(0.4)
    scene.end()
    scene.live(1.0, LOUD)
    sound = scene.sound()
    blocked = sound.count(QUIET) * FRAME_S
    assert len(sound) == 50, "the server's clock goes on"
    assert blocked == pytest.approx(0.4 + ECHO_TAIL_S, abs=2 * FRAME_S)
    assert sound[-1] == LOUD


class TestPushToTalk:
    @pytest.fixture
    def scene(self) -> Scene:
        scene = Scene(push_to_talk=True)
        scene.connect(None)
        return scene

    def test_only_what_is_said_with_the_key_down_is_sent(self, scene: Scene) -> None:
        scene.live(1.0, LOUD)
        scene.conversation.press(scene.now)
        scene.live(0.5, LOUD)
        scene.conversation.release(scene.now)
        scene.live(1.0, LOUD)
        assert [event["type"] for event in scene.sent if event["type"] != "session.update"] == [
            "input_audio_buffer.clear", *["input_audio_buffer.append"] * 25,
            "input_audio_buffer.commit", "response.create",
        ]  # fmt: skip

    def test_latency_counts_from_the_key(self, scene: Scene) -> None:
        scene.conversation.press(scene.now)
        scene.live(0.5, LOUD)
        scene.conversation.release(scene.now)
        scene.live(0.3)
        scene.answer(0.5)
        scene.live(0.1)
        assert scene.conversation.latencies_s == [pytest.approx(0.3)]

    def test_a_touch_is_no_turn(self, scene: Scene) -> None:
        scene.conversation.press(scene.now)
        scene.live(0.06, LOUD)
        scene.conversation.release(scene.now)
        scene.collect()
        assert scene.sent[-1]["type"] == "input_audio_buffer.clear"
        assert scene.lines() == ["note:  that was too short to be heard"]

    def test_the_key_over_an_answer_cancels_it_and_the_next_waits_for_its_end(self, scene: Scene) -> None:
        scene.answer(3.0)
        scene.live(1.0)
        scene.conversation.press(scene.now)
        scene.live(0.5, LOUD)
        scene.conversation.release(scene.now)
        scene.collect()
        assert len(scene.kinds("response.cancel")) == 1
        assert scene.kinds("conversation.item.truncate")[0]["audio_end_ms"] == 1000
        assert scene.kinds("response.create") == []
        scene.end(status="cancelled")
        assert len(scene.kinds("response.create")) == 1

    def test_an_answer_that_begins_after_the_next_press_is_cancelled_and_not_heard(
        self, scene: Scene
    ) -> None:
        scene.conversation.press(scene.now)
        scene.live(0.5, LOUD)
        scene.conversation.release(scene.now)
        scene.conversation.press(scene.now)
        scene.answer(1.0)
        assert len(scene.kinds("response.cancel")) == 1
        assert not scene.player.plays(scene.now)

    def test_a_refused_answer_is_not_awaited(self, scene: Scene) -> None:
        scene.conversation.press(scene.now)
        scene.live(0.5, LOUD)
        scene.conversation.release(scene.now)
        scene.collect()
        (asked,) = scene.kinds("response.create")
        assert scene.conversation.busy(scene.now)
        scene.server("error", error={"message": "Not now.", "event_id": asked["event_id"]})
        assert not scene.conversation.busy(scene.now)


class TestTools:
    def test_a_call_is_run_and_its_result_answered(self, scene: Scene) -> None:
        scene.server("response.created", response={"id": "resp-1"})
        scene.call("c1")
        assert scene.calls == [Call("c1", "f", "{}")]
        assert scene.kinds("response.create") == []
        scene.conversation.tool_done("c1", "42")
        scene.collect()
        created = scene.kinds("conversation.item.create")[0]["item"]
        assert created == {"type": "function_call_output", "call_id": "c1", "output": "42"}
        assert len(scene.kinds("response.create")) == 1

    def test_parallel_calls_are_answered_once_when_all_are_done(self, scene: Scene) -> None:
        scene.server("response.created", response={"id": "resp-1"})
        scene.call("c1", done=False)
        scene.call("c2", done=False)
        scene.conversation.tool_done("c1", "1")
        scene.conversation.tool_done("c2", "2")
        scene.collect()
        assert scene.kinds("response.create") == [], "the response that called is not over"
        scene.server("response.done", response={"id": "resp-1", "status": "completed", "output": []})
        assert len(scene.kinds("response.create")) == 1

    def test_a_person_who_speaks_meanwhile_gets_one_answer_the_servers(self, scene: Scene) -> None:
        scene.server("response.created", response={"id": "resp-1"})
        scene.call("c1")
        scene.server("input_audio_buffer.speech_started", item_id="user-2", audio_start_ms=0)
        scene.conversation.tool_done("c1", "1")
        scene.server("input_audio_buffer.speech_stopped", item_id="user-2", audio_end_ms=0)
        scene.answer(0.1, "resp-2")
        scene.end("resp-2")
        assert len(scene.kinds("conversation.item.create")) == 1
        assert scene.kinds("response.create") == []

    def test_calls_without_end_are_ended_by_words(self, scene: Scene) -> None:
        for number in range(MOST_TOOL_ROUNDS):
            scene.server("response.created", response={"id": "r"})
            scene.call(f"c{number}", "r")
            scene.conversation.tool_done(f"c{number}", "1")
            scene.collect()
        limits = [event.get("response") for event in scene.kinds("response.create")]
        assert limits == [None] * (MOST_TOOL_ROUNDS - 1) + [{"tool_choice": "none"}]

    def test_an_interrupted_call_is_not_run(self, scene: Scene) -> None:
        scene.server("response.created", response={"id": "r"})
        item = {
            "type": "function_call",
            "id": "i",
            "status": "incomplete",
            "call_id": "c",
            "name": "f",
            "arguments": "{",
        }
        scene.server("response.output_item.done", item=item)
        assert scene.calls == []


class TestLostConnection:
    def test_it_is_told_and_what_played_is_stopped(self, scene: Scene) -> None:
        scene.answer(3.0)
        scene.live(0.5)
        scene.conversation.lost(scene.now, "the connection was lost")
        assert not scene.conversation.busy(scene.now)
        assert scene.conversation.state(scene.now) == "not connected"
        assert scene.lines()[-1] == "note:  the connection was lost"
        scene.live(0.1, LOUD)
        assert not any(sound == LOUD for sound in scene.sound())

    def test_the_next_session_is_set_up_and_the_loss_of_history_said(self, scene: Scene) -> None:
        scene.conversation.lost(scene.now, "gone")
        scene.connect()
        assert len(scene.kinds("session.update")) == 2
        assert "remembers nothing" in scene.lines()[-1]

    def test_a_tool_of_the_lost_session_has_nobody_to_tell(self, scene: Scene) -> None:
        scene.server("response.created", response={"id": "resp-1"})
        scene.call("c1")
        scene.conversation.lost(scene.now, "gone")
        scene.connect()
        scene.conversation.tool_done("c1", "1")
        scene.collect()
        assert scene.kinds("conversation.item.create") == []

    def test_moments_of_the_new_session_are_counted_anew(self, scene: Scene) -> None:
        scene.live(10.0)
        scene.conversation.lost(scene.now, "gone")
        scene.sent.clear()
        scene.connect()
        scene.turn()
        scene.answer(0.5)
        scene.live(0.2)
        assert scene.conversation.latencies_s == [pytest.approx(0.5)]
