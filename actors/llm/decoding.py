"""Steps of a causal language model over the answers that are being decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Literal, Protocol

from actors.backend import Key
from actors.llm.answer import Answer, Segment
from actors.llm.local import SteppedOptions
from actors.llm.prompt import continued
from actors.llm.sampling import Constraint, Scores, TextPieces, next_token
from actors.messages import LlmDone, LlmRequest, LlmText, LlmToolCall

REMEMBERED_TEXTS = 8
"""A prompt is measured, and then encoded."""


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


class ReadBefore(Protocol):
    """What earlier answers have read, for prompts that begin with it."""

    count: int
    """Prompts kept at most."""

    def keep(self, ids: list[int], states: Any, /) -> None: ...
    def longest(self, ids: list[int], /) -> tuple[int, Any]: ...


class Decoder(ABC):
    """A model with the rows it decodes, one after the other; a subclass computes."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        options: SteppedOptions,
        *,
        end_tokens: frozenset[int],
        prefixes: ReadBefore,
        read_tokens: int,
    ) -> None:
        """`read_tokens`: of a prompt, read in one step.  A cancel waits for it, and so do the other answers."""
        self._model = model
        self._tokenizer = tokenizer
        self._remembered = lru_cache(REMEMBERED_TEXTS)(self._encode)
        self._options = options
        self._end_tokens = end_tokens
        self._prefixes = prefixes
        self._read_tokens = read_tokens
        self.rows: list[Row] = []
        """Rows whose prompt has been read, in the batch's order."""
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

    @abstractmethod
    def new_cache(self) -> Any:
        """Keys and values of one row that has read nothing."""

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
        self.rows.append(row)
        return token

    def step(self) -> list[tuple[Row, int]]:
        """The next token of every row that has joined."""
        return [(row, self._choose(row, self._forward([row.ids[-1:]], row.cache)[0])) for row in self.rows]

    def drop(self, rows: list[Row]) -> None:
        """Let `rows` leave; what they have read is kept for prompts that begin with it."""
        self.rows = [row for row in self.rows if row not in rows]

    def _choose(self, row: Row, scores: Scores) -> int:
        constraint = row.constraint
        request = row.request
        return next_token(
            constraint.allow(scores) if constraint else scores,
            row.ids,
            temperature=self._options.temperature if request.temperature is None else request.temperature,
            top_p=self._options.top_p,
            repeat_penalty=1.0 if constraint else self._options.repeat_penalty,
            seed=request.seed,
            position=row.segment.position + row.decoded,
        )

    @abstractmethod
    def _forward(self, ids: list[list[int]], cache: Any, **kwargs: Any) -> Scores:
        """Scores of the token after each row of `ids`, float32 [rows, vocabulary]."""
