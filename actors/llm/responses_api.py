"""LLMs behind OpenAI's responses API."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from actors.llm import tools
from actors.llm.remote import LEAST_TOKENS, RemoteLlm, RemoteLlmOptions, Result, call, input_audio
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
class ResponsesApiOptions(RemoteLlmOptions):
    """Options of `ResponsesApi`."""


class ResponsesApi(RemoteLlm):
    """`POST /v1/responses`.  Nothing is stored there: the whole conversation goes with each request."""

    name = "responses-api"

    def __init__(self, options: ResponsesApiOptions | None = None) -> None:
        super().__init__(options or ResponsesApiOptions())

    def _body(self, request: LlmRequest, endpoint: Endpoint) -> dict[str, Any]:
        items = [item for message in request.messages for item in self._items(message)]
        if request.delivered:
            items.append({"role": "assistant", "content": request.delivered})
        body: dict[str, Any] = {
            "model": endpoint.model,
            "input": items,
            "store": False,
            "extra_body": self._extra(request, endpoint),
            **self._sampling(request, "max_output_tokens", LEAST_TOKENS),
        }
        if self._options.reasoning_effort is not None:
            body["reasoning"] = {"effort": self._options.reasoning_effort}
        if shown := tools.shown(request):
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in shown
            ]
            kind, _, name = request.tool_choice.partition(":")
            body["tool_choice"] = {"type": "function", "name": name} if kind == "function" else kind
        return body

    def _items(self, message: Message) -> list[dict[str, Any]]:
        """A message and the calls in it are items of their own."""
        if message.role == "tool":
            return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}]
        items: list[dict[str, Any]] = []
        if message.role == "user":
            items.append({"role": "user", "content": [self._part(part) for part in message.parts]})
        elif message.text:
            items.append({"role": message.role, "content": message.text})
        items += [
            {
                "type": "function_call",
                "call_id": each.call_id,
                "name": each.name,
                "arguments": each.arguments or "{}",
            }
            for each in message.tool_calls
        ]
        return items

    def _part(self, part: TextPart | AudioPart | ImagePart) -> dict[str, Any]:
        match self._heard(part) if isinstance(part, AudioPart) else part:
            case TextPart(text):
                return {"type": "input_text", "text": text}
            case AudioPart(audio):
                return input_audio(audio)
            case ImagePart(url):
                return {"type": "input_image", "image_url": url, "detail": "auto"}

    async def _asked(
        self, body: dict[str, Any], request: LlmRequest, endpoint: Endpoint
    ) -> AsyncGenerator[Result, None]:
        create = endpoint.client.responses.create
        if not self._options.stream:
            response = await create(**body)
            if not hasattr(response, "output"):
                raise BrokenOff("what came is no response")
            for item in response.output:
                for result in _of_item(item, whole=True):
                    yield result
            yield _done(response, request.delivered_tokens)
            return
        stream = await create(**body, stream=True)
        async with stream:
            async for event in stream:
                match event.type:
                    case "response.output_text.delta" | "response.refusal.delta":
                        yield LlmText(event.delta)
                    case "response.output_item.done":
                        for result in _of_item(event.item, whole=False):
                            yield result
                    case "response.completed" | "response.incomplete" | "response.failed":
                        yield _done(event.response, request.delivered_tokens)
                        return
                    case "error":
                        raise BrokenOff(event.message)
        raise BrokenOff("the answer ended without response.completed")


def _of_item(item: Any, whole: bool) -> list[Result]:
    """A call; of a `whole` answer its text besides, which otherwise has come as deltas.  Raises `BadCall`."""
    if item.type == "function_call" and item.status != "incomplete":
        return [call(item.name, item.arguments)]
    if item.type != "message" or not whole:
        return []
    texts = [getattr(part, "text", None) or getattr(part, "refusal", "") for part in item.content]
    return [LlmText(text) for text in texts if text]


def _done(response: Any, tokens_before: int) -> LlmDone:
    """The end of `response`.  Raises `BrokenOff` where it failed."""
    if response.status == "failed" or response.error is not None:
        raise BrokenOff(response.error.message if response.error is not None else "the response failed")
    reason: FinishReason = (
        "tool_calls" if any(item.type == "function_call" for item in response.output) else "stop"
    )
    if response.status == "incomplete":
        details = response.incomplete_details
        filtered = details is not None and details.reason == "content_filter"
        reason = "content_filter" if filtered else "length"
    usage = response.usage
    if usage is None:
        return LlmDone(reason, output_tokens=tokens_before)
    details = usage.input_tokens_details
    cached = (details.cached_tokens or 0) if details is not None else 0
    output = tokens_before + (usage.output_tokens or 0)
    return LlmDone(reason, usage.input_tokens or 0, cached, output)
