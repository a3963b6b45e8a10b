"""Sessions side by side share the models and nothing else."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from tests.e2e.wire import Wire, wire

pytestmark = pytest.mark.e2e
PEOPLE = (
    ("af_heart", "en", "You are a pirate. Your name is Anne.", "apple", {"type": "audio/pcm", "rate": 24000}),
    ("am_adam", "de", "You are a judge. Your name is Bert.", "banana", {"type": "audio/pcmu"}),
    ("bf_emma", "fr", "You are a cook. Your name is Cleo.", "cherry", {"type": "audio/pcma"}),
)
ID_FIELDS = ("item_id", "response_id", "event_id")


async def talk(session: Wire, person: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Settings, then one turn; every event that came."""
    voice, language, instructions, word, audio_format = person
    transcription = {"model": "default", "language": language}
    audio = {"input": {"transcription": transcription}, "output": {"voice": voice, "format": audio_format}}
    settings = {"type": "realtime", "instructions": instructions, "audio": audio, "max_output_tokens": 20}
    content = [{"type": "input_text", "text": f"Say this word: {word}."}]
    await session.send(
        {"type": "session.update", "session": settings},
        {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": content}},
        {"type": "response.create"},
    )
    return await session.until("response.done")


def ids(events: list[dict[str, Any]]) -> set[str]:
    return {event[field] for event in events for field in ID_FIELDS if event.get(field)}


async def test_three_people_at_once_never_meet(server: str) -> None:
    async with wire(server) as one, wire(server) as two, wire(server) as three:
        sessions = (one, two, three)
        heard = await asyncio.gather(*(talk(each, who) for each, who in zip(sessions, PEOPLE, strict=True)))
        for events, (voice, language, instructions, _, audio_format) in zip(heard, PEOPLE, strict=True):
            (updated,) = [event["session"] for event in events if event["type"] == "session.updated"]
            assert updated["instructions"] == instructions
            assert updated["audio"]["input"]["transcription"]["language"] == language
            assert updated["audio"]["output"]["voice"] == voice
            (created,) = [event["response"] for event in events if event["type"] == "response.created"]
            assert created["audio"]["output"]["format"] == audio_format
            audio = b"".join(
                base64.b64decode(e["delta"]) for e in events if e["type"] == "response.output_audio.delta"
            )
            assert len(audio) > 1000
        first, second, third = map(ids, heard)
        assert not first & second and not second & third and not first & third
        (item,) = [
            e["item"]["id"]
            for e in heard[0]
            if e["type"] == "conversation.item.added" and e["item"]["role"] == "user"
        ]
        await two.send({"type": "conversation.item.retrieve", "item_id": item, "event_id": "spy"})
        error = (await two.until("error"))[-1]["error"]
        assert error["event_id"] == "spy"
        await one.send({"type": "conversation.item.retrieve", "item_id": item})
        (got,) = [e["item"] for e in await one.until("conversation.item.retrieved") if "item" in e]
        assert got["content"][0]["text"] == "Say this word: apple."
