"""The client as a program: sound devices, a connection and a terminal around one conversation."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import websockets

from s2s.audio import read_audio
from s2s.client.connection import MOST_ATTEMPTS, NoConnection, address, delay_s, session
from s2s.client.conversation import Conversation
from s2s.client.devices import CardMicrophone, CardSpeaker, DeviceLost, Hear, find_device
from s2s.client.effects import Call, Effect, Send, SessionOptions
from s2s.client.keys import keys
from s2s.client.player import WIRE_HZ, Player
from s2s.client.script import Recording, Script
from s2s.client.terminal import Terminal
from s2s.client.tools import Tools, load_tools
from s2s.client.virtual import WavMicrophone, WavSpeaker

TICK_S = 0.02
REFRESH_TICKS = 4
DONE, FAILED = 0, 1


class Microphone(Protocol):
    """What gives frames."""

    def start(self, hear: Hear) -> None: ...

    @property
    def problem(self) -> str | None: ...

    def close(self) -> None: ...


class Speaker(Protocol):
    """What pulls from a player."""

    @property
    def rate_hz(self) -> int: ...

    def start(self, player: Player) -> None: ...

    @property
    def problem(self) -> str | None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class TalkOptions:
    """What the person asked for, but where the server is."""

    model: str = "local"
    voice: str | None = None
    instructions: str | None = None
    input_device: str | None = None
    """Index or part of the name; None: the default."""
    output_device: str | None = None
    push_to_talk: bool = False
    block_microphone: bool = False
    tools: str | None = None
    """A Python module or file."""
    wav: Sequence[Path] = ()
    """In place of the microphone."""
    save: Path | None = None
    """In place of the speakers."""


class Program:
    """Everything that can be wrong before there is a server is found when this is made."""

    def __init__(self, options: TalkOptions, terminal: Terminal | None = None) -> None:
        """Raises `DeviceError`, `ToolError` or `AudioFileError`."""
        self.options = options
        self._tools = load_tools(options.tools) if options.tools else Tools()
        self._script: Script | None = None
        self._microphone: Microphone
        if options.wav:
            recorded = WavMicrophone()
            self._microphone = recorded
            self._script = Script(recorded, [_recording(path) for path in options.wav])
        else:
            self._microphone = CardMicrophone(find_device("input", options.input_device))
        self._speaker: Speaker = (
            WavSpeaker(options.save)
            if options.save is not None
            else CardSpeaker(find_device("output", options.output_device))
        )
        self._terminal = terminal or Terminal()
        self._player = Player(self._speaker.rate_hz)
        self._conversation = Conversation(
            SessionOptions(
                voice=options.voice,
                instructions=options.instructions,
                tools=self._tools.schemas,
                push_to_talk=options.push_to_talk,
                block_microphone=options.block_microphone,
            ),
            self._player,
        )
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        self._calls: set[asyncio.Task[None]] = set()

    def talk(self, url: str, api_key: str | None) -> int:
        """Talk to the server at `url` until the person ends it, or the recordings are through; the exit code.

        Raises `UrlError`, and `NoConnection` or `DeviceError` where the connection or a device fails for good.
        """
        place = address(url, self.options.model)
        try:
            with _terminated_as_interrupted():
                return asyncio.run(self._run(place, api_key))
        except KeyboardInterrupt:
            return DONE
        finally:
            if self._conversation.was_connected:
                self._terminal.sum_up(self._conversation)

    async def _run(self, place: str, api_key: str | None) -> int:
        async with AsyncExitStack() as stack:
            stack.callback(self._speaker.close)
            stack.callback(self._microphone.close)
            if self.options.push_to_talk and self._script is None:
                stack.enter_context(keys(self._toggle))
            stack.enter_context(self._terminal)
            stack.callback(self._show_rest)
            tasks = [asyncio.create_task(self._connect(place, api_key)), asyncio.create_task(self._tick())]
            stack.push_async_callback(self._end, tasks)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return max(task.result() for task in done)

    async def _end(self, tasks: Sequence[asyncio.Task[int]]) -> None:
        await _cancel([*tasks, *self._calls])

    def _show_rest(self) -> None:
        self._conversation.lines.end()
        self._terminal.show(self._conversation, time.monotonic())

    async def _connect(self, place: str, api_key: str | None) -> int:
        """Keep a session open; never returns but by an exception."""
        attempt, known = 0, False
        while True:
            try:
                async with session(place, api_key) as (socket, created):
                    if not known:
                        self._start_devices()
                    attempt, known = 0, True
                    # What waits in it is bounded: a peer that takes nothing fails the keepalive of 20 s.
                    self._outbox = asyncio.Queue()
                    self._receive(created)
                    reason = await self._exchange(socket)
            except NoConnection as error:
                if not known or not error.again or attempt == MOST_ATTEMPTS:
                    raise
                reason = str(error).partition(". ")[0]  # without the advice, which was for the first time
            wait_s = delay_s(attempt, random.random())
            attempt += 1
            self._conversation.lost(time.monotonic(), f"{reason}; trying again in {wait_s:.1f} s")
            await asyncio.sleep(wait_s)

    def _start_devices(self) -> None:
        self._speaker.start(self._player)
        self._microphone.start(self._hear)
        self._terminal.say("connected; Ctrl-C ends")

    async def _exchange(self, socket: websockets.ClientConnection) -> str:
        """Send and receive until the connection ends; why it did."""
        writing = asyncio.create_task(self._write(socket))
        try:
            async for message in socket:
                self._read(message)
        except websockets.ConnectionClosed:
            pass
        finally:
            await _cancel([writing])
        reason = socket.close_reason or (f"code {socket.close_code}" if socket.close_code else "")
        return f"the connection was lost ({reason})" if reason else "the connection was lost"

    async def _write(self, socket: websockets.ClientConnection) -> None:
        try:
            while True:
                await socket.send(await self._outbox.get())
        except websockets.ConnectionClosed:
            return  # the reader says why

    def _read(self, message: str | bytes) -> None:
        """One message; a server that sends what is no Realtime event is told on, and the talk goes on."""
        try:
            self._receive(json.loads(message))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._terminal.say(
                f"the server sent what is no Realtime event ({type(error).__name__}: {error}): {str(message)[:80]}"
            )

    def _receive(self, event: dict[str, Any]) -> None:
        self._conversation.receive(event, time.monotonic())
        self._apply()

    def _hear(self, frame: bytes, at: float) -> None:
        self._conversation.hear(frame, at)
        self._apply()

    def _toggle(self) -> None:
        change = self._conversation.release if self._conversation.talking else self._conversation.press
        change(time.monotonic())
        self._apply()

    def _apply(self) -> None:
        for effect in self._conversation.effects():
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(event):
                self._outbox.put_nowait(json.dumps(event))
            case Call():
                call = asyncio.create_task(self._call(effect))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)

    async def _call(self, call: Call) -> None:
        self._conversation.tool_done(call.call_id, await self._tools.call(call.name, call.arguments))
        self._apply()

    async def _tick(self) -> int:
        """Watch devices, speaker and script, and show what there is; the exit code once the script is through."""
        ticks = 0
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            problem = self._microphone.problem or self._speaker.problem
            if problem:
                raise DeviceLost(problem)
            self._conversation.tick(now)
            if self._script is not None and self._script.step(self._conversation, now):
                for name in self._script.unanswered:
                    self._conversation.lines.note(f"no answer came to {name}")
                return FAILED if self._script.unanswered else DONE
            self._apply()
            ticks += 1
            if ticks % REFRESH_TICKS == 0:
                self._terminal.show(self._conversation, now)


def _recording(path: Path) -> Recording:
    return Recording(str(path), read_audio(path, WIRE_HZ).pcm)


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Within, SIGTERM ends the program as Ctrl-C does."""
    before: Callable[[int, FrameType | None], Any] | int | None = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
