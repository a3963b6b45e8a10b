"""`bench turns`: what is measured is measured where it happens, and figures follow from raw samples."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import websockets

from actors.messages import Word
from s2s.bench import paused, recordings, turns
from s2s.bench.hearing import Ear
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


def recorded(text: str, *parts: np.ndarray[Any, np.dtype[np.int16]]) -> Recording:
    measure: Any = Loud()
    return recordings.Measure.recording(measure, "tone", np.concatenate(parts), text)


def with_pauses(
    find: paused.Find, recording: Recording, *heard: tuple[str, int]
) -> dict[int, paused.Paused] | None:
    """`recording` with pauses of 300 and 900 ms; `heard`: its words and the ms at which each begins."""
    words = [Word(text, start_ms, start_ms + 100) for text, start_ms in heard]
    ear: Any = SimpleNamespace(word_times=lambda pcm, rate_hz: words)
    measure: Any = Loud()
    return next(paused.paused(measure, ear, find, [recording], (300, 900)), None)


def assert_as_long_as_asked(made: dict[int, paused.Paused] | None) -> None:
    assert made is not None and made.keys() == {300, 900}
    for pause_ms, each in made.items():
        speech = each.recording.pcm[each.recording.onset : each.recording.end]
        quiet_ms = np.diff(np.flatnonzero(np.abs(speech) > 1000)).max() * 1000 / RATE_HZ
        assert quiet_ms == pytest.approx(pause_ms, abs=64), "VAD sees it in whole frames"
        assert each.pause_ms == pytest.approx(pause_ms, abs=32)


def test_the_pause_between_sentences_is_made_as_long_as_asked() -> None:
    whole = recorded("Try again. Fail.", tone(500), silence(150), tone(500), silence(400), tone(500))
    made = with_pauses(paused.between_sentences, whole, ("Try", 200), ("again.", 850), ("Fail", 1750))
    assert_as_long_as_asked(made)
    assert made is not None and made[300].before == "Try again."
    assert with_pauses(paused.between_sentences, recorded("", tone(900))) is None


def test_a_pause_is_made_inside_a_sentence_where_it_is_quiet_and_unfinished() -> None:
    text = "It was the best of all times."
    quiet = tone(40, 500)
    whole = recorded(text, tone(300), quiet, tone(300), quiet, tone(200), tone(40, 2_000), tone(600))
    heard = [
        ("It", 200),
        ("was", 530),
        ("the", 600),
        ("best", 880),
        ("of", 980),
        ("all", 1100),
        ("times.", 1300),
    ]
    made = with_pauses(paused.inside_sentence, whole, *heard)
    assert_as_long_as_asked(made)
    assert made is not None and made[900].before == "It was the"  # quieter than behind "of"


def test_a_sentence_pauses_only_behind_words_that_leave_it_unfinished() -> None:
    whole = recorded("", tone(2000))
    words = [
        paused.Said(word, 10_000 + 2_000 * number)
        for number, word in enumerate(("I", "go", "to", "my", "own"))
    ]
    place = paused.hesitation(whole, words)
    assert place is not None and place.before == "I go to"
    unheard = [replace(word, start=None) if word.text == "my" else word for word in words]
    assert paused.hesitation(whole, unheard) is None
    assert paused.hesitation(whole, words[2:]) is None, "one word is no beginning"
    ended = [replace(word, text="to." if word.text == "to" else word.text) for word in words]
    assert paused.hesitation(whole, ended) is None


def test_words_are_those_of_the_text_with_the_times_at_which_they_were_heard() -> None:
    heard = [
        Word("He", 100, 200),
        Word("is", 200, 300),
        Word("ill-disposed,", 400, 900),
        Word("May.", 900, 1000),
    ]
    words = paused.timed("He was ill disposed, man.", heard)
    assert [word.text for word in words] == ["He", "was", "ill", "disposed,", "man."]
    assert [word.start for word in words] == [2400, None, 9600, None, None]
    assert paused.said_before(words, 12_000) == "He was ill"
    assert paused.said_before(words, 0) == ""


def test_the_room_of_a_pause_sounds_as_that_of_its_recording() -> None:
    hiss = recordings.noise("pink", 0.5, np.random.default_rng(1), -50.0)
    made = paused.room(np.concatenate([tone(400), hiss, tone(400)]), RATE_HZ)
    assert len(made) == RATE_HZ
    assert 10 * np.log10(np.square(made / 32_768).mean()) == pytest.approx(-50, abs=4)
    low, high = (np.abs(np.fft.rfft(made))[band].mean() for band in (slice(100, 400), slice(8_000, 9_000)))
    assert low > 2 * high
    assert not paused.room(tone(900), RATE_HZ).any(), "no room is heard while someone speaks"


@pytest.mark.e2e
def test_who_hesitates_is_heard_in_the_same_words() -> None:
    measure, ear = recordings.Measure(), Ear()
    some = [each for each in recordings.packaged(measure) if each.name in ("austen-3", "dickens-05")]
    for whole, made in zip(
        some, paused.paused(measure, ear, paused.inside_sentence, some, (600,)), strict=True
    ):
        pcm, before = made[600].recording.pcm, made[600].before
        assert max(made[600].recording.pauses_ms) == pytest.approx(600, abs=32)
        assert whole.text.startswith(before + " ") and before[-1].isalpha()
        said = ear.words(ear.transcribe(whole.pcm, RATE_HZ))
        assert ear.words(ear.transcribe(pcm, RATE_HZ)) == said


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
