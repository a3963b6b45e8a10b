"""What the LLM backends share that are asked over HTTP: how an answer goes on elsewhere, and what may be asked."""

from __future__ import annotations

import base64
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors.backend import Batch, Capabilities, Key
from actors.llm import tools
from actors.llm.prompt import BadPrompt
from actors.messages import (
    STT_RATE_HZ,
    AudioPart,
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    Message,
    TextPart,
)
from actors.remote import Endpoint, Remote, RemoteOptions
from actors.wav import wav

logger = logging.getLogger(__name__)

Result = LlmText | LlmToolCall | LlmDone | Failed
LEAST_TOKENS = 16
"""OpenAI's responses take no lower limit."""


@dataclass(frozen=True)
class RemoteLlmOptions(RemoteOptions):
    """Options of LLMs that are asked over HTTP."""

    model_name: str = "gpt-5.4-mini"
    """The model, as the server names it."""
    stream: bool = True
    """Whether the answer comes as it is written."""
    disable_thinking: bool = True
    """Ask other servers than OpenAI's not to reason first (`chat_template_kwargs: {enable_thinking: false}`)."""
    reasoning_effort: str | None = None
    """How much the model is to reason: none, minimal, low, medium, high, as the server knows them; None: not said."""
    temperature: float | None = None
    """Where the request states none; None: the server's."""
    max_tokens: int | None = None
    """Longest answer, in tokens, where the request states none; None: the server's."""
    audio_input: bool = False
    """Whether the model hears: then it gets the user's sound itself (`--stt none`)."""
    extra_body: dict[str, Any] = field(default_factory=dict)
    """Fields added to each request, such as a provider's own."""
    resume_body: dict[str, Any] = field(default_factory=dict)
    """Fields added where an answer goes on behind its beginning; vLLM's: add_generation_prompt: false,
    continue_final_message: true."""


class BadCall(ValueError):
    """A function call that no client can carry out."""


class RemoteLlm(ABC):
    """An LLM behind HTTP.  A subclass asks one server once."""

    name: ClassVar[str]

    def __init__(self, options: RemoteLlmOptions) -> None:
        self._options = options
        self._remote: Remote

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            streams=self._options.stream,
            continuous=True,
            max_batch=self._options.max_concurrency,
            tools=True,
            audio_input=self._options.audio_input,
        )

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Nothing is loaded here: device, dtype and threads do not matter."""
        self._remote = Remote(f"llm {self.name}", self._options, self._options.model_name)

    def warmup(self) -> None:
        """Ask for a word: address, key and model are right.  Raises `RuntimeError` where they are not."""
        request = LlmRequest([Message("user", [TextPart("Say hello.")])], max_tokens=LEAST_TOKENS)
        self._remote.warm_up(self._answer, request)

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def generate(self, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, Result]]:
        """Answer requests side by side; a cancelled one's connection is closed at once."""
        yield from self._remote.answer_all(batch, self._answer)

    def close(self) -> None:
        """Close the connections."""
        self._remote.close()

    async def _answer(self, request: LlmRequest) -> AsyncGenerator[Result, None]:
        try:
            forced = tools.forced(request)
        except tools.BadToolChoice as error:
            yield Failed(f"llm {self.name}: {error}")
            return

        async def ask(endpoint: Endpoint, delivered: list[Any]) -> AsyncGenerator[Result, None]:
            rest = request.resumed(delivered)
            if rest.delivered_calls:
                # What else would have been called is not known any more; the results of these will tell.
                yield LlmDone("tool_calls", output_tokens=rest.delivered_tokens)
                return
            unrepeated = Unrepeated(rest.delivered)
            try:
                async with aclosing(self._asked(self._body(rest, endpoint), rest, endpoint)) as results:
                    async for result in results:
                        if isinstance(result, LlmText):
                            if text := unrepeated.feed(result.text):
                                yield LlmText(text, result.tokens)
                            continue
                        if isinstance(result, LlmDone) and forced and result.finish_reason == "stop":
                            logger.warning("llm %s: %s ignored tool_choice", self.name, endpoint.name)
                        if held := unrepeated.rest():
                            yield LlmText(held)
                        yield result
            except (BadPrompt, BadCall) as error:
                yield Failed(f"llm {self.name}: {error}")

        async with aclosing(self._remote.ask(ask)) as results:
            async for result in results:
                yield result

    @abstractmethod
    def _body(self, request: LlmRequest, endpoint: Endpoint) -> dict[str, Any]:
        """The request's fields.  Raises `BadPrompt` for what this model cannot be told."""

    @abstractmethod
    def _asked(
        self, body: dict[str, Any], request: LlmRequest, endpoint: Endpoint
    ) -> AsyncGenerator[Result, None]:
        """Ask `endpoint` once, with the `body` of `request`.  Raises what its client raises, `BrokenOff` and
        `BadCall`."""

    def _sampling(self, request: LlmRequest, tokens_field: str, least: int = 1) -> dict[str, Any]:
        """Temperature and length, where stated; the server takes no length below `least`."""
        options = self._options
        temperature = options.temperature if request.temperature is None else request.temperature
        limit = options.max_tokens if request.max_tokens is None else request.max_tokens
        fields: dict[str, Any] = {}
        if temperature is not None:
            fields["temperature"] = temperature
        if limit is not None:
            fields[tokens_field] = max(limit - request.delivered_tokens, least)
        return fields

    def _extra(self, request: LlmRequest, endpoint: Endpoint) -> dict[str, Any]:
        """Fields that OpenAI does not know."""
        options = self._options
        extra: dict[str, Any] = {}
        if options.disable_thinking and options.reasoning_effort is None and not endpoint.is_openai:
            extra["chat_template_kwargs"] = {"enable_thinking": False}
        return extra | options.extra_body | (options.resume_body if request.delivered else {})

    def _heard(self, part: AudioPart) -> AudioPart | TextPart:
        """The sound for a model that hears, else its words.  Raises `BadPrompt` where nobody has heard them."""
        if self._options.audio_input:
            return part
        if part.transcript is None:
            raise BadPrompt(
                "this model hears only with --llm_audio_input; give the sound's transcript, or choose an --stt."
            )
        return TextPart(part.transcript)


class Unrepeated:
    """Takes the beginning out of a reply that says it again before it goes on; what is another reply stays whole."""

    def __init__(self, beginning: str) -> None:
        self._left = beginning
        self._held = ""

    def feed(self, text: str) -> str:
        """What is new in the next piece."""
        if not self._left:
            return text
        self._held += text
        if self._held.startswith(self._left):
            new = self._held[len(self._left) :]
            self._left = self._held = ""
            return new
        return "" if self._left.startswith(self._held) else self.rest()

    def rest(self) -> str:
        """What was held back and is no repetition."""
        held, self._held, self._left = self._held, "", ""
        return held


def input_audio(pcm: bytes) -> dict[str, Any]:
    """The part of a message, in either of OpenAI's forms, that holds sound: int16 mono 16 kHz."""
    data = base64.b64encode(wav(pcm, STT_RATE_HZ)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def call(name: str, arguments: str) -> LlmToolCall:
    """A call as it came.  Raises `BadCall` where its arguments are no JSON object."""
    text = arguments.strip() or "{}"
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise BadCall(f"the model called {name} with arguments that are no JSON object: {text[:100]!r}")
    return LlmToolCall(name, text)
