"""What `bench turns` does to a server: one function a trial, raw moments out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from s2s.bench.live import Client, Json, ServerUnfit
from s2s.bench.paused import Paused
from s2s.bench.recordings import NOISES, RATE_HZ, Recording, noise

GAP_S = 0.5
"""Between the end of an answer and the next turn."""
LISTENED_S = 0.6
"""How much of an answer is heard before the next turn; the rest is truncated."""
LONGEST_ANSWER_TOKENS = 60
STORY = (
    "You are a storyteller. You tell long stories in many plain sentences.",
    "Tell me a long story about a lighthouse, a storm and a dog.",
)
STORY_TOKENS = 350
STORY_TRIES = 8
STORY_LEFT_S = 4.5
"""With less of a story left to play, another one is begun."""


@dataclass
class TurnMoments:
    """One turn: ms from the end of its speech, as measured in the recording, on the client's clock."""

    recording: str
    first_delta_ms: float
    audible_ms: float
    stopped_ms: float
    """`speech_stopped`."""
    started_ms: float
    """`speech_started`, from the onset of its speech; nothing was playing."""
    turns: int
    """Turns that the server made of it: 1, where it split none."""
    response_id: str
    server: dict[str, float] = field(default_factory=dict)
    """The split by the server's own record, in ms."""


@dataclass
class Interruption:
    """Speech over an answer: ms from the onset of that speech; None where it did not come."""

    recording: str
    started_ms: float | None
    last_audio_ms: float | None = None
    """When the speaker played its last sample: it stops at `speech_started`."""
    last_delta_ms: float | None = None
    """When the server sent its last piece of the answer."""


@dataclass
class Pause:
    """A turn with a pause in it."""

    recording: str
    before: str
    """The words in front of the pause."""
    pause_ms: int
    """As VAD sees it."""
    splits: int
    """How often the turn was taken for over before its speech had ended."""


def detection(kind: str, **settings: Any) -> Json:
    return {"audio": {"input": {"turn_detection": {"type": kind, **settings}}}}


async def voice_to_voice(client: Client, recordings: Sequence[Recording]) -> list[TurnMoments]:
    """Each recording a turn, one conversation, default settings but for the length of answers."""
    await client.configure(max_output_tokens=LONGEST_ANSWER_TOKENS)
    turns = [await _turn(client, recording) for recording in recordings]
    records = {record["response_id"]: record for record in await client.turns()}
    for turn in turns:
        turn.server = split(records[turn.response_id])
    return turns


async def _turn(client: Client, recording: Recording) -> TurnMoments:
    await asyncio.sleep(GAP_S)
    mark = client.mark
    said = client.say(recording)
    await _until(said.end)
    done = await client.event(
        "response.done", since=mark, where=lambda event: event["response"]["status"] != "cancelled"
    )
    response = done["response"]
    heard = client.heard.get(response["id"])
    if heard is None or heard.first_delta is None or heard.audible is None:
        raise ServerUnfit(
            f"{recording.name}: the answer had no sound; it ended as {response['status_details']}."
        )
    await _until(heard.audible + LISTENED_S)
    await client.hush(response["output"][0]["id"], response["id"])
    started, stopped = (
        [came for came, _ in client.since(mark, f"input_audio_buffer.speech_{what}")]
        for what in ("started", "stopped")
    )
    return TurnMoments(
        recording.name,
        1000 * (heard.first_delta - said.end),
        1000 * (heard.audible - said.end),
        1000 * (stopped[-1] - said.end),
        1000 * (started[0] - said.onset),
        len(stopped),
        response["id"],
    )


STEPS = {
    "pause_seen": ("last_speech", "pause_seen"),
    "endpoint": ("last_speech", "endpoint"),
    "stt": ("stt_start", "transcript_done"),
    "llm_first_token": ("llm_start", "first_token"),
    "llm_first_clause": ("llm_start", "first_clause"),
    "tts_first_audio": ("tts_start", "first_audio"),
    "endpoint_to_sent": ("endpoint", "first_audio_sent"),
    "ready_after_last_speech": ("last_speech", "first_audio"),
}


def split(record: Json) -> dict[str, float]:
    """The steps of one turn in ms, by the server's record of it; those that it did not come to are left out."""
    return {
        step: 1000 * (record[end] - record[start])
        for step, (start, end) in STEPS.items()
        if record.get(start) is not None and record.get(end) is not None
    }


async def pauses(client: Client, recordings: Sequence[Paused]) -> list[Pause]:
    """Each recording said once."""
    found = []
    for each in recordings:
        await asyncio.sleep(GAP_S)
        mark = client.mark
        said = client.say(each.recording)
        await _until(said.end)
        splits = len(client.since(mark, "input_audio_buffer.committed"))
        found.append(Pause(each.recording.name, each.before, each.pause_ms, splits))
        await client.moment("input_audio_buffer.committed", since=client.mark)
    return found


async def false_starts(
    address: str, api_key: str | None, speech: Recording, seconds: float, rng: np.random.Generator
) -> dict[str, int]:
    """For each kind of noise, the turns that it began; faster than real time, and speech after it proves hearing."""
    found = {}
    silence = np.zeros(RATE_HZ, np.int16)
    for kind in NOISES:
        async with Client(address, api_key, microphone=False) as client:
            await client.configure(**detection("server_vad", create_response=False))
            await client.burst(np.concatenate([noise(kind, seconds / len(NOISES), rng), silence]))
            await client.burst(np.concatenate([speech.pcm, silence]))
            own_ms = 1000 * (seconds / len(NOISES) + 0.5)
            while not any(
                event["audio_end_ms"] > own_ms
                for _, event in client.since(0, "input_audio_buffer.speech_stopped")
            ):
                await client.event("input_audio_buffer.speech_stopped", since=client.mark)
            starts = client.since(0, "input_audio_buffer.speech_started")
            found[kind] = sum(event["audio_start_ms"] < own_ms for _, event in starts)
    return found


class Storyteller:
    """A long answer that always plays, for people to speak over."""

    def __init__(self, client: Client, rng: np.random.Generator) -> None:
        self._client = client
        self._rng = rng
        self._response = ""

    async def interrupted(self, recording: Recording) -> Interruption:
        """What becomes of the answer when `recording` is spoken over it."""
        await self._telling()
        client, mark = self._client, self._client.mark
        said = client.say(recording)
        await _until(said.end + 1.2)
        started = client.since(mark, "input_audio_buffer.speech_started")
        if not started:
            return Interruption(recording.name, None)
        await client.event("response.done", since=0, where=lambda e: e["response"]["id"] == self._response)
        heard = client.heard[self._response]
        assert heard.last_delta is not None, "it was telling"
        self._response = ""
        return Interruption(
            recording.name,
            1000 * (started[0][0] - said.onset),
            1000 * (heard.ends - said.onset),
            1000 * (heard.last_delta - said.onset),
        )

    async def _telling(self) -> None:
        """Return at some moment at which a story is heard and goes on for a while."""
        for _ in range(STORY_TRIES):
            if self._response and await self._goes_on():
                await asyncio.sleep(float(self._rng.uniform(0.2, 1.0)))
                return
            await self._begin()
        raise ServerUnfit(f"{STORY_TRIES} stories were too short to be interrupted.")

    async def _begin(self) -> None:
        """A story from the beginning: what was said before does not count."""
        client = self._client
        await asyncio.sleep(client.left_s + GAP_S)
        mark = client.mark
        text = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": STORY[1]}]}
        await client.send(
            "response.create",
            response={"input": [text], "instructions": STORY[0], "max_output_tokens": STORY_TOKENS},
        )
        created = await client.event("response.created", since=mark)
        self._response = created["response"]["id"]

    async def _goes_on(self) -> bool:
        """Return when enough of the story is left to be played; False where its end comes first."""
        client = self._client
        while client.left_s < STORY_LEFT_S:
            done = [event["response"]["id"] for _, event in client.since(0, "response.done")]
            if self._response in done:
                return False
            await asyncio.sleep(0.1)
        return True


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
