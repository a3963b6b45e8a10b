"""Recordings in turn: each when the answer to the one before has been heard."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from s2s.client.script import LAG_S, NO_SPEECH_S, PATIENCE_S, SETTLED_S, Recording, Script


class Stage:
    """A voice and a conversation as the script sees them."""

    def __init__(self, *names: str, push_to_talk: bool = False) -> None:
        self.said: list[str] = []
        self.saying = False
        self.connected = True
        self.is_busy = False
        self.answers = 0
        self.last_event = 0.0
        self.player = SimpleNamespace(plays=lambda now: False)
        self.options = SimpleNamespace(push_to_talk=push_to_talk)
        self.keys: list[str] = []
        self.now = 50.0
        self.script = Script(self, [Recording(name, name.encode()) for name in names])

    def say(self, pcm: bytes) -> None:
        self.said.append(pcm.decode())
        self.saying = True

    def busy(self, now: float) -> bool:
        return self.is_busy

    def press(self, now: float) -> None:
        self.keys.append("press")

    def release(self, now: float) -> None:
        self.keys.append("release")

    def step(self, seconds: float = 0.0) -> bool:
        self.now += seconds
        return self.script.step(self, self.now)  # type: ignore[arg-type]

    def speak(self, seconds: float = 2.0) -> None:
        """The recording is said to its end."""
        self.step(seconds)
        self.saying = False
        self.is_busy = True
        self.step()

    def answer(self, seconds: float = 3.0) -> None:
        """It is answered, and the answer heard to its end."""
        self.last_event = self.now
        self.step(seconds)
        self.is_busy = False
        self.answers += 1


def test_one_recording_after_the_answer_to_the_other() -> None:
    stage = Stage("a", "b")
    assert not stage.step()
    assert stage.said == ["a"]
    stage.speak()
    stage.answer()
    assert not stage.step(SETTLED_S - 0.1)
    assert stage.said == ["a"]
    assert not stage.step(0.2)
    assert stage.said == ["a", "b"]
    stage.speak()
    stage.answer()
    assert stage.step(SETTLED_S)
    assert stage.script.unanswered == []


def test_an_answer_that_is_over_early_may_have_a_sequel() -> None:
    stage = Stage("a")
    stage.step()
    stage.speak()
    stage.answer(0.1)
    assert not stage.step(LAG_S - 0.2)
    assert stage.step(0.2)


def test_a_recording_without_speech_is_given_up_after_a_while() -> None:
    stage = Stage("noise", "b")
    stage.step()
    stage.speak()
    stage.is_busy = False
    assert not stage.step(NO_SPEECH_S - 0.1)
    assert stage.script.unanswered == []
    assert not stage.step(0.2)
    assert stage.script.unanswered == ["noise"]
    assert stage.said == ["noise", "b"]


def test_a_server_that_owes_an_answer_and_says_nothing_is_not_waited_for_without_end() -> None:
    stage = Stage("a")
    stage.step()
    stage.speak()
    assert not stage.step(PATIENCE_S - 1)
    assert stage.step(2)
    assert stage.script.unanswered == ["a"]


def test_a_slow_answer_is_waited_for_as_long_as_something_comes() -> None:
    stage = Stage("a")
    stage.step()
    stage.speak()
    for _ in range(5):
        stage.last_event = stage.now
        assert not stage.step(PATIENCE_S - 1)


@pytest.mark.parametrize("connected", [True, False])
def test_nothing_is_said_without_a_connection(connected: bool) -> None:
    stage = Stage("a")
    stage.connected = connected
    stage.step()
    assert stage.said == (["a"] if connected else [])


def test_a_recording_presses_the_key() -> None:
    stage = Stage("a", push_to_talk=True)
    stage.step()
    assert stage.keys[-1] == "press"
    stage.speak()
    assert stage.keys[-1] == "release"
