"""Causal language models through transformers: answers are decoded together, and join between steps."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from actors.backend import Batch, Capabilities, Key
from actors.llm.answer import Answer
from actors.llm.prompt import BadPrompt, ChatTemplate
from actors.llm.tools import BadToolChoice
from actors.messages import Failed, LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool
from actors.torch_device import dtype_bytes, release, resolve_dtype, set_threads

if TYPE_CHECKING:
    from actors.llm.decoding import Decoder, Row

logger = logging.getLogger(__name__)

WORK_BYTES = 400 << 20
"""torch, transformers and activations, roughly."""
QUANTIZED_WEIGHT_BYTES = {"bnb-4bit": 0.56, "bnb-8bit": 1.06}
"""Bytes of one weight with its share of the scales."""

Result = LlmText | LlmToolCall | LlmDone | Failed


@dataclass(frozen=True)
class TransformersOptions:
    """How a causal language model is loaded and asked."""

    model_name: str = "smollm2-135m-instruct"
    """An asset, a folder, or a model of the Hugging Face hub."""
    context_tokens: int = 2048
    """Tokens of prompt and answer that one request may have."""
    max_batch: int = 4
    """Answers decoded together."""
    prefixes: int = 4
    """Prompts whose keys and values are kept for the next turn of their conversation."""
    temperature: float = 0.2
    """0: always the likeliest token.  A request may ask for another."""
    top_p: float = 0.9
    """Sample from the likeliest tokens that together have this probability."""
    repeat_penalty: float = 1.1
    """Divides the score of tokens among the last 64; 1.0: off.  Calls are decoded without."""
    max_tokens: int = 512
    """Longest answer, in tokens, where the request states none."""
    quantization: Literal["none", "bnb-4bit", "bnb-8bit"] = "none"
    """Load the weights quantised by bitsandbytes."""
    attn_implementation: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    """Attention kernel; auto: transformers' choice."""
    thinking: bool = False
    """Whether models that can are to think before they answer."""

    def __post_init__(self) -> None:
        for name, least in (("context_tokens", 64), ("max_batch", 1), ("prefixes", 0), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least {least}.")
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.repeat_penalty <= 0:
            raise ValueError("temperature must be 0 or more, top_p in (0, 1], repeat_penalty above 0.")
        known = {
            "quantization": ("none", *QUANTIZED_WEIGHT_BYTES),
            "attn_implementation": ("auto", "sdpa", "eager", "flash_attention_2"),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} {getattr(self, name)!r} is not known; choose {', '.join(values)}.")


class Transformers:
    """A causal language model."""

    def __init__(self, options: TransformersOptions) -> None:
        self._options = options
        self._device = "cpu"
        self._decoder: Decoder
        self._template: ChatTemplate

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            devices=("cuda", "mps", "cpu"),
            streams=True,
            continuous=True,
            max_batch=self._options.max_batch,
            resume="exact",
            tools=True,
        )

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load onto `device`: "cpu", "cuda:0", "mps", or "cuda:0+cuda:1" to spread the layers over both."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from actors.assets import resolve

        set_threads(threads)
        path = resolve(self._options.model_name)
        tokenizer = AutoTokenizer.from_pretrained(path)
        kwargs = self._loading(device, resolve_dtype(device.partition("+")[0], dtype))
        model = AutoModelForCausalLM.from_pretrained(path, **kwargs)
        if "device_map" not in kwargs:
            model = model.to(device)
        self.use(model, tokenizer, device)

    def use(self, model: Any, tokenizer: Any, device: str = "cpu") -> None:
        """Work with a model and tokenizer that are loaded already."""
        from actors.llm.decoding import Decoder

        self._device = device
        options = self._options
        self._decoder = Decoder(
            model.eval(),
            tokenizer,
            prefixes=options.prefixes,
            temperature=options.temperature,
            top_p=options.top_p,
            repeat_penalty=options.repeat_penalty,
        )
        trained = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._context_tokens = min(options.context_tokens, trained or options.context_tokens)
        if self._context_tokens < options.context_tokens:
            logger.warning("context_tokens lowered to %d, which the model was trained for", trained)
        self._template = ChatTemplate(
            tokenizer.chat_template,
            bos=tokenizer.bos_token or "",
            eos=tokenizer.eos_token or "",
            control_tokens=tokenizer.all_special_tokens,
            thinking=options.thinking,
        )

    def _loading(self, device: str, dtype: str) -> dict[str, Any]:
        import torch

        kwargs: dict[str, Any] = {"dtype": getattr(torch, dtype)}
        if self._options.attn_implementation != "auto":
            kwargs["attn_implementation"] = self._options.attn_implementation
        quantization = self._options.quantization
        if quantization != "none":
            from transformers import BitsAndBytesConfig

            four = quantization == "bnb-4bit"
            kwargs["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=four, load_in_8bit=not four, bnb_4bit_compute_dtype=getattr(torch, dtype)
            )
            kwargs["device_map"] = {"": device}
        if "+" in device:
            indices = [int(name.partition(":")[2]) for name in device.split("+")]
            kwargs["device_map"] = "auto"
            kwargs["max_memory"] = {index: int(torch.cuda.mem_get_info(index)[0] * 0.9) for index in indices}
        return kwargs

    def warmup(self) -> None:
        """Run prompt, decoding alone and together, a resumed answer and a forced call once."""
        question = [Message("user", [TextPart("Say hello.")])]
        tool = Tool("greet", "Greets.", {"type": "object", "properties": {"loud": {"type": "boolean"}}})
        requests = [
            LlmRequest(question, max_tokens=4),
            LlmRequest(question, max_tokens=4, delivered="Hello", delivered_tokens=1),
            LlmRequest(question, tools=[tool], tool_choice="function:greet", max_tokens=32),
        ]
        for _, result in self.generate(Batch(enumerate(requests))):
            if isinstance(result, Failed):
                raise RuntimeError(f"LLM warm-up failed: {result.message}")

    def memory_bytes(self, dtype: str) -> int:
        """Weights, keys and values of the batch and of kept prompts, and work space; 0 while not on this machine."""
        from actors.assets import here

        folder = here(self._options.model_name)
        if folder is None or not (folder / "config.json").is_file():
            return 0
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        number_bytes = dtype_bytes("float32" if dtype == "auto" else dtype)
        stored_bytes = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
        weights = stored_bytes / dtype_bytes(
            str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
        )
        weight_bytes = QUANTIZED_WEIGHT_BYTES.get(self._options.quantization, number_bytes)
        text = config.get("text_config", config)
        heads = text.get("num_attention_heads", 1)
        head = text.get("head_dim") or text.get("hidden_size", 0) // heads
        token_bytes: int = (
            2
            * text.get("num_hidden_layers", 0)
            * text.get("num_key_value_heads", heads)
            * head
            * number_bytes
        )
        kept = self._options.context_tokens * (self._options.max_batch + self._options.prefixes)
        return int(weights * weight_bytes) + token_bytes * kept + WORK_BYTES

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
        answer = Answer(
            request, self._template, self._decoder.count, self._context_tokens, self._options.max_tokens
        )
        if answer.fitted.dropped or answer.fitted.cut:
            logger.info(
                "prompt over %d tokens: %d oldest messages dropped, %d cut",
                self._context_tokens,
                answer.fitted.dropped,
                answer.fitted.cut,
            )
        return answer
