"""OpenAI's HTTP endpoints of single stages: transcriptions, speech, chat completions.

They use the replicas that the sessions use, through the same queues, below live turns in rank.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from actors.messages import (
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsRequest,
)
from orchestration.session.clauses import ClauseStream
from orchestration.session.text_language import TextLanguage
from s2s.audio import AudioFileError, read_audio
from s2s.realtime.chat import ChatError, parse_chat
from s2s.realtime.container import CONTENT_TYPES, SpeechWriter
from s2s.realtime.replies import MAX_BODY_BYTES, HttpError, invalid, json_body
from s2s.sessions import Sessions

MAX_SPEECH_CHARACTERS = 4096
"""Longest input of one speech request, as at OpenAI."""


async def transcriptions(sessions: Sessions, request: Request) -> Response:
    """`POST /v1/audio/transcriptions`: a file in, its text out (json, text, verbose_json, srt, vtt)."""
    length = request.headers.get("content-length", "")
    if not length.isdigit():
        raise HttpError(411, "length_required", "Send the file with its Content-Length.")
    if int(length) > MAX_BODY_BYTES:
        raise HttpError(413, "too_large", f"The file is over {MAX_BODY_BYTES >> 20} MiB.")
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise invalid("Send the file as multipart/form-data.", "file")
    async with request.form(max_files=1, max_fields=32) as form:
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise HttpError(
                400, "missing_required_parameter", "Missing required parameter: 'file'.", param="file"
            )
        data, name = await upload.read(), upload.filename or "audio.wav"
        fields = {key: str(value) for key, value in form.multi_items() if isinstance(value, str)}
        granularities = [str(value) for value in form.getlist("timestamp_granularities[]")]
    style = fields.get("response_format", "json")
    if style not in ("json", "text", "verbose_json", "srt", "vtt"):
        raise invalid(f"{style!r} is not one of json, text, verbose_json, srt, vtt.", "response_format")
    audio = await asyncio.to_thread(_decode, data, name)
    work = SttRequest(
        audio=audio,
        language=fields.get("language"),
        prompt=fields.get("prompt"),
        word_times="word" in granularities or style in ("srt", "vtt"),
    )
    final = SttResult("")
    async for result in sessions.run(work):
        if isinstance(result, SttResult) and result.final:
            final = result
    if fields.get("stream", "").lower() == "true":
        return _transcript_events(final.text)
    return _transcript_reply(style, final, len(audio) / 32_000)


def _decode(data: bytes, name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{Path(name).suffix[:8]}"
        path.write_bytes(data)
        try:
            return read_audio(path).pcm
        except AudioFileError as error:
            raise invalid(str(error).replace(str(path), Path(name).name), "file") from None


def _transcript_reply(style: str, result: SttResult, duration_s: float) -> Response:
    usage = {"type": "duration", "seconds": round(duration_s)}
    if style == "text":
        return PlainTextResponse(result.text + "\n")
    if style == "json":
        return JSONResponse({"text": result.text, "usage": usage})
    words = [(word.text, word.start_ms / 1000, word.end_ms / 1000) for word in result.words or []]
    if style == "verbose_json":
        return JSONResponse(
            {
                "task": "transcribe",
                "language": result.language or "en",
                "duration": duration_s,
                "text": result.text,
                "words": [{"word": text, "start": start, "end": end} for text, start, end in words],
                "usage": usage,
            }
        )
    end = words[-1][2] if words else duration_s
    mark = "." if style == "vtt" else ","
    cue = f"{_clock(0.0, mark)} --> {_clock(end, mark)}\n{result.text}\n"
    return PlainTextResponse(f"WEBVTT\n\n{cue}" if style == "vtt" else f"1\n{cue}")


def _clock(seconds: float, mark: str) -> str:
    whole, ms = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{mark}{ms:03}"


def _transcript_events(text: str) -> Response:
    events = [
        {"type": "transcript.text.delta", "delta": text},
        {"type": "transcript.text.done", "text": text},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Response(body, media_type="text/event-stream")


async def speech(sessions: Sessions, request: Request) -> Response:
    """`POST /v1/audio/speech`: text in, sound out as it is made (wav, pcm, mp3, flac, opus)."""
    body = await json_body(request)
    text, style, speed = body.get("input"), body.get("response_format", "mp3"), body.get("speed", 1.0)
    if not isinstance(text, str) or not text.strip():
        raise HttpError(
            400, "missing_required_parameter", "Missing required parameter: 'input'.", param="input"
        )
    if len(text) > MAX_SPEECH_CHARACTERS:
        raise invalid(f"'input' has {len(text)} characters; {MAX_SPEECH_CHARACTERS} at most.", "input")
    if style not in CONTENT_TYPES:
        raise invalid(f"{style!r} is not one of {', '.join(CONTENT_TYPES)}.", "response_format")
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.25 <= speed <= 4:
        raise invalid("'speed' is a number from 0.25 to 4.", "speed")
    voice = body.get("voice")
    if isinstance(voice, Mapping):
        voice = voice.get("id")
    voice = sessions.defaults.voices.get(str(voice), str(voice)) if voice else sessions.defaults.voice
    pieces = _speech(sessions, text, style, float(speed), voice)
    first = await anext(pieces)  # a failure before the first sound is still an error status

    async def body_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    if body.get("stream_format") == "sse":
        return StreamingResponse(_speech_events(body_pieces()), media_type="text/event-stream")
    return StreamingResponse(body_pieces(), media_type=CONTENT_TYPES[style])


async def _speech(
    sessions: Sessions, text: str, style: str, speed: float, voice: str | None
) -> AsyncIterator[bytes]:
    stream, language = ClauseStream(), TextLanguage(None)
    writer: SpeechWriter | None = None
    for clause in [*stream.feed(text), *stream.finish()]:
        if not clause.spoken:
            continue
        request = TtsRequest(clause.spoken, voice=voice, language=language.of(clause.spoken), speed=speed)
        async for result in sessions.run(request):
            if isinstance(result, TtsAudio):
                writer = writer or SpeechWriter(style, result.rate_hz)
                written = writer.write(result.pcm)
                if written:
                    yield written
    if writer is None:
        raise HttpError(422, "nothing_to_say", "'input' holds nothing that can be spoken.", param="input")
    yield writer.finish()


async def _speech_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    async for piece in pieces:
        event = {"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()}
        yield f"data: {json.dumps(event)}\n\n"
    done = {"type": "speech.audio.done", "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}
    yield f"data: {json.dumps(done)}\n\n"


async def chat_completions(sessions: Sessions, request: Request) -> Response:
    """`POST /v1/chat/completions`, whole or streaming."""
    body = await json_body(request)
    try:
        work = parse_chat(body)
    except ChatError as error:
        raise HttpError(400, error.code, str(error), param=error.param) from None
    completion = _Completion(str(body.get("model") or sessions.defaults.model))
    if body.get("stream"):
        options = body.get("stream_options") or {}
        include_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        return StreamingResponse(
            completion.stream(sessions, work, include_usage), media_type="text/event-stream"
        )
    return JSONResponse(await completion.whole(sessions, work))


class _Completion:
    """One chat completion in OpenAI's form."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}

    async def whole(self, sessions: Sessions, work: LlmRequest) -> dict[str, Any]:
        text, calls, done = "", [], LlmDone("stop")
        async for result in sessions.run(work):
            if isinstance(result, LlmText):
                text += result.text
            elif isinstance(result, LlmToolCall):
                calls.append(_tool_call(result))
            elif isinstance(result, LlmDone):
                done = result
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": done.finish_reason, "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _usage(done)}

    async def stream(self, sessions: Sessions, work: LlmRequest, include_usage: bool) -> AsyncIterator[str]:
        yield self._chunk({"role": "assistant", "content": ""})
        calls, done = 0, LlmDone("stop")
        async for result in sessions.run(work):
            if isinstance(result, LlmText):
                yield self._chunk({"content": result.text})
            elif isinstance(result, LlmToolCall):
                yield self._chunk({"tool_calls": [{"index": calls, **_tool_call(result)}]})
                calls += 1
            elif isinstance(result, LlmDone):
                done = result
        yield self._chunk({}, done.finish_reason)
        if include_usage:
            usage = {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(done)}
            yield f"data: {json.dumps(usage)}\n\n"
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return (
            f"data: {json.dumps({**self._head, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
        )


def _tool_call(call: LlmToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def _usage(done: LlmDone) -> dict[str, Any]:
    return {
        "prompt_tokens": done.input_tokens,
        "completion_tokens": done.output_tokens,
        "total_tokens": done.input_tokens + done.output_tokens,
        "prompt_tokens_details": {"cached_tokens": done.cached_tokens},
    }
