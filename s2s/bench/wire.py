"""`bench wire`: what live clients cost the gateway, with no stage behind it.

A server in a process of its own has the real sockets, codec and session core, and a VAD that hears only silence; the
clients are here, each with a microphone that sends 20 ms frames on an absolute schedule.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from actors.messages import VAD_FRAME_SAMPLES, Rank, Request, Result, VadRequest, VadResult
from s2s.bench import bounds
from s2s.config import Config

SESSIONS = 50
SECONDS = 10.0
FRAME_S = 0.02
RATE_HZ = 24_000
PIECE_S = 0.2
"""Sound in one piece of an answer."""


def run(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Cores that `SESSIONS` listening clients take (`wire_in_cores`), and as many that are spoken to
    (`wire_out_cores`: encoding alone)."""
    import psutil

    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()
    try:
        address = here.recv()
    except EOFError:
        raise SystemExit("bench wire: its server ended before it listened.") from None
    try:
        cpu = psutil.Process(process.pid).cpu_times
        late, spent_s = asyncio.run(_clients(address, lambda: sum(cpu()[:2])))
    finally:
        here.send("end")
        process.join(10)
        process.kill()
    figures = {"wire_in_cores": spent_s / SECONDS, "wire_out_cores": _speaking_cores(), "late_frames": late}
    return {"bench": "wire", "figures": figures, "broken": bounds.broken(figures, bounds.WIRE)}


async def _clients(address: str, cpu_s: Any) -> tuple[int, float]:
    import websockets

    url = address.replace("http", "ws", 1) + "/v1/realtime"
    sockets = [await websockets.connect(url, compression=None) for _ in range(SESSIONS)]
    noise = np.random.default_rng(0).normal(0, 3_000, round(RATE_HZ * FRAME_S)).astype("<i2").tobytes()
    event = json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(noise).decode()})
    late = 0

    async def speak(socket: Any, begun: float) -> None:
        nonlocal late
        for frame in range(round(SECONDS / FRAME_S)):
            delay = begun + frame * FRAME_S - time.monotonic()
            late += delay < -FRAME_S
            await asyncio.sleep(max(0.0, delay))
            await socket.send(event)

    before = cpu_s()
    begun = time.monotonic()
    await asyncio.gather(
        *(speak(socket, begun + FRAME_S * index / SESSIONS) for index, socket in enumerate(sockets))
    )
    spent_s = cpu_s() - before
    await asyncio.gather(*(socket.close() for socket in sockets))
    return late, spent_s


def _speaking_cores() -> float:
    """Resampling, base64 and JSON of an answer, for each second that it lasts, times `SESSIONS`."""
    from orchestration.session import events
    from s2s.realtime.codec import Codec

    codec = Codec()
    pcm = np.random.default_rng(0).normal(0, 3_000, round(RATE_HZ * PIECE_S)).astype("<i2").tobytes()
    piece = events.ResponseAudioDelta(
        event_id="event_1", response_id="resp_1", item_id="item_1", output_index=0, content_index=0,
        delta=pcm, rate_hz=RATE_HZ,
    )  # fmt: skip
    count = round(SECONDS / PIECE_S)
    began = time.process_time()
    for _ in range(count):
        for _ in codec.outbound(piece):
            pass
    return SESSIONS * (time.process_time() - began) / SECONDS


def _serve(told: Connection) -> None:
    asyncio.run(_server(told))


async def _server(told: Connection) -> None:
    from orchestration.session.config import SessionDefaults
    from s2s.access import Access
    from s2s.realtime.http import Server, make_app
    from s2s.serving import HttpServer, ServeOptions
    from s2s.sessions import Sessions

    deaf = _Deaf()
    sessions = Sessions({"vad": deaf}, SessionDefaults(), max_sessions=SESSIONS)
    deaf.sessions = sessions
    app = make_app(Server(sessions, Access((), ()), dict, dict, {}))
    server = HttpServer(app, ServeOptions(port=0))
    await server.start()
    told.send(server.address)
    await asyncio.to_thread(told.recv)
    await server.stop()


class _Deaf:
    """A VAD that answers at once and hears nobody."""

    sessions: Any = None

    def submit(
        self, session: str, generation: str, work: int, rank: Rank, due_in_s: float, request: Request
    ) -> None:
        assert isinstance(request, VadRequest)
        frames = len(request.frames) // (2 * VAD_FRAME_SAMPLES)
        heard: Result = VadResult([0.01] * frames, request.state, request.frames[-128:])
        asyncio.get_running_loop().call_soon(self.sessions.deliver, session, work, heard)

    def cancel(self, session: str, generation: str) -> None: ...

    def promote(self, session: str, generation: str, due_in_s: float) -> None: ...

    def close(self, session: str) -> None: ...
