"""Files in place of the microphone and the speakers: devices of 20 ms frames on an absolute schedule."""

from __future__ import annotations

import asyncio
import time
import wave
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from s2s.audio import Pcm16
from s2s.client.devices import FRAME_S, DeviceError, Hear
from s2s.client.player import WIRE_HZ, Player

FRAME = round(FRAME_S * WIRE_HZ)


class _Clocked:
    """Calls `step` at each frame's time."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._task: asyncio.Task[None] | None = None

    def begin(self, step: Callable[[float], None]) -> None:
        self._task = asyncio.create_task(self._run(step))

    async def _run(self, step: Callable[[float], None]) -> None:
        due = time.monotonic()
        while True:
            due += FRAME_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            step(due)

    @property
    def problem(self) -> str | None:
        """Why it has stopped."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return f"The {self._what} failed: {self._task.exception()}."

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()


class WavMicrophone:
    """Silence, and recordings in real time when they are said."""

    def __init__(self) -> None:
        self._clocked = _Clocked("recording")
        self._speech = memoryview(b"")

    def start(self, hear: Hear) -> None:
        self._clocked.begin(lambda due: hear(self.frame(), due))

    def say(self, pcm: bytes) -> None:
        """Begin with the next frame; int16 at the wire's rate."""
        self._speech = memoryview(bytes(self._speech) + pcm + bytes(-len(pcm) % (2 * FRAME)))

    @property
    def saying(self) -> bool:
        return bool(self._speech)

    def frame(self) -> bytes:
        """The next 20 ms."""
        frame, self._speech = self._speech[: 2 * FRAME], self._speech[2 * FRAME :]
        return bytes(frame) or bytes(2 * FRAME)

    @property
    def problem(self) -> str | None:
        return self._clocked.problem

    def close(self) -> None:
        self._clocked.close()


class WavSpeaker:
    """A wav file, 24 kHz mono, of what would have been heard and when."""

    rate_hz = WIRE_HZ

    def __init__(self, path: Path) -> None:
        """Raises `DeviceError` where the file can't be written."""
        self._path = path
        self._clocked = _Clocked(f"file {path}")
        self._file: wave.Wave_write | None = None
        new = not path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("ab").close()
            if new:
                path.unlink()
        except OSError as error:
            raise DeviceError(f"--save {path}: cannot be written ({error.strerror}).") from None

    def start(self, player: Player) -> None:
        """Begin the file; what it held before is gone."""
        self._file = wave.open(str(self._path), "wb")  # noqa: SIM115 - closed by `close`
        self._file.setnchannels(1)
        self._file.setsampwidth(2)
        self._file.setframerate(WIRE_HZ)
        self._clocked.begin(lambda due: self._write(player.pull(FRAME, due)))

    def _write(self, block: Pcm16) -> None:
        assert self._file is not None, "only a started speaker pulls"
        self._file.writeframes(block.astype("<i2").tobytes())

    @property
    def problem(self) -> str | None:
        return self._clocked.problem

    def close(self) -> None:
        self._clocked.close()
        if self._file is not None:
            with suppress(OSError):  # a full disk was told as the problem already
                self._file.close()
