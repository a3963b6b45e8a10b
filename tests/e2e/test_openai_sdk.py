"""The `openai` Python SDK, unchanged but for its address."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from tests.e2e.sound import appends, is_audible, seconds, spoken

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0
LONG_STORY = "Tell me a very long story about a dragon, a sailor and a lighthouse, with many details."
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
}
SPOKEN_ANSWER = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]


@pytest.fixture
async def client(server: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=f"{server}/v1", api_key="none", max_retries=0, timeout=PATIENCE_S
    ) as client:
        yield client


@pytest.fixture
async def connection(client: AsyncOpenAI) -> AsyncIterator[AsyncRealtimeConnection]:
    async with client.realtime.connect(model="gpt-realtime") as connection:
        assert (await receive(connection)).type == "session.created"
        yield connection


async def receive(connection: AsyncRealtimeConnection) -> Any:
    """The next event, which is as the SDK's own types say."""
    async with asyncio.timeout(PATIENCE_S):
        event = await connection.recv()
    type(event).model_validate(event.to_dict())
    return event


async def until(connection: AsyncRealtimeConnection, *types: str) -> list[Any]:
    """Every event up to the first of one of `types`; errors are failures."""
    events = []
    while not events or events[-1].type not in types:
        events.append(await receive(connection))
        assert events[-1].type != "error" or "error" in types, events[-1]
    return events


async def say(connection: AsyncRealtimeConnection, pcm: bytes, live: bool = False) -> None:
    for piece in appends(pcm):
        await connection.input_audio_buffer.append(audio=piece)
        if live:
            await asyncio.sleep(0.1)


async def write(connection: AsyncRealtimeConnection, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item: Any = {"type": "message", "role": "user", "content": content}
    await connection.conversation.item.create(item=item)


def of(events: Sequence[Any], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


def sound_of(events: Sequence[Any]) -> bytes:
    return b"".join(base64.b64decode(each.delta) for each in of(events, "response.output_audio.delta"))


def order(events: Sequence[Any], wanted: Sequence[str]) -> list[str]:
    """The types of `events` that are among `wanted`, each at its first place."""
    return list(dict.fromkeys(event.type for event in events if event.type in wanted))


async def test_a_spoken_question_is_heard_and_answered_aloud(
    connection: AsyncRealtimeConnection, question_file: Path
) -> None:
    transcription: Any = {"model": "gpt-4o-mini-transcribe"}
    await connection.session.update(
        session={"type": "realtime", "audio": {"input": {"transcription": transcription}}}
    )
    updated = (await until(connection, "session.updated"))[-1]
    assert updated.session.audio.input.turn_detection.type == "server_vad"
    await say(connection, spoken(question_file))
    events = await until(connection, "response.done")
    heard = [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.input_audio_transcription.completed",
    ]
    assert order(events, heard) == heard
    transcript = of(events, "conversation.item.input_audio_transcription.completed")[0].transcript
    assert "capital of france" in transcript.lower()
    assert_spoken_answer(events)


def answer_of(events: list[Any]) -> list[Any]:
    """From the answer's first event on."""
    return events[next(index for index, event in enumerate(events) if event.type == "response.created") :]


def assert_spoken_answer(events: list[Any]) -> None:
    """One whole answer, in the order that clients rely on, of which the words and the sound agree."""
    answer = answer_of(events)
    assert order(answer, SPOKEN_ANSWER) == SPOKEN_ANSWER
    response = answer[-1].response
    assert response.status == "completed"
    assert response.usage.output_tokens > 0
    (item,) = response.output
    words = "".join(each.delta for each in of(answer, "response.output_audio_transcript.delta"))
    assert words == of(answer, "response.output_audio_transcript.done")[0].transcript
    assert words == item.content[0].transcript
    assert words.strip()
    deltas = of(answer, "response.output_audio.delta")
    assert {(each.response_id, each.item_id) for each in deltas} == {(response.id, item.id)}
    sound = sound_of(answer)
    assert is_audible(sound)
    assert 0.05 < seconds(sound) / len(words.split()) < 3  # seconds a word


async def test_a_live_microphone_is_served_as_a_file_is(
    connection: AsyncRealtimeConnection, question_file: Path
) -> None:
    saying = asyncio.create_task(say(connection, spoken(question_file), live=True))
    events = await until(connection, "response.done")
    await saying
    assert_spoken_answer(events)


async def test_a_written_question_is_answered_in_writing(connection: AsyncRealtimeConnection) -> None:
    await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
    await write(connection, "What is the capital of France?")
    await connection.response.create()
    events = await until(connection, "response.done")
    text = "".join(each.delta for each in of(events, "response.output_text.delta"))
    assert text.strip()
    assert text == of(events, "response.output_text.done")[0].text
    assert text == events[-1].response.output[0].content[0].text
    assert not of(events, "response.output_audio.delta")


async def test_a_forced_tool_is_called_and_its_result_is_spoken(connection: AsyncRealtimeConnection) -> None:
    await connection.session.update(session={"type": "realtime", "tools": [WEATHER], "tool_choice": "auto"})
    await write(connection, "What is the weather in Paris, in celsius?")
    choice: Any = {"type": "function", "name": "get_weather"}
    await connection.response.create(response={"tool_choice": choice})
    events = await until(connection, "response.done")
    (call,) = events[-1].response.output
    done = of(events, "response.function_call_arguments.done")[0]
    assert call.name == "get_weather"
    assert done.arguments == call.arguments
    assert (
        "".join(each.delta for each in of(events, "response.function_call_arguments.delta")) == call.arguments
    )
    arguments = json.loads(call.arguments)
    assert set(arguments) == {"city", "unit"}
    assert isinstance(arguments["city"], str)
    assert arguments["unit"] in ("celsius", "fahrenheit")
    output = json.dumps({"sky": "sunny", "degrees": 21})
    await connection.conversation.item.create(
        item={"type": "function_call_output", "call_id": call.call_id, "output": output}
    )
    await connection.response.create(response={"tool_choice": "none"})
    assert_spoken_answer(await until(connection, "response.done"))


async def test_an_answer_that_is_cancelled_ends_clean_and_the_next_is_whole(
    connection: AsyncRealtimeConnection,
) -> None:
    await write(connection, LONG_STORY)
    await connection.response.create()
    events = await until(connection, "response.output_audio.delta")
    await connection.response.cancel()
    events += await until(connection, "response.done")
    response = events[-1].response
    assert (response.status, response.status_details.reason) == ("cancelled", "client_cancelled")
    assert [item.status for item in response.output] == ["incomplete"]
    closing = SPOKEN_ANSWER[4:]
    assert order(answer_of(events), closing) == closing
    await write(connection, "Say hello.")
    await connection.response.create(response={"instructions": "Answer in one short sentence."})
    events = await until(connection, "response.done")
    assert {event.response_id for event in events if hasattr(event, "response_id")} == {
        events[-1].response.id
    }
    assert_spoken_answer(events)


async def test_cancelling_nothing_is_an_error_that_names_the_event(
    connection: AsyncRealtimeConnection,
) -> None:
    await connection.response.cancel(event_id="mine")
    error = (await until(connection, "error"))[-1].error
    assert (error.code, error.event_id) == ("response_cancel_not_active", "mine")


async def test_speech_interrupts_an_answer(connection: AsyncRealtimeConnection, question_file: Path) -> None:
    await write(connection, LONG_STORY)
    await connection.response.create()
    events = await until(connection, "response.output_audio.delta")
    await say(connection, spoken(question_file))
    events = await until(connection, "response.done")
    assert of(events, "input_audio_buffer.speech_started")
    response = events[-1].response
    assert (response.status, response.status_details.reason) == ("cancelled", "turn_detected")
    assert_spoken_answer(await until(connection, "response.done"))


async def test_what_was_not_heard_is_truncated(connection: AsyncRealtimeConnection) -> None:
    await write(connection, "Say: the weather is lovely today, and tomorrow it will rain.")
    await connection.response.create()
    events = await until(connection, "response.done")
    (item,) = events[-1].response.output
    whole_ms = round(seconds(sound_of(events)) * 1000)
    await connection.conversation.item.truncate(
        item_id=item.id, content_index=0, audio_end_ms=whole_ms + 5000
    )
    assert (await until(connection, "error"))[-1].error.type == "invalid_request_error"
    await connection.conversation.item.truncate(item_id=item.id, content_index=0, audio_end_ms=200)
    truncated = (await until(connection, "conversation.item.truncated"))[-1]
    assert (truncated.item_id, truncated.audio_end_ms) == (item.id, 200)
    await connection.conversation.item.retrieve(item_id=item.id)
    kept = (await until(connection, "conversation.item.retrieved"))[-1].item.content[0]
    assert len(kept.transcript or "") < len(item.content[0].transcript)
    assert seconds(base64.b64decode(kept.audio)) == pytest.approx(0.2, abs=0.01)


async def test_manual_turns_and_out_of_band_answers(
    connection: AsyncRealtimeConnection, question_file: Path
) -> None:
    await connection.session.update(
        session={
            "type": "realtime",
            "audio": {"input": {"turn_detection": None}},
            "output_modalities": ["text"],
        }
    )
    await say(connection, spoken(question_file, silence_s=0))
    await connection.input_audio_buffer.commit()
    await until(connection, "conversation.item.done")
    outside: Any = {"conversation": "none", "metadata": {"topic": "title"}, "instructions": "Say one word."}
    await connection.response.create(response=outside)
    events = await until(connection, "response.done")
    assert events[-1].response.metadata == {"topic": "title"}
    assert events[-1].response.conversation_id is None
    assert not of(events, "conversation.item.added")
    await connection.response.create()
    assert (await until(connection, "response.done"))[-1].response.status == "completed"


async def test_a_transcription_session_only_transcribes(client: AsyncOpenAI, question_file: Path) -> None:
    async with client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
        assert (await receive(connection)).session.type == "transcription"
        await say(connection, spoken(question_file))
        events = await until(connection, "conversation.item.input_audio_transcription.completed")
        assert "capital of france" in events[-1].transcript.lower()
        await connection.response.create()
        assert (await until(connection, "error"))[-1].error.type == "invalid_request_error"


async def test_an_ephemeral_secret_opens_the_session_it_was_made_for(
    client: AsyncOpenAI, server: str
) -> None:
    made = await client.realtime.client_secrets.create(
        session={"type": "realtime", "instructions": "Be brief.", "audio": {"output": {"voice": "marin"}}}
    )
    async with (
        AsyncOpenAI(base_url=f"{server}/v1", api_key=made.value) as browser,
        browser.realtime.connect(model="gpt-realtime") as connection,
    ):
        session = (await receive(connection)).session
        assert session.instructions == "Be brief."
        assert session.audio.output.voice == "marin"


async def test_a_file_is_transcribed(client: AsyncOpenAI, question_file: Path) -> None:
    create = client.audio.transcriptions.create
    assert "capital of france" in (await create(model="whisper-1", file=question_file)).text.lower()
    verbose = await create(
        model="whisper-1",
        file=question_file,
        response_format="verbose_json",
        timestamp_granularities=["word"],
    )
    assert verbose.words is not None
    starts = [word.start for word in verbose.words]
    assert len(starts) >= 5
    assert starts == sorted(starts)
    with pytest.raises(BadRequestError, match=r"talk\.wav: is not audio"):
        await create(model="whisper-1", file=("talk.wav", b"no sound"))


@pytest.mark.parametrize("style", ["wav", "mp3", "flac", "opus"])
async def test_speech_comes_as_it_is_made_and_can_be_understood(
    client: AsyncOpenAI, style: Any, tmp_path: Path
) -> None:
    text = "The train leaves at nine. Please bring your own lunch."
    file = tmp_path / f"speech.{style}"
    async with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=text, response_format=style
    ) as response:
        pieces = [piece async for piece in response.iter_bytes(4096)]
    file.write_bytes(b"".join(pieces))
    heard = (await client.audio.transcriptions.create(model="whisper-1", file=file)).text.lower()
    assert "train" in heard
    assert "lunch" in heard


async def test_a_chat_is_completed_whole_and_streaming(client: AsyncOpenAI) -> None:
    messages: Any = [{"role": "user", "content": "What is the capital of France?"}]
    create = client.chat.completions.create
    whole = await create(model="gpt-4o-mini", messages=messages, temperature=0, max_completion_tokens=24)
    assert whole.choices[0].message.content
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    chunks = [
        chunk
        async for chunk in await create(
            model="gpt-4o-mini",
            messages=messages,
            temperature=0,
            max_completion_tokens=24,
            stream=True,
            stream_options={"include_usage": True},
        )
    ]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage is not None


async def test_a_chat_can_be_made_to_call_a_function(client: AsyncOpenAI) -> None:
    function: Any = {key: WEATHER[key] for key in ("name", "description", "parameters")}
    completion = await client.chat.completions.create(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": "Weather in Rome?"}],
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
    )
    assert completion.choices[0].finish_reason == "tool_calls"
    (call,) = completion.choices[0].message.tool_calls or []
    assert set(json.loads(call.function.arguments)) == {"city", "unit"}


async def test_models_are_listed_and_others_are_not_found(client: AsyncOpenAI) -> None:
    names = [model.id async for model in client.models.list()]
    assert "whisper-tiny.en" in names
    with pytest.raises(NotFoundError):
        await client.models.retrieve("unheard-of")
