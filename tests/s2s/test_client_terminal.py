"""What the person sees, and the key that they press."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from s2s.client.conversation import Conversation
from s2s.client.devices import DeviceError
from s2s.client.effects import SessionOptions
from s2s.client.keys import keys
from s2s.client.lines import Lines
from s2s.client.player import Player
from s2s.client.terminal import Terminal, meter

LONG = "word " * 30


def screen(terminal: bool) -> tuple[Terminal, io.StringIO]:
    file = io.StringIO()
    return Terminal(Console(file=file, force_terminal=terminal, color_system=None, width=40)), file


@pytest.fixture
def conversation() -> Conversation:
    conversation = Conversation(SessionOptions(), Player())
    conversation.lines.of("you", "u").text = "How are"
    return conversation


def test_a_file_gets_only_lines_that_are_finished_each_once(conversation: Conversation) -> None:
    terminal, file = screen(terminal=False)
    with terminal:
        terminal.show(conversation, 0.0)
        assert file.getvalue() == ""
        conversation.lines.of("you", "u").text = "How are you?"
        conversation.lines.of("you", "u").done = True
        terminal.show(conversation, 0.1)
        terminal.show(conversation, 0.2)
    assert file.getvalue() == "you:   How are you?\n"


def test_a_terminal_shows_what_grows_the_level_and_the_state(conversation: Conversation) -> None:
    terminal, file = screen(terminal=True)
    conversation.level_db = -35.0
    with terminal:
        terminal.show(conversation, 0.0)
    assert "you:   How are" in file.getvalue()
    assert f"{meter(-35.0)}  not connected" in file.getvalue()


@pytest.mark.parametrize("done", [True, False])
def test_what_is_long_is_wrapped_on_a_terminal(conversation: Conversation, done: bool) -> None:
    terminal, file = screen(terminal=True)
    conversation.lines.of("you", "u").text = LONG
    conversation.lines.of("you", "u").done = done
    with terminal:
        terminal.show(conversation, 0.0)
    rows = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()))
    assert sum(row.count("word") for row in rows) >= 30
    assert max(len(row.rstrip()) for row in rows) <= 40


def test_what_is_long_is_one_line_in_a_file(conversation: Conversation) -> None:
    terminal, file = screen(terminal=False)
    conversation.lines.of("you", "u").text = LONG
    conversation.lines.end()
    terminal.show(conversation, 0.0)
    assert file.getvalue() == f"you:   {LONG.strip()}\n"


def test_the_meter_goes_from_silence_to_loud() -> None:
    assert [meter(level).count("▮") for level in (-96.0, -60.0, -35.0, -10.0, 0.0)] == [0, 0, 10, 20, 20]


def test_the_figures_at_the_end(conversation: Conversation) -> None:
    terminal, file = screen(terminal=False)
    conversation.answers, conversation.latencies_s = 3, [0.5, 2.0, 0.7]
    terminal.sum_up(conversation)
    assert file.getvalue().startswith("3 answers; 0.70 s from the end of speech")
    conversation.player.underruns = 1
    terminal.sum_up(conversation)
    assert "; 1 gap in the sound" in file.getvalue()


def test_lines_are_given_in_the_order_in_which_they_began() -> None:
    lines = Lines()
    lines.of("you", "u")
    lines.of("agent", "a").done = True
    assert lines.take() == []
    lines.of("you", "u").done = True
    assert [line.item_id for line in lines.take()] == ["u", "a"]


def test_open_lines_are_ended_as_they_are_and_empty_ones_left_out() -> None:
    lines = Lines()
    lines.of("you", "u")
    lines.of("agent", "a").text = "Well"
    lines.end()
    assert [str(line) for line in lines.take()] == ["agent: Well"]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[int]:
    """Where to write what is typed: a terminal or a pipe."""
    near, far = os.openpty() if request.param == "terminal" else reversed(os.pipe())
    with open(far, "rb", buffering=0) as stdin, open(near, "wb", buffering=0):
        monkeypatch.setattr(sys, "stdin", stdin)
        yield near


@pytest.mark.parametrize(
    ("typed", "text", "presses"),
    [("terminal", b" x\n", 2), ("pipe", b" x\n\n", 2)],
    indirect=["typed"],
)
async def test_the_key_is_space_or_enter_on_a_terminal_and_a_line_elsewhere(
    typed: int, text: bytes, presses: int
) -> None:
    pressed = 0
    all_pressed = asyncio.Event()

    def toggle() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == presses:
            all_pressed.set()

    with keys(toggle):
        os.write(typed, text)
        async with asyncio.timeout(5):
            await all_pressed.wait()
    assert pressed == presses


def test_a_key_that_nobody_can_press_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch() -> None:
        with keys(lambda: None):
            pass

    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(DeviceError, match="needs a keyboard"):
            asyncio.run(watch())
