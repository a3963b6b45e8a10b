"""A client as a person's machine is: a microphone that never stops, a speaker that plays in order, one clock.

It speaks OpenAI's protocol over a WebSocket and knows nothing of the server but its address.  A sample of the
microphone is there when it has been spoken; 20 ms of them leave together, at times that are fixed from the beginning.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
import websockets

from s2s.audio import Pcm16
from s2s.bench.recordings import RATE_HZ, Recording

FRAME_S = 0.02
FRAME = RATE_HZ // 50
AUDIBLE = 10 ** (-45 / 20) * 32_768
"""RMS of 5 ms that can be heard from a speaker."""
STEP = RATE_HZ // 200
TIMEOUT_S = 180.0
Json = dict[str, Any]


class ServerUnfit(RuntimeError):
    """The server said or did what makes measuring it pointless."""


@dataclass
class Heard:
    """The sound of one response, as the speaker has it."""

    response_id: str
    first_delta: float | None = None
    last_delta: float | None = None
    audible: float | None = None
    """When its first audible sample is played."""
    ends: float = 0.0
    """When the last of it is played."""
    unplayed_s: float = 0.0
    """What was left when the speaker was stopped."""
    sound: list[Pcm16] = field(default_factory=list)

    @property
    def sound_s(self) -> float:
        return sum(len(piece) for piece in self.sound) / RATE_HZ

    @property
    def played(self) -> Pcm16:
        """What came out of the speaker, once that has been stopped or is through."""
        whole = np.concatenate([np.zeros(0, np.int16), *self.sound])
        return whole[: max(0, len(whole) - round(self.unplayed_s * RATE_HZ))]


@dataclass
class Said:
    """When a recording was spoken: its speech begins and ends then."""

    onset: float
    end: float


class Client:
    """One session.  All moments are seconds of this process's monotonic clock."""

    def __init__(self, address: str, api_key: str | None = None, microphone: bool = True) -> None:
        """`address`: http://host:port; without a microphone only `burst` is heard."""
        self.address = address
        self._microphone = microphone
        self.session = ""
        self.events: list[tuple[float, Json]] = []
        self.heard: dict[str, Heard] = {}
        self.late_frames = 0
        """Frames that left 20 ms or more after their time: then this machine is too busy to measure on."""
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._changed = asyncio.Event()
        self._speech: list[Pcm16] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._began = 0.0
        self._sent = 0
        self._plays_until = 0.0

    async def __aenter__(self) -> Self:
        address = self.address.replace("http", "ws", 1) + "/v1/realtime"
        self._socket = await websockets.connect(
            address, additional_headers=self._headers, max_size=None, compression=None
        )
        self._began = time.monotonic()
        self._tasks = [asyncio.create_task(self._listen())]
        if self._microphone:
            self._tasks.append(asyncio.create_task(self._capture()))
        created = await self.event("session.created", since=0)
        self.session = created["session"]["id"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._socket.close()

    async def configure(self, **session: Any) -> None:
        mark = self.mark
        await self.send("session.update", session={"type": "realtime", **session})
        await self.event("session.updated", since=mark)

    async def send(self, kind: str, **fields: Any) -> None:
        await self._socket.send(json.dumps({"type": kind, **fields}))

    @property
    def mark(self) -> int:
        """The events after this are new."""
        return len(self.events)

    def say(self, recording: Recording) -> Said:
        """Speak it from the next frame on."""
        waiting = sum(len(piece) for piece in self._speech)
        starts = self._began + (self._sent + waiting) / RATE_HZ
        self._speech.append(np.pad(recording.pcm, (0, -len(recording.pcm) % FRAME)))
        return Said(starts + recording.onset_s, starts + recording.end_s)

    async def burst(self, pcm: Pcm16) -> None:
        """Sound faster than it was spoken: turns count samples."""
        for start in range(0, len(pcm), RATE_HZ):
            piece = pcm[start : start + RATE_HZ].astype("<i2").tobytes()
            await self.send("input_audio_buffer.append", audio=base64.b64encode(piece).decode())

    async def event(
        self,
        *kinds: str,
        since: int,
        timeout_s: float = TIMEOUT_S,
        where: Callable[[Json], bool] = lambda event: True,
    ) -> Json:
        """The first event of `kinds` since mark `since`; raises `ServerUnfit` where it does not come."""
        _, event = await self.moment(*kinds, since=since, timeout_s=timeout_s, where=where)
        return event

    async def moment(
        self,
        *kinds: str,
        since: int,
        timeout_s: float = TIMEOUT_S,
        where: Callable[[Json], bool] = lambda event: True,
    ) -> tuple[float, Json]:
        """As `event`, and when it came."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    for came, event in self.events[since:]:
                        if event["type"] in kinds and where(event):
                            return came, event
                    since = len(self.events)
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            last = [event["type"] for _, event in self.events[-6:]]
            raise ServerUnfit(
                f"No {' or '.join(kinds)} within {timeout_s:g} s; the last events: {last}."
            ) from None

    def since(self, mark: int, kind: str) -> list[tuple[float, Json]]:
        return [(came, event) for came, event in self.events[mark:] if event["type"] == kind]

    @property
    def left_s(self) -> float:
        """Sound that the speaker still has to play."""
        return max(0.0, self._plays_until - time.monotonic())

    async def hush(self, item_id: str, response_id: str) -> None:
        """Stop playing, and tell the server what was heard of the item, as a client does whose person says enough."""
        self._flush(time.monotonic())
        played_ms = len(self.heard[response_id].played) * 1000 // RATE_HZ
        await self.send(
            "conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=played_ms
        )

    async def turns(self) -> list[Json]:
        """The server's own record of each turn."""
        address = f"{self.address}/v1/sessions/{self.session}/turns"
        turns: list[Json] = (await asyncio.to_thread(fetch, address, self._headers))["data"]
        return turns

    async def _capture(self) -> None:
        silence = np.zeros(FRAME, np.int16)
        while True:
            due = self._began + (self._sent + FRAME) / RATE_HZ
            delay = due - time.monotonic()
            if delay > 0:
                await asyncio.sleep(delay)
            elif delay < -FRAME_S:
                self.late_frames += 1
            frame = silence
            if self._speech:
                frame, rest = self._speech[0][:FRAME], self._speech[0][FRAME:]
                self._speech[:1] = [rest] if len(rest) else []
            self._sent += FRAME
            await self.send(
                "input_audio_buffer.append", audio=base64.b64encode(frame.astype("<i2").tobytes()).decode()
            )

    async def _listen(self) -> None:
        with suppress(websockets.ConnectionClosed):
            async for message in self._socket:
                now = time.monotonic()
                event: Json = json.loads(message)
                if event["type"] == "response.output_audio.delta":
                    self._play(event["response_id"], base64.b64decode(event.pop("delta")), now)
                elif event["type"] == "input_audio_buffer.speech_started":
                    self._flush(now)
                self.events.append((now, event))
                self._changed.set()

    def _play(self, response_id: str, data: bytes, now: float) -> None:
        heard = self.heard.setdefault(response_id, Heard(response_id))
        pcm = np.frombuffer(data, "<i2")
        starts = max(now, self._plays_until)
        heard.first_delta = heard.first_delta or now
        heard.last_delta = now
        heard.sound.append(pcm)
        self._plays_until = heard.ends = starts + len(pcm) / RATE_HZ
        if heard.audible is None:
            at = first_audible(pcm)
            heard.audible = None if at is None else starts + at / RATE_HZ

    def _flush(self, now: float) -> None:
        """The person speaks: what was not played is not played any more."""
        for heard in self.heard.values():
            if heard.ends > now:
                heard.unplayed_s += heard.ends - now
                heard.ends = now
        self._plays_until = min(self._plays_until, now)


def first_audible(pcm: Pcm16) -> int | None:
    """The first sample, to 5 ms, that can be heard."""
    steps = pcm[: len(pcm) // STEP * STEP].astype(np.float64).reshape(-1, STEP)
    loud = np.flatnonzero(np.sqrt(np.square(steps).mean(axis=1)) >= AUDIBLE)
    return int(loud[0]) * STEP if len(loud) else None


def fetch(address: str, headers: dict[str, str], body: Json | None = None) -> Any:
    """JSON from a server, or the bytes that it sends."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=120) as reply:
        content: bytes = reply.read()
        return json.loads(content) if "json" in reply.headers["Content-Type"] else content


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank; NaN of nothing."""
    ordered = sorted(values)
    return ordered[max(0, int(np.ceil(share * len(ordered))) - 1)] if ordered else float("nan")
