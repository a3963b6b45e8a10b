"""LLMs behind OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama, SGLang and many more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Any

from actors.llm import tools
from actors.llm.remote import BadCall, RemoteLlm, RemoteLlmOptions, Result, call, input_audio
from actors.messages import (
    AudioPart,
    FinishReason,
    ImagePart,
    LlmDone,
    LlmRequest,
    LlmText,
    Message,
    TextPart,
)
from actors.remote import BrokenOff, Endpoint


@dataclass(frozen=True)
class ChatCompletionsOptions(RemoteLlmOptions):
    """Options of `ChatCompletions`."""


class ChatCompletions(RemoteLlm):
    """`POST /v1/chat/completions`.  Reasoning that the server tells apart from the answer is not passed on."""

    name = "chat-completions"

    def __init__(self, options: ChatCompletionsOptions | None = None) -> None:
        super().__init__(options or ChatCompletionsOptions())

    def _body(self, request: LlmRequest, endpoint: Endpoint) -> dict[str, Any]:
        messages = [self._message(message) for message in request.messages]
        if request.delivered:
            # A last message of the assistant is gone on with by most servers.
            messages.append({"role": "assistant", "content": request.delivered})
        tokens_field = "max_completion_tokens" if endpoint.is_openai else "max_tokens"
        body: dict[str, Any] = {
            "model": endpoint.model,
            "messages": messages,
            "seed": request.seed,
            "extra_body": self._extra(request, endpoint),
            **self._sampling(request, tokens_field),
        }
        if self._options.reasoning_effort is not None:
            body["reasoning_effort"] = self._options.reasoning_effort
        if shown := tools.shown(request):
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in shown
            ]
            body["tool_choice"] = _choice(request.tool_choice)
        return body

    def _message(self, message: Message) -> dict[str, Any]:
        row: dict[str, Any] = {"role": message.role, "content": self._content(message)}
        if message.tool_calls:
            row["tool_calls"] = [
                {
                    "type": "function",
                    "id": each.call_id,
                    "function": {"name": each.name, "arguments": each.arguments or "{}"},
                }
                for each in message.tool_calls
            ]
        if message.tool_call_id is not None:
            row["tool_call_id"] = message.tool_call_id
        return row

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        """Text where there is nothing else: not every server takes a list."""
        parts = [self._heard(part) if isinstance(part, AudioPart) else part for part in message.parts]
        if all(isinstance(part, TextPart) for part in parts):
            return "".join(part.text for part in parts if isinstance(part, TextPart))
        return [_part(part) for part in parts]

    async def _asked(
        self, body: dict[str, Any], request: LlmRequest, endpoint: Endpoint
    ) -> AsyncGenerator[Result, None]:
        create = endpoint.client.chat.completions.create
        reply = _Reply(request.delivered_tokens)
        if not self._options.stream:
            completion = await create(**body)
            if not getattr(completion, "choices", None):
                raise BrokenOff("an answer without choices came")
            choice = completion.choices[0]
            for result in reply.add(choice.message, choice.finish_reason, completion.usage):
                yield result
        else:
            stream = await create(**body, stream=True, stream_options={"include_usage": True})
            try:
                async with stream:
                    async for chunk in stream:
                        first = chunk.choices[0] if chunk.choices else None
                        delta = first.delta if first is not None else None
                        finish = first.finish_reason if first is not None else None
                        for result in reply.add(delta, finish, chunk.usage):
                            yield result
            except Exception:
                if reply.finish_reason is None:
                    raise  # else the answer is whole, and what broke off behind it is only what it cost
        for result in reply.end():
            yield result


@dataclass
class _Call:
    name: str = ""
    arguments: str = ""


@dataclass
class _Reply:
    """One answer as it comes."""

    tokens_before: int
    calls: dict[int, _Call] = field(default_factory=dict)
    pieces: int = 0
    finish_reason: str | None = None
    usage: Any = None

    def add(self, message: Any, finish_reason: str | None, usage: Any) -> list[Result]:
        """Take a delta, or a whole message; the text in it."""
        self.usage = usage or self.usage
        self.finish_reason = finish_reason or self.finish_reason
        if message is None:
            return []
        for each in message.tool_calls or []:
            index = getattr(each, "index", None)
            if (
                index is None
            ):  # a whole message, or a server that does not number: a name begins the next call
                index = len(self.calls) - (not (each.function and each.function.name))
            entry = self.calls.setdefault(index, _Call())
            if each.function is not None:
                entry.name = entry.name or each.function.name or ""
                entry.arguments += each.function.arguments or ""
        text = message.content or getattr(message, "refusal", None)
        if not text:
            return []
        self.pieces += 1
        return [LlmText(text)]

    def end(self) -> Iterator[Result]:
        """The calls and the end.  Raises `BrokenOff` where no end came, `BadCall` for a call that came whole."""
        if self.finish_reason is None:
            raise BrokenOff("the answer ended without a finish_reason")
        reason = _reason(self.finish_reason)
        cut_off = reason == "length"
        for _, each in sorted(self.calls.items()):
            try:
                made = call(each.name, each.arguments)
            except BadCall:
                if cut_off:
                    break
                raise
            reason = "tool_calls"
            yield made
        usage = self.usage
        if usage is None:
            yield LlmDone(reason, output_tokens=self.tokens_before + self.pieces)
            return
        details = usage.prompt_tokens_details
        cached = (details.cached_tokens or 0) if details is not None else 0
        output = self.tokens_before + (usage.completion_tokens or 0)
        yield LlmDone(reason, usage.prompt_tokens or 0, cached, output)


def _reason(finish_reason: str) -> FinishReason:
    match finish_reason:
        case "length" | "content_filter":
            return finish_reason
        case "tool_calls" | "function_call":
            return "tool_calls"
        case _:
            return "stop"


def _choice(choice: str) -> str | dict[str, Any]:
    kind, _, name = choice.partition(":")
    return {"type": "function", "function": {"name": name}} if kind == "function" else choice


def _part(part: TextPart | AudioPart | ImagePart) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case AudioPart(audio):
            return input_audio(audio)
        case ImagePart(url):
            return {"type": "image_url", "image_url": {"url": url}}
