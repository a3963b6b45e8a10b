"""A conversation in which the person interrupts: what is kept of each answer is what came out of the speaker."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

import pytest

from s2s.bench.hearing import Ear, align
from s2s.bench.live import Client
from s2s.bench.recordings import Measure, Recording, packaged, steady
from s2s.bench.turn_trials import detection

pytestmark = pytest.mark.e2e

LONG_ANSWERS = "You are a storyteller. You tell long stories in many plain sentences."
LONG_ANSWER_TOKENS = 80
LEFT_S = 0.8
"""An answer with less to play is over before an interruption is one."""
WORDS_BESIDE = 2
"""Words around a cut that may be heard, or not, by half."""
MISHEARD_SHARE = 0.15


@dataclass
class Answer:
    """What was written of an answer, what the conversation keeps of it, what came out of the speaker."""

    written: str
    kept: str
    heard: str
    played_s: float
    interrupted: bool


@pytest.fixture(scope="module")
def speech() -> list[Recording]:
    return steady(packaged(Measure()), 200)


@pytest.fixture(scope="module")
def ear() -> Ear:
    return Ear()


async def converse(address: str, speech: list[Recording], ear: Ear, turns: int, seed: int) -> list[Answer]:
    rng = random.Random(seed)
    answers: list[Answer] = []
    async with Client(address) as client:
        await client.configure(
            instructions=LONG_ANSWERS, max_output_tokens=LONG_ANSWER_TOKENS, **detection("server_vad")
        )
        for _ in range(turns):
            response_id = await _answered(client, rng.choice(speech))
            await asyncio.sleep(rng.uniform(0.2, 3.0))
            interrupted = client.left_s > LEFT_S
            if interrupted:
                mark = client.mark
                client.say(rng.choice(speech))
                await client.event("input_audio_buffer.speech_started", since=mark)
            done = await client.event(
                "response.done", since=0, where=lambda event, id=response_id: event["response"]["id"] == id
            )
            await asyncio.sleep(client.left_s)
            item = done["response"]["output"][0]
            answers.append(await _kept(client, item["id"], response_id, ear, interrupted))
            await _quiet(client)
    return answers


async def _answered(client: Client, recording: Recording) -> str:
    """Say it; the response whose sound begins to play."""
    mark = client.mark
    client.say(recording)
    delta = await client.event("response.output_audio.delta", since=mark)
    return str(delta["response_id"])


async def _kept(client: Client, item_id: str, response_id: str, ear: Ear, interrupted: bool) -> Answer:
    written = "".join(
        event["delta"]
        for _, event in client.since(0, "response.output_audio_transcript.delta")
        if event["response_id"] == response_id
    )
    mark = client.mark
    await client.send("conversation.item.retrieve", item_id=item_id)
    retrieved = await client.event("conversation.item.retrieved", since=mark)
    kept = retrieved["item"]["content"][0]["transcript"]
    played = client.heard[response_id].played
    heard = await asyncio.to_thread(ear.transcribe, played, 24_000) if len(played) > 2_400 else ""
    return Answer(written, kept, heard, len(played) / 24_000, interrupted)


async def _quiet(client: Client) -> None:
    """Return when the turn that interrupted is answered too, and its answer is over."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 2.0:
        created = len(client.since(0, "response.created"))
        running = created - len(client.since(0, "response.done"))
        if running or client.left_s:
            quiet_since = time.monotonic()
        await asyncio.sleep(0.1)


def check(answers: list[Answer], ear: Ear) -> None:
    for answer in answers:
        assert answer.written.startswith(answer.kept), answer
        assert answer.interrupted or answer.kept == answer.written, answer
        kept, heard = ear.words(answer.kept), ear.words(answer.heard)
        wrong = sum(
            mine is None or other is None or kept[mine] != heard[other] for mine, other in align(kept, heard)
        )
        assert wrong <= WORDS_BESIDE + MISHEARD_SHARE * len(kept), answer
    assert any(answer.interrupted and answer.kept != answer.written for answer in answers)


async def test_history_is_what_was_heard(server: str, speech: list[Recording], ear: Ear) -> None:
    check(await converse(server, speech, ear, turns=3, seed=1), ear)


@pytest.mark.long
async def test_history_is_what_was_heard_in_twenty_turns(
    server: str, speech: list[Recording], ear: Ear
) -> None:
    check(await converse(server, speech, ear, turns=20, seed=2), ear)
