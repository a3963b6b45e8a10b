"""What language models on this machine share: options, warm-up, and answering step by step."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from actors.backend import Batch, Capabilities, Key
from actors.batch import warm_up
from actors.llm.answer import Answer
from actors.llm.prompt import BadPrompt, ChatTemplate
from actors.llm.tools import BadToolChoice
from actors.messages import Failed, LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool
from actors.torch_device import release

if TYPE_CHECKING:
    from actors.llm.decoding import Decoder, Row

logger = logging.getLogger(__name__)
Result = LlmText | LlmToolCall | LlmDone | Failed
LEAST = {"context_tokens": 64, "max_batch": 1, "slots": 1, "prefixes": 0, "max_tokens": 1, "gpu_layers": -1}


@dataclass(frozen=True)
class LocalOptions:
    """How a language model is loaded and asked."""

    model_name: str
    context_tokens: int = 2048
    """Tokens of prompt and answer that one request may have."""
    temperature: float = 0.2
    """0: always the likeliest token.  A request may ask for another."""
    top_p: float = 0.9
    """Sample from the likeliest tokens that together have this probability."""
    repeat_penalty: float = 1.1
    """Divides the score of tokens among the last 64; 1.0: off.  Calls are decoded without."""
    max_tokens: int = 512
    """Longest answer, in tokens, where the request states none."""
    thinking: bool = False
    """Whether models that can are to think before they answer."""

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            if getattr(self, name, least) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least {least}.")
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.repeat_penalty <= 0:
            raise ValueError("temperature must be 0 or more, top_p in (0, 1], repeat_penalty above 0.")


@dataclass(frozen=True)
class SteppedOptions(LocalOptions):
    """Options of a model that is decoded token by token here."""

    max_batch: int = 4
    """Answers decoded at once."""
    prefixes: int = 4
    """Prompts whose keys and values are kept for the next turn of their conversation."""


def warm_up_requests() -> list[LlmRequest]:
    """A prompt, a resumed answer and a forced call."""
    question = [Message("user", [TextPart("Say hello.")])]
    tool = Tool("greet", "Greets.", {"type": "object", "properties": {"loud": {"type": "boolean"}}})
    return [
        LlmRequest(question, max_tokens=4),
        LlmRequest(question, max_tokens=4, delivered="Hello", delivered_tokens=1),
        LlmRequest(question, tools=[tool], tool_choice="function:greet", max_tokens=32),
    ]


def trained_for(asked: int, trained: int | None) -> int:
    """`asked` context tokens, or as many as the model was trained for (None: not told) where that is fewer."""
    if not trained or trained >= asked:
        return asked
    logger.warning("context_tokens lowered to %d, which the model was trained for", trained)
    return trained


class Stepped:
    """A causal language model whose answers are decoded by a `Decoder`."""

    devices: ClassVar[tuple[str, ...]]

    def __init__(self, options: SteppedOptions) -> None:
        self._options = options
        self._device = "cpu"
        self._decoder: Decoder
        self._template: ChatTemplate

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            devices=self.devices,
            streams=True,
            continuous=True,
            max_batch=self._options.max_batch,
            resume="exact",
            tools=True,
        )

    def _install(self, decoder: Decoder, tokenizer: Any, trained_tokens: int | None) -> None:
        """Answer by `decoder` and the chat template of a transformers tokenizer."""
        self._decoder = decoder
        self._context_tokens = trained_for(self._options.context_tokens, trained_tokens)
        self._template = ChatTemplate(
            tokenizer.chat_template,
            bos=tokenizer.bos_token or "",
            eos=tokenizer.eos_token or "",
            control_tokens=tokenizer.all_special_tokens,
            thinking=self._options.thinking,
        )

    def warmup(self) -> None:
        """Run prompt, decoding alone and together, a resumed answer and a forced call once."""
        warm_up(self.generate, *warm_up_requests())

    def _here(self) -> tuple[Path, dict[str, Any]] | None:
        """The model's folder and its config.json, if it is on this machine."""
        from actors import assets

        folder = assets.here(self._options.model_name)
        if folder is None or not (folder / "config.json").is_file():
            return None
        return folder, json.loads((folder / "config.json").read_text("utf-8"))

    def _cache_bytes(self, config: dict[str, Any], number_bytes: int) -> int:
        """Keys and values of the batch and of kept prompts, by the model's config.json."""
        text = config.get("text_config", config)
        heads = text.get("num_attention_heads", 1)
        head = text.get("head_dim") or text.get("hidden_size", 0) // heads
        layers = text.get("num_hidden_layers", 0) - (text.get("layer_types") or []).count("linear_attention")
        token_bytes: int = 2 * layers * text.get("num_key_value_heads", heads) * head * number_bytes
        options = self._options
        return token_bytes * options.context_tokens * (options.max_batch + options.prefixes)

    def generate(self, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, Result]]:
        """Answer requests; others may join between steps while there is room."""
        reading: list[Row] = []
        decoder = self._decoder
        try:
            while True:
                room = self._options.max_batch - len(reading) - len(decoder.rows)
                for key, request in batch.take(room) if room > 0 else []:
                    try:
                        answer = self._answer(request)
                        if answer.done:
                            yield key, answer.done
                            continue
                        reading.append(decoder.begin(key, request, answer))
                    except (BadPrompt, BadToolChoice, ValueError) as error:
                        yield key, Failed(f"LLM: {error}")
                reading = [row for row in reading if not batch.cancelled(row.key)]
                decoder.drop([row for row in decoder.rows if batch.cancelled(row.key)])
                if not reading and not decoder.rows:
                    return
                moved = decoder.step()
                if reading and (token := decoder.read(reading[0])) is not None:
                    moved.append((reading.pop(0), token))
                for row, token in moved:
                    for result in row.push(token):
                        if not batch.cancelled(row.key):
                            yield row.key, result
                ended = [row for row, _ in moved if row.ended]
                decoder.drop(ended)
                for row in ended:
                    if row.answer.done is None and not batch.cancelled(row.key):
                        reading.insert(0, decoder.begin(row.key, row.request, row.answer))
        finally:
            decoder.drop(list(decoder.rows))
            release(self._device)

    def _answer(self, request: LlmRequest) -> Answer:
        return Answer(
            request, self._template, self._decoder.count, self._context_tokens, self._options.max_tokens
        )
