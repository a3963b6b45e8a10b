"""The machine's microphone and speakers, by sounddevice (PortAudio).

Callbacks run in threads of PortAudio and only move bytes: the microphone's to the event loop, the player's to the
speaker.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from s2s.audio import Pcm16, Resampler
from s2s.client.player import WIRE_HZ, Player

Kind = Literal["input", "output"]
Hear = Callable[[bytes, float], None]
"""A frame, int16 at the wire's rate, and the moment at which its last sample was spoken."""
FRAME_S = 0.02
RUNAWAY_S = 0.2
"""A device so far ahead of time has no clock (ALSA's `null`); it then gets ours."""
RUNAWAY_SPEED = 1.02
"""Clocks of devices differ; none is 2 % fast."""
OUTPUT_LATENCY_S = 0.1
"""With the lowest a busy machine's output runs dry; what is heard is counted behind it."""
OTHER_RATES_HZ = (48_000, 44_100, 16_000)


class DeviceError(RuntimeError):
    """No PortAudio, or no such device; says what there is and what to do."""


class DeviceLost(DeviceError):
    """A device that worked is gone."""


@dataclass(frozen=True)
class Device:
    """A device that can be opened: int16, `rate_hz`, `channels`."""

    index: int
    name: str
    rate_hz: int
    channels: int


def sounddevice() -> Any:
    """The library; raises `DeviceError` where it or PortAudio is missing."""
    try:
        import sounddevice
    except ImportError:
        raise DeviceError(
            "The package sounddevice is needed for a microphone: pip install 's2s[local]'. "
            "Without sound devices: --wav FILE and --save FILE."
        ) from None
    except OSError as error:
        how = "brew install portaudio" if sys.platform == "darwin" else "apt install libportaudio2"
        raise DeviceError(
            f"PortAudio is not installed on this machine ({error}): {how}. "
            "Without sound devices: --wav FILE and --save FILE."
        ) from None
    return sounddevice


def device_table() -> str:
    """Every device, a line each: its channels in and out, and what it is the default for."""
    library = sounddevice()
    found = list(library.query_devices())
    if not found:
        return "No sound device is here."
    defaults = {kind: _default(library, kind) for kind in ("input", "output")}
    lines = ["  #  in out  default  name"]
    for index, device in enumerate(found):
        default = ", ".join(kind for kind, chosen in defaults.items() if chosen == index)
        lines.append(
            f"{index:3}  {device['max_input_channels'] or '-':>2} {device['max_output_channels'] or '-':>3}  "
            f"{default:7}  {device['name']}"
        )
    return "\n".join(lines)


def find_device(kind: Kind, wanted: str | None) -> Device:
    """The device by index or by a part of its name, None: the default; raises `DeviceError`."""
    library = sounddevice()
    usable = [
        (index, device["name"])
        for index, device in enumerate(library.query_devices())
        if device[f"max_{kind}_channels"] > 0
    ]
    if not usable:
        option = (
            "--wav FILE is used in place of a microphone"
            if kind == "input"
            else "--save FILE in place of speakers"
        )
        raise DeviceError(f"No {kind} device is on this machine. {option[0].upper()}{option[1:]}.")
    names = "; ".join(f"{index}: {name}" for index, name in usable)
    if wanted is None:
        index = _default(library, kind)
        if index not in dict(usable):
            raise DeviceError(f"There is no default {kind} device. Choose one with --{kind}-device: {names}.")
    else:
        index = _named(kind, wanted, usable, names)
    return _openable(library, kind, index, dict(usable)[index])


def _default(library: Any, kind: Kind) -> int:
    index: int = library.default.device[0 if kind == "input" else 1]
    return index


def _named(kind: Kind, wanted: str, usable: list[tuple[int, str]], names: str) -> int:
    if wanted.isdecimal():
        fits = [index for index, _ in usable if index == int(wanted)]
    else:
        exact = [index for index, name in usable if name.lower() == wanted.lower()]
        fits = exact or [index for index, name in usable if wanted.lower() in name.lower()]
    if not fits:
        raise DeviceError(f"--{kind}-device {wanted}: there is no such {kind} device. There are: {names}.")
    if len(fits) > 1:
        raise DeviceError(
            f"--{kind}-device {wanted}: {len(fits)} {kind} devices are called so; give a number: {names}."
        )
    return fits[0]


def _openable(library: Any, kind: Kind, index: int, name: str) -> Device:
    """At the wire's rate in mono where the device can, else at what it can."""
    check = library.check_input_settings if kind == "input" else library.check_output_settings
    own = int(library.query_devices(index)["default_samplerate"])
    problem: Exception | None = None
    for rate_hz in dict.fromkeys((WIRE_HZ, own, *OTHER_RATES_HZ)):
        for channels in (1, 2):
            try:
                check(device=index, channels=channels, dtype="int16", samplerate=rate_hz)
            except (library.PortAudioError, ValueError) as error:
                problem = error
            else:
                return Device(index, name, rate_hz, channels)
    raise DeviceError(
        f"The {kind} device {name} cannot be opened ({problem}). Choose another with --{kind}-device."
    )


class _Clock:
    """Holds back a device that has no clock of its own."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._due = 0.0

    def pace(self, samples: int) -> None:
        now = time.monotonic()
        self._due = max(self._due, now) + samples / self._rate_hz / RUNAWAY_SPEED
        if self._due - now > RUNAWAY_S:
            time.sleep(self._due - now - RUNAWAY_S / 2)


def _from_now(moment: float, now: float) -> float:
    """Seconds from a stream's now to a moment of it; 0 where the host gives no such times."""
    ahead = moment - now
    return ahead if abs(ahead) < 2 else 0.0


class CardMicrophone:
    """Frames of the wire's format from an input device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._resampler = Resampler(device.rate_hz, WIRE_HZ)
        self._stream: Any = None

    def start(self, hear: Hear) -> None:
        """Call `hear` on the running event loop from now on; raises `DeviceError`."""
        loop = asyncio.get_running_loop()
        clock = _Clock(self._device.rate_hz)

        def callback(data: Pcm16, samples: int, when: Any, status: Any) -> None:
            clock.pace(samples)
            now = time.monotonic()
            began = now + _from_now(when.inputBufferAdcTime, when.currentTime)
            loop.call_soon_threadsafe(take, data.copy(), min(now, began + samples / self._device.rate_hz))

        inside_s = 0.0  # the resampler

        def take(data: Pcm16, at: float) -> None:
            nonlocal inside_s
            mono = data[:, 0] if data.shape[1] == 1 else data.mean(axis=1).astype(np.int16)
            frame = self._resampler.feed(mono)
            inside_s += len(mono) / self._device.rate_hz - len(frame) / WIRE_HZ
            if len(frame):
                hear(frame.tobytes(), at - inside_s)

        self._stream = _open(sounddevice().InputStream, self._device, "low", callback)

    @property
    def problem(self) -> str | None:
        """Why nothing is heard any more."""
        return _problem(self._stream, "microphone", self._device)

    def close(self) -> None:
        _close(self._stream)


class CardSpeaker:
    """An output device that pulls from a player."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.rate_hz = device.rate_hz
        self._stream: Any = None

    def start(self, player: Player) -> None:
        """Play from now on; raises `DeviceError`."""
        clock = _Clock(self.rate_hz)

        def callback(out: Pcm16, samples: int, when: Any, status: Any) -> None:
            clock.pace(samples)
            at = time.monotonic() + _from_now(when.outputBufferDacTime, when.currentTime)
            out[:] = player.pull(samples, at)[:, None]

        self._stream = _open(sounddevice().OutputStream, self._device, OUTPUT_LATENCY_S, callback)

    @property
    def problem(self) -> str | None:
        """Why nothing is played any more."""
        return _problem(self._stream, "speaker", self._device)

    def close(self) -> None:
        _close(self._stream)


def _open(
    stream_class: Any, device: Device, latency: float | Literal["low"], callback: Callable[..., None]
) -> Any:
    library = sounddevice()
    try:
        stream = stream_class(
            samplerate=device.rate_hz,
            blocksize=round(FRAME_S * device.rate_hz),
            device=device.index,
            channels=device.channels,
            dtype="int16",
            latency=latency,
            callback=callback,
        )
        stream.start()
    except library.PortAudioError as error:
        raise DeviceError(f"The sound device {device.name} cannot be opened: {error}.") from None
    return stream


def _problem(stream: Any, what: str, device: Device) -> str | None:
    return None if stream is None or stream.active else f"The {what} {device.name} is gone."


def _close(stream: Any) -> None:
    if stream is not None:
        stream.close()
