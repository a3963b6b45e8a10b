"""`bench turns`: what is measured is measured where it happens, and figures follow from raw samples."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import websockets

from s2s.bench import recordings, turns
from s2s.bench.live import FRAME, Client, ServerUnfit, first_audible, quantile
from s2s.bench.recordings import RATE_HZ, Recording
from s2s.bench.turn_trials import Interruption, TurnMoments, split


def tone(ms: int, level: int = 8_000) -> np.ndarray[Any, np.dtype[np.int16]]:
    at = np.arange(RATE_HZ * ms // 1000)
    return (level * np.sin(at / 10)).astype(np.int16)


def silence(ms: int) -> np.ndarray[Any, np.dtype[np.int16]]:
    return np.zeros(RATE_HZ * ms // 1000, np.int16)


class Loud:
    """Takes for speech what is loud, as the real measure takes what Silero says."""

    def probabilities(self, pcm: np.ndarray[Any, np.dtype[np.int16]]) -> list[float]:
        size = RATE_HZ * 32 // 1000
        return [float(np.abs(pcm[at : at + size]).max() > 1000) for at in range(0, len(pcm) - size + 1, size)]

    recording = recordings.Measure.recording


def test_the_end_of_speech_is_found_to_ten_ms() -> None:
    pcm = np.concatenate([silence(700), tone(1000), silence(400)])
    found = recordings.Measure.recording(Loud(), "tone", pcm)  # type: ignore[arg-type]
    assert found.end - found.onset == pytest.approx(RATE_HZ, abs=RATE_HZ // 50)
    assert found.onset_s == pytest.approx(0.2, abs=0.011)
    assert np.abs(found.pcm[: found.onset - RATE_HZ // 100]).max() == 0


def test_a_recording_without_speech_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing: no speech"):
        recordings.Measure.recording(Loud(), "nothing", silence(1000))  # type: ignore[arg-type]


def test_the_longest_pause_is_made_as_long_as_asked() -> None:
    pcm = np.concatenate([tone(500), silence(150), tone(500), silence(400), tone(500)])
    whole = recordings.Measure.recording(Loud(), "tone", pcm)  # type: ignore[arg-type]
    longer = recordings.with_pause(Loud(), whole, 900)  # type: ignore[arg-type]
    assert longer is not None
    assert longer.end - whole.end == pytest.approx(RATE_HZ // 2, abs=RATE_HZ // 20)
    quiet = np.flatnonzero(np.abs(longer.pcm[whole.onset : longer.end]) > 1000)
    assert np.diff(quiet).max() == pytest.approx(RATE_HZ * 0.9, rel=0.05)
    steady = recordings.Measure.recording(Loud(), "steady", tone(900))  # type: ignore[arg-type]
    assert recordings.with_pause(Loud(), steady, 300) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", recordings.NOISES)
def test_noise_has_the_length_and_level_that_were_asked_for(kind: str) -> None:
    sound = recordings.noise(kind, 2.0, np.random.default_rng(0), -30.0).astype(np.float64)
    level_db = 10 * np.log10(np.mean(np.square(sound[sound != 0] / 32_768)))
    assert len(sound) == 2 * RATE_HZ and -33 < level_db < -27


def test_the_first_audible_sample_is_behind_the_leading_silence() -> None:
    assert first_audible(np.concatenate([silence(300), tone(100)])) == RATE_HZ * 300 // 1000
    assert first_audible(silence(300)) is None


def test_quantiles_are_samples() -> None:
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.5, 0.95, 0.0)] == [2.0, 3.0, 1.0]
    assert np.isnan(quantile([], 0.5))


def test_the_split_leaves_out_what_a_turn_did_not_come_to() -> None:
    record = {"last_speech": 1.0, "endpoint": 1.5, "stt_start": 1.2, "transcript_done": None}
    assert split(record) == {"endpoint": 500.0}


def moments(audible_ms: float, endpoint_ms: float, turns: int = 1) -> TurnMoments:
    return TurnMoments(
        "one", audible_ms - 20, audible_ms, 520, 90, turns, "resp", {"endpoint": endpoint_ms, "stt": 300}
    )


def test_what_is_beyond_the_endpointing_delay() -> None:
    some = [moments(700, 512), moments(900, 520, turns=2)]
    asked = turns._turn_figures("vad", some, 500)
    assert asked["vad_beyond_endpointing_p50_ms"] == 200
    assert asked["vad_beyond_endpointing_p95_ms"] == 400
    assert (asked["vad_turns_split"], asked["vad_first_turn_audible_ms"], asked["vad_stt_p50_ms"]) == (
        1,
        700,
        300,
    )
    assert turns._turn_figures("vad", some, None)["vad_beyond_endpointing_p50_ms"] == 188


def test_shares_of_interruptions_and_backchannels() -> None:
    cut = [Interruption("stop", 400, 410, 300), Interruption("wait", None)]
    figures = turns._barge_figures(cut, [Interruption("yeah", 300), *[Interruption("hm", None)] * 3])
    assert figures["barge_in_missed_share"] == 0.5 and figures["backchannel_cut_share"] == 0.25
    assert figures["barge_in_last_audio_p95_ms"] == 410


def test_the_trade_off_is_of_speech_in_a_row() -> None:
    measure: Any = Loud()
    long = Recording("long", np.concatenate([silence(200), tone(1000)]), RATE_HZ // 5, RATE_HZ * 6 // 5)
    short = Recording("short", np.concatenate([silence(200), tone(320)]), RATE_HZ // 5, RATE_HZ // 2)
    curve = turns.trade_off(measure, [long], [short])
    taken = {row["barge_in_ms"]: row["backchannels_confirmed_share"] for row in curve}
    assert (taken[200.0], taken[300.0], taken[450.0], taken[700.0]) == (1, 1, 0, 0)
    assert all(row["interruptions_confirmed_share"] == 1 for row in curve)
    delays = [row["onset_to_confirmed_p50_ms"] for row in curve]
    assert delays == sorted(delays)
    assert all(-32 <= d - row["barge_in_ms"] <= 64 for d, row in zip(delays, curve, strict=True))


@asynccontextmanager
async def serving(
    *script: dict[str, Any], until: tuple[int, asyncio.Event] | None = None
) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that says `script` at once, and what it was told; `until` so many events it sets an event."""
    told: list[dict[str, Any]] = []

    async def handle(socket: Any) -> None:
        await socket.send(json.dumps({"type": "session.created", "session": {"id": "sess_1"}}))
        for event in script:
            await socket.send(json.dumps(event))
        async for message in socket:
            told.append(json.loads(message))
            if until is not None and len(told) == until[0]:
                until[1].set()

    async with websockets.serve(handle, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}", told


def delta(pcm: np.ndarray[Any, np.dtype[np.int16]]) -> dict[str, Any]:
    sound = base64.b64encode(pcm.tobytes()).decode()
    return {"type": "response.output_audio.delta", "response_id": "r", "item_id": "i", "delta": sound}


async def test_the_microphone_never_stops_and_says_what_it_is_given() -> None:
    enough = asyncio.Event()
    async with serving(until=(5, enough)) as (address, told), Client(address) as client:
        said = client.say(Recording("tone", tone(50), 0, RATE_HZ // 20))
        await enough.wait()
    assert said.end - said.onset == pytest.approx(0.05)
    frames = [np.frombuffer(base64.b64decode(event["audio"]), "<i2") for event in told]
    assert {len(frame) for frame in frames} == {FRAME}
    heard = np.concatenate(frames)
    loud = np.flatnonzero(heard)
    assert loud[-1] - loud[0] == pytest.approx(RATE_HZ // 20, abs=30)


async def test_the_speaker_plays_in_order_and_stops_when_the_person_speaks() -> None:
    script = [
        delta(np.concatenate([silence(100), tone(900)])),
        delta(tone(1000)),
        {"type": "input_audio_buffer.speech_started"},
    ]
    async with serving(*script) as (address, _), Client(address, microphone=False) as client:
        await client.event("input_audio_buffer.speech_started", since=0)
    heard = client.heard["r"]
    assert heard.audible is not None and heard.first_delta is not None
    assert heard.audible - heard.first_delta == pytest.approx(0.1, abs=0.001)
    assert heard.sound_s == 2.0 and client.left_s == 0
    assert len(heard.played) / RATE_HZ == pytest.approx(2.0 - heard.unplayed_s, abs=0.001)
    assert heard.unplayed_s > 1.5


async def test_an_event_that_does_not_come_is_named() -> None:
    async with serving() as (address, _), Client(address, microphone=False) as client:
        with pytest.raises(ServerUnfit, match=r"No response\.done within 0\.05 s"):
            await client.event("response.done", since=0, timeout_s=0.05)
