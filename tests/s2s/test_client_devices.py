"""Which sound device is opened, how, and what is said where there is none; PortAudio is a scripted one."""

from __future__ import annotations

import asyncio
import builtins
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from s2s.client import devices
from s2s.client.devices import CardMicrophone, CardSpeaker, Device, DeviceError, device_table, find_device
from s2s.client.player import WIRE_HZ, Player
from s2s.client.virtual import WavMicrophone, WavSpeaker


class FakePortAudio:
    """What sounddevice shows of PortAudio."""

    class PortAudioError(Exception):
        pass

    def __init__(
        self, *found: tuple[str, int, int], rates: tuple[int, ...] = (24_000, 48_000), channels: int = 1
    ):
        """`found`: name, inputs, outputs; the first device is the default of what it can."""
        self._found = [
            {
                "name": name,
                "max_input_channels": ins,
                "max_output_channels": outs,
                "default_samplerate": 48_000.0,
            }
            for name, ins, outs in found
        ]
        first = [next((index for index, each in enumerate(found) if each[kind]), -1) for kind in (1, 2)]
        self.default = SimpleNamespace(device=first)
        self._rates, self._channels = rates, channels
        self.streams: list[FakeStream] = []
        self.InputStream = self.OutputStream = self._stream

    def query_devices(self, index: int | None = None) -> Any:
        return self._found if index is None else self._found[index]

    def check_input_settings(self, device: int, channels: int, dtype: str, samplerate: int) -> None:
        if samplerate not in self._rates or channels < self._channels:
            raise self.PortAudioError("Invalid sample rate")

    check_output_settings = check_input_settings

    def _stream(self, **options: Any) -> FakeStream:
        self.streams.append(FakeStream(options))
        return self.streams[-1]


class FakeStream:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.active = False
        self.callback = options["callback"]

    def start(self) -> None:
        self.active = True

    def close(self) -> None:
        self.active = False


NOW = SimpleNamespace(inputBufferAdcTime=5.0, outputBufferDacTime=5.0, currentTime=5.0)
LAPTOP = (("Built-in Mic", 2, 0), ("USB Headset", 1, 2), ("HDMI", 0, 2), ("USB Headset", 1, 0))


@pytest.fixture
def portaudio(monkeypatch: pytest.MonkeyPatch) -> Any:
    def have(*found: tuple[str, int, int], **options: Any) -> FakePortAudio:
        library = FakePortAudio(*found, **options)
        monkeypatch.setitem(sys.modules, "sounddevice", library)
        return library

    return have


def test_the_default_is_taken_where_none_is_named(portaudio: Any) -> None:
    portaudio(*LAPTOP)
    assert find_device("input", None) == Device(0, "Built-in Mic", 24_000, 1)
    assert find_device("output", None).name == "USB Headset"


@pytest.mark.parametrize("wanted", ["1", "usb", "USB Headset", "head"])
def test_a_device_is_chosen_by_number_or_part_of_its_name(portaudio: Any, wanted: str) -> None:
    portaudio(*LAPTOP)
    assert find_device("output", wanted).index == 1


def test_an_exact_name_beats_a_part_of_another(portaudio: Any) -> None:
    portaudio(("Mic 2", 1, 0), ("Mic", 1, 0))
    assert find_device("input", "mic").index == 1


@pytest.mark.parametrize(
    ("kind", "wanted", "says"),
    [
        (
            "input",
            "phone",
            "--input-device phone: there is no such input device. There are: 0: Built-in Mic; 1:",
        ),
        ("input", "2", "no such input device"),
        ("input", "usb", "2 input devices are called so; give a number: "),
    ],
)
def test_a_choice_that_is_none_names_what_there_is(portaudio: Any, kind: Any, wanted: str, says: str) -> None:
    portaudio(*LAPTOP)
    with pytest.raises(DeviceError) as error:
        find_device(kind, wanted)
    assert says in str(error.value)


def test_no_device_at_all(portaudio: Any) -> None:
    portaudio()
    with pytest.raises(DeviceError, match=r"No input device is on this machine.*--wav FILE"):
        find_device("input", None)
    assert device_table() == "No sound device is here."


def test_a_device_with_another_rate_and_no_mono_is_opened_as_it_can(portaudio: Any) -> None:
    portaudio(("Pro", 2, 2), rates=(48_000,), channels=2)
    assert find_device("input", None) == Device(0, "Pro", 48_000, 2)


def test_a_device_that_cannot_be_opened_says_why(portaudio: Any) -> None:
    portaudio(("Odd", 2, 2), rates=(8_000,))
    with pytest.raises(DeviceError, match=r"Odd cannot be opened \(Invalid sample rate\)"):
        find_device("input", None)


def test_devices_are_listed_with_the_defaults(portaudio: Any) -> None:
    portaudio(*LAPTOP)
    lines = device_table().splitlines()
    assert lines[1].split() == ["0", "2", "-", "input", "Built-in", "Mic"]
    assert lines[2].split() == ["1", "1", "2", "output", "USB", "Headset"]


def test_without_portaudio_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _importing(monkeypatch, OSError("PortAudio library not found"))
    with pytest.raises(DeviceError, match=r"PortAudio is not installed .*libportaudio2"):
        find_device("input", None)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _importing(monkeypatch, ImportError("No module named sounddevice"))
    with pytest.raises(DeviceError, match=r"pip install 's2s\[local\]'"):
        device_table()


def _importing(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    """`import sounddevice` raises."""
    real = builtins.__import__

    def fake(name: str, *more: Any, **keywords: Any) -> Any:
        if name == "sounddevice":
            raise problem
        return real(name, *more, **keywords)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", fake)


async def test_the_microphone_gives_mono_at_the_wires_rate(
    portaudio: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = portaudio(("Pro", 2, 2))
    heard: list[tuple[bytes, float]] = []
    microphone = CardMicrophone(Device(0, "Pro", 48_000, 2))
    microphone.start(lambda frame, at: heard.append((frame, at)))
    sound = np.full((960, 2), [1000, 3000], np.int16)
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for _ in range(50):
        clock[0] += 0.02
        library.streams[0].callback(sound, 960, NOW, None)
    await asyncio.sleep(0)
    monkeypatch.undo()
    pcm = np.frombuffer(b"".join(frame for frame, _ in heard), "<i2")
    assert abs(int(pcm[5000]) - 2000) <= 1
    assert heard[-1][1] == pytest.approx(100.0 + len(pcm) / WIRE_HZ), (
        "what is inside the resampler is still to come"
    )
    microphone.close()


async def test_the_speaker_gives_every_channel_what_the_player_has(portaudio: Any) -> None:
    library = portaudio(("Pro", 2, 2))
    speaker = CardSpeaker(Device(0, "Pro", 24_000, 2))
    player = Player()
    player.play("a", np.full(2400, 700, np.int16).tobytes())
    speaker.start(player)
    out = np.zeros((480, 2), np.int16)
    library.streams[0].callback(out, 480, NOW, None)
    assert (out == 700).all()
    speaker.close()


async def test_a_device_that_ends_by_itself_is_noticed(portaudio: Any) -> None:
    library = portaudio(("Pro", 2, 2))
    microphone = CardMicrophone(Device(0, "Pro", 24_000, 1))
    microphone.start(lambda frame, at: None)
    assert microphone.problem is None
    library.streams[0].active = False
    assert microphone.problem == "The microphone Pro is gone."


def test_a_device_without_a_clock_gets_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    runaway = devices._Clock(24_000)
    for _ in range(500):
        runaway.pace(480)
    assert now[0] == pytest.approx(500 * 0.02, rel=0.05)


def test_a_device_with_a_clock_is_never_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", slept.append)
    fast = devices._Clock(24_000)
    for _ in range(50_000):  # 1000 s by a clock that is 1 % fast
        now[0] += 0.02 / 1.01
        fast.pace(480)
    assert slept == []


def test_a_recording_is_said_in_whole_frames_with_silence_around() -> None:
    microphone = WavMicrophone()
    assert microphone.frame() == bytes(960)
    microphone.say(b"\1\0" * 500)
    assert microphone.saying
    assert [microphone.frame() for _ in range(2)] == [b"\1\0" * 480, b"\1\0" * 20 + bytes(920)]
    assert not microphone.saying
    assert microphone.frame() == bytes(960)


def test_a_file_is_not_touched_before_there_is_something_to_hear(tmp_path: Path) -> None:
    new, old = tmp_path / "new.wav", tmp_path / "old.wav"
    old.write_bytes(b"before")
    for path in (new, old):
        WavSpeaker(path).close()
    assert not new.exists()
    assert old.read_bytes() == b"before"


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot be written"):
        WavSpeaker(tmp_path)
