"""Steps of a causal language model over the answers that are being decoded.

Imports torch: a backend imports this module when it loads.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, Literal

import torch
from transformers.cache_utils import DynamicCache

from actors.backend import Key
from actors.llm.answer import Answer, Segment
from actors.llm.cache import Prefixes, RowCache, new_cache
from actors.llm.prompt import continued
from actors.llm.sampling import Constraint, Scores, TextPieces, next_token
from actors.messages import LlmDone, LlmRequest, LlmText, LlmToolCall

REMEMBERED_TEXTS = 8
"""A prompt is measured, and then encoded."""
CPU_READ_TOKENS = 64
GPU_READ_TOKENS = 1024
"""Prompt tokens read in one step.  A cancel waits for the step that runs, and so do the other answers."""
MERGEABLE_LAYERS = {"full_attention", "sliding_attention"}
"""Layers whose states are keys and values by token; others (recurrent ones) are decoded row by row."""


class Row:
    """A segment of an answer that is being decoded."""

    def __init__(
        self,
        key: Key,
        request: LlmRequest,
        answer: Answer,
        segment: Segment,
        ids: list[int],
        cache: Any,
        pieces: TextPieces,
        end_tokens: frozenset[int],
        constraint: Constraint | None,
    ) -> None:
        self.key = key
        self.request = request
        self.answer = answer
        self.segment = segment
        self.ids = ids
        """Prompt and what was decoded; of these the cache holds all but the last, once the prompt is read."""
        self.cache = cache
        self.read = cache.get_seq_length()
        """Tokens of `ids` that the cache holds."""
        self.decoded = 0
        self.ended = False
        self.constraint = constraint
        self._pieces = pieces
        self._end_tokens = end_tokens

    def push(self, token: int) -> list[LlmText | LlmToolCall | LlmDone]:
        """Go on with `token`; the results it makes.  Sets `ended` when this segment is complete."""
        self.ids.append(token)
        self.decoded += 1
        if token in self._end_tokens:
            return [*self.answer.feed("", 1), *self._end("stop")]
        complete = self.constraint.take(token) if self.constraint else False
        results: list[LlmText | LlmToolCall | LlmDone] = [*self.answer.feed(self._pieces.push(token), 1)]
        if complete or not self.answer.wants_more:
            results += self._end("stop")
        elif self.decoded >= self.segment.max_tokens:
            results += self._end("length")
        return results

    def _end(self, reason: Literal["stop", "length"]) -> list[LlmText | LlmToolCall | LlmDone]:
        self.ended = True
        results: list[LlmText | LlmToolCall | LlmDone] = [*self.answer.end_segment(reason)]
        if self.answer.done is not None:
            results.append(self.answer.done)
        return results


class Decoder:
    """A model with the rows it decodes together."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        prefixes: int,
        temperature: float,
        top_p: float,
        repeat_penalty: float,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._remembered = lru_cache(REMEMBERED_TEXTS)(self._encode)
        self._temperature, self._top_p, self._repeat_penalty = temperature, top_p, repeat_penalty
        self._device = model.get_input_embeddings().weight.device
        arguments = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in arguments else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in arguments else {}
        self._read_tokens = CPU_READ_TOKENS if self._device.type == "cpu" else GPU_READ_TOKENS
        layers = getattr(model.config.get_text_config(), "layer_types", None) or ["full_attention"]
        self._mergeable = set(layers) <= MERGEABLE_LAYERS and not getattr(model, "_is_stateful", False)
        self._prefixes = Prefixes(prefixes if self._mergeable else 0)
        self._batch = RowCache()
        self.rows: list[Row] = []
        """Rows whose prompt has been read, in the batch's order."""
        self._end_tokens = _end_tokens(model, tokenizer)
        self._grammar_tokenizer: Any = None

    def encode(self, text: str) -> list[int]:
        return list(self._remembered(text))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def _decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def begin(self, key: Key, request: LlmRequest, answer: Answer) -> Row:
        """A row for the next segment of `answer`; raises `ValueError` for a schema that cannot be followed."""
        segment = answer.segment()
        prompt = self.encode(segment.prompt)
        ids = continued(prompt, segment.prefix, segment.prompt, self.encode)
        known, cache = self._prefixes.longest(ids)
        answer.began(len(prompt), known)
        if cache is None:
            cache = self.new_cache()
        constraint = self._constraint(segment.schema) if segment.schema is not None else None
        pieces = TextPieces(self._decode, ids)
        return Row(key, request, answer, segment, ids, cache, pieces, self._end_tokens, constraint)

    def new_cache(self) -> Any:
        """Keys and values of one row that has read nothing."""
        return new_cache() if self._mergeable else DynamicCache(config=self._model.config)

    def _constraint(self, schema: dict[str, Any]) -> Constraint:
        if self._grammar_tokenizer is None:
            from llguidance.hf import from_tokenizer

            self._grammar_tokenizer = from_tokenizer(self._tokenizer, eos_token=sorted(self._end_tokens))
        return Constraint(self._grammar_tokenizer, schema)

    def read(self, row: Row) -> int | None:
        """Read the next part of the row's prompt; once it is all read, the first token, and the row has joined."""
        end = min(row.read + self._read_tokens, len(row.ids))
        scores = self._forward([row.ids[row.read : end]], row.cache)
        row.read = end
        if end < len(row.ids):
            return None
        token = self._choose(row, scores[0])
        if self._mergeable:
            self._batch.join(row.cache)
        self.rows.append(row)
        return token

    def step(self) -> list[tuple[Row, int]]:
        """The next token of every row that has joined."""
        if not self.rows:
            return []
        if not self._mergeable:
            return [
                (row, self._choose(row, self._forward([row.ids[-1:]], row.cache)[0])) for row in self.rows
            ]
        mask = self._batch.mask(1)
        padding: dict[str, torch.Tensor] = {}
        if mask is not None:
            positions = torch.tensor([[length] for length in self._batch.lengths], device=self._device)
            padding = {"attention_mask": mask.to(self._device), "position_ids": positions}
        scores = self._forward([row.ids[-1:] for row in self.rows], self._batch.cache, **padding)
        self._batch.lengths = [length + 1 for length in self._batch.lengths]
        return [(row, self._choose(row, scores[index])) for index, row in enumerate(self.rows)]

    def drop(self, rows: list[Row]) -> None:
        """Let `rows` leave; what they have read is kept for prompts that begin with it."""
        indices = [index for index, row in enumerate(self.rows) if row in rows]
        if not indices:
            return
        if self._mergeable:
            for index in indices if self._prefixes.count else []:
                self._prefixes.keep(
                    self.rows[index].ids[: self._batch.lengths[index]], self._batch.row(index)
                )
            self._batch.leave(indices)
        self.rows = [row for row in self.rows if row not in rows]

    def _choose(self, row: Row, scores: Scores) -> int:
        constraint = row.constraint
        request = row.request
        return next_token(
            constraint.allow(scores) if constraint else scores,
            row.ids,
            temperature=self._temperature if request.temperature is None else request.temperature,
            top_p=self._top_p,
            repeat_penalty=1.0 if constraint else self._repeat_penalty,
            seed=request.seed,
            position=row.segment.position + row.decoded,
        )

    def _forward(self, ids: list[list[int]], cache: Any, **kwargs: Any) -> Scores:
        """Scores of the token after each row of `ids`, float32 [rows, vocabulary]."""
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor(ids, device=self._device),
                use_cache=True,
                **{self._cache_argument: cache},
                **self._last_only,
                **kwargs,
            )
        scores: Scores = output.logits[:, -1].float().cpu().numpy()
        return scores


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end an answer, by the model's generation settings and the tokenizer."""
    stated = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    tokens = stated if isinstance(stated, list) else [stated]
    return frozenset(int(token) for token in (*tokens, tokenizer.eos_token_id) if token is not None)
