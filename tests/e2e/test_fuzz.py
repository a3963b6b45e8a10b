"""Whatever a client sends, the server answers or ignores it as documented, and goes on."""

from __future__ import annotations

import base64
import copy
import json
import random
from typing import Any
from urllib.request import urlopen

import pytest

from s2s.realtime.events import EventError, parse
from tests.e2e.wire import TEXT_ITEM, Wire, until_idle, wire

pytestmark = pytest.mark.e2e
MESSAGES_A_SESSION = 250
SILENCE = base64.b64encode(bytes(4800)).decode()
CAPTURES: list[dict[str, Any]] = [
    {"type": "session.update", "session": {"type": "realtime", "instructions": "Be brief."}},
    {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "transcription": {"model": "default", "language": "en"},
                    "turn_detection": {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 500},
                },
                "output": {"format": {"type": "audio/pcmu"}, "speed": 1.0},
            },
            "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}],
            "tool_choice": "auto",
        },
    },
    {"type": "input_audio_buffer.append", "audio": SILENCE},
    {"type": "input_audio_buffer.commit"},
    {"type": "input_audio_buffer.clear"},
    TEXT_ITEM,
    {
        "type": "conversation.item.create",
        "previous_item_id": "root",
        "item": {"type": "function_call_output", "call_id": "c", "output": "1"},
    },
    {"type": "conversation.item.retrieve", "item_id": "item_1"},
    {"type": "conversation.item.truncate", "item_id": "item_1", "content_index": 0, "audio_end_ms": 10},
    {"type": "conversation.item.delete", "item_id": "item_1"},
    {"type": "response.cancel"},
    {"type": "output_audio_buffer.clear"},
]  # fmt: skip
ANSWER = {"type": "response.create", "response": {"conversation": "none", "max_output_tokens": 8, "output_modalities": ["text"]}}  # fmt: skip  # noqa: E501
ODD_VALUES = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    "",
    "\x00",
    "x" * 1000,
    "🎉",
    [],
    {},
    [[]],
    {"type": "x"},
    ["a", 1],
)


def changed(rng: random.Random, value: Any) -> Any:
    """`value` with something in it replaced, taken out or added."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        action = rng.random()
        if action < 0.15:
            del value[key]
        elif action < 0.3:
            value[rng.choice(("extra", "type", "item", "audio", key + "x"))] = rng.choice(ODD_VALUES)
        else:
            value[key] = changed(rng, value[key])
        return value
    if isinstance(value, list) and value and rng.random() < 0.6:
        index = rng.randrange(len(value))
        value[index] = changed(rng, value[index])
        return value
    return copy.deepcopy(rng.choice(ODD_VALUES))


def flipped(rng: random.Random, data: bytes) -> bytes:
    """`data` with some bits flipped."""
    broken = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    return bytes(broken)


def message(rng: random.Random) -> str | bytes:
    """One message of a client that is broken, hostile, or well."""
    event = copy.deepcopy(ANSWER if rng.random() < 0.02 else rng.choice(CAPTURES))
    kind = rng.random()
    if kind < 0.2:
        return json.dumps(event)
    if kind < 0.65:
        for _ in range(rng.randint(1, 3)):
            event = changed(rng, event)
        return json.dumps(event)
    data = json.dumps(event).encode()
    if kind < 0.85:
        data = flipped(rng, data)
    elif kind < 0.95:
        data = data[: rng.randrange(len(data))]
    else:
        data = rng.randbytes(rng.randint(0, 200))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def is_refused(data: str | bytes) -> bool:
    """Whether the documented validation refuses `data`: then an error must come."""
    try:
        parse(data)
    except EventError:
        return True
    return False


async def hammer(session: Wire, count: int, rng: random.Random, number: int) -> None:
    """Send `count` messages, then see every refused one answered and the session alive."""
    refused = 0
    for _ in range(count):
        data = message(rng)
        refused += is_refused(data)
        await session.socket.send(data)
    probe = f"probe-{number}"
    errors = 0
    await session.send({"type": "conversation.item.retrieve", "item_id": "nobody", "event_id": probe})
    while True:
        event = await session.receive()
        if event["type"] == "error":
            assert event["error"]["message"] and event["error"]["code"], event
            if event["error"]["event_id"] == probe:
                break
            errors += 1
    assert errors >= refused


def health(server: str) -> str:
    with urlopen(f"{server}/health", timeout=30) as reply:
        return str(json.load(reply)["status"])


async def fuzz(server: str, messages: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(0, messages, MESSAGES_A_SESSION):
        async with wire(server) as session:
            await hammer(session, min(MESSAGES_A_SESSION, messages - number), rng, number)
    await until_idle(server)
    assert health(server) == "ready"


async def test_2000_broken_messages_are_answered_and_the_server_goes_on(server: str) -> None:
    await fuzz(server, 2_000, seed=1)


@pytest.mark.long
async def test_20000_broken_messages_are_answered_and_the_server_goes_on(server: str) -> None:
    await fuzz(server, 20_000, seed=2)


def test_the_fuzz_makes_both_good_and_bad_messages() -> None:
    rng = random.Random(0)
    refused = sum(is_refused(message(rng)) for _ in range(500))
    assert 200 < refused < 450
