"""A conversation in which the person interrupts: what is kept of each answer is what came out of the speaker."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

import pytest

from s2s.audio import Pcm16
from s2s.bench.hearing import Ear, align
from s2s.bench.live import Client, Json
from s2s.bench.recordings import Measure, Recording, packaged, steady
from s2s.bench.turn_trials import detection

pytestmark = pytest.mark.e2e

LONG_ANSWERS = "You are a storyteller. You tell long stories in many plain sentences."
LONG_ANSWER_TOKENS = 80
WORDS_BESIDE = 2
"""Words around a cut that may be heard, or not, by half."""
MISHEARD_SHARE = 0.15
HEARD_OUT_SHARE = 0.2
"""Of the answers are heard to their end."""
QUIET_S = 2.0


@dataclass
class Answer:
    """What was written of an answer, what the conversation keeps of it, what came out of the speaker."""

    written: str
    kept: str
    played: Pcm16
    cut: bool
    """Whether it was cancelled, or written to its end and not played to it."""


@pytest.fixture(scope="module")
def speech() -> list[Recording]:
    return steady(packaged(Measure()), 200)


@pytest.fixture(scope="module")
def ear() -> Ear:
    return Ear()


async def converse(address: str, speech: list[Recording], turns: int, seed: int) -> list[Answer]:
    """Say one thing after the other, most of them over the answer to the one before."""
    rng = random.Random(seed)
    async with Client(address) as client:
        await client.configure(
            instructions=LONG_ANSWERS, max_output_tokens=LONG_ANSWER_TOKENS, **detection("server_vad")
        )
        for _ in range(turns):
            await _answered(client, rng.choice(speech))
            if rng.random() < HEARD_OUT_SHARE:
                await _quiet(client)
            else:
                await asyncio.sleep(rng.uniform(0.2, 3.0))
        await _quiet(client)
        return [
            await _kept(client, done["response"], item["id"])
            for _, done in client.since(0, "response.done")
            for item in done["response"]["output"]
        ]


async def _answered(client: Client, recording: Recording) -> None:
    """Say it, and return when its answer begins to play."""
    known, mark = set(client.heard), client.mark
    client.say(recording)
    await client.event(
        "response.output_audio.delta", since=mark, where=lambda event: event["response_id"] not in known
    )


async def _kept(client: Client, response: Json, item_id: str) -> Answer:
    written = "".join(
        event["delta"]
        for _, event in client.since(0, "response.output_audio_transcript.delta")
        if event["response_id"] == response["id"]
    )
    mark = client.mark
    await client.send("conversation.item.retrieve", item_id=item_id)
    retrieved = await client.event("conversation.item.retrieved", since=mark)
    kept = retrieved["item"]["content"][0]["transcript"]
    heard = client.heard[response["id"]]
    return Answer(written, kept, heard.played, response["status"] == "cancelled" or heard.unplayed_s > 0)


async def _quiet(client: Client) -> None:
    """Return when nothing is answered or played any more."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < QUIET_S:
        created = len(client.since(0, "response.created"))
        running = created - len(client.since(0, "response.done"))
        if running or client.left_s:
            quiet_since = time.monotonic()
        await asyncio.sleep(0.1)


def check(answers: list[Answer], turns: int, ear: Ear) -> None:
    assert len(answers) >= turns
    for answer in answers:
        told = f"{answer.written!r} was written, {answer.kept!r} is kept, cut: {answer.cut}"
        assert answer.written.startswith(answer.kept), told
        assert answer.cut or answer.kept == answer.written, told
        heard = ear.transcribe(answer.played, 24_000) if len(answer.played) > 2_400 else ""
        kept_words, heard_words = ear.words(answer.kept), ear.words(heard)
        cut_into = ear.words(" ".join(answer.written[len(answer.kept) :].split()[:1]))
        wrong = sum(
            mine is None or other is None or kept_words[mine] != heard_words[other]
            for mine, other in align(kept_words, heard_words)
        )
        beside = max(WORDS_BESIDE, 1 + len(cut_into))  # "cold-hearted" is heard as two words
        assert wrong <= beside + MISHEARD_SHARE * len(kept_words), f"{told}, {heard!r} was heard"
    assert any(answer.cut and answer.kept != answer.written for answer in answers)


async def test_history_is_what_was_heard(server: str, speech: list[Recording], ear: Ear) -> None:
    check(await converse(server, speech, turns=3, seed=1), 3, ear)


@pytest.mark.long
async def test_history_is_what_was_heard_in_twenty_turns(
    server: str, speech: list[Recording], ear: Ear
) -> None:
    check(await converse(server, speech, turns=20, seed=2), 20, ear)
