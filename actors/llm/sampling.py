"""The next token from a model's scores, and its text without broken characters."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PENALTY_WINDOW_TOKENS = 64
NUCLEUS_TOKENS = 1024
"""top_p looks at no more than this many of the likeliest tokens."""
CONTEXT_TOKENS = 4
"""Tokens decoded in front of a new one: its text can depend on its neighbours (a space that is not written)."""
CHARACTER_TOKENS = 4
"""A character has at most four bytes, so at most four tokens."""
BROKEN = "\ufffd"

Scores = NDArray[np.float32]


def next_token(
    scores: Scores,
    recent: list[int],
    *,
    temperature: float,
    top_p: float,
    repeat_penalty: float,
    seed: int,
    position: int,
) -> int:
    """Choose from `scores`, float32[vocabulary] (minus infinity: forbidden), after `recent` tokens.

    The choice depends on `seed` and `position` (tokens of the answer so far) alone, not on what was drawn before: an
    answer that is resumed draws as it would have.
    """
    if repeat_penalty != 1.0 and recent:
        scores = scores.copy()
        seen = np.unique(np.asarray(recent[-PENALTY_WINDOW_TOKENS:]))
        held = scores[seen]
        scores[seen] = np.where(held > 0, held / repeat_penalty, held * repeat_penalty)
    if temperature <= 0:
        return int(scores.argmax())
    count = min(NUCLEUS_TOKENS, scores.size)
    likeliest = np.argpartition(scores, -count)[-count:]
    likeliest = likeliest[np.argsort(-scores[likeliest], kind="stable")]
    weights = np.exp((scores[likeliest] - scores[likeliest[0]]) / temperature, dtype=np.float64)
    total = float(np.exp((scores - scores[likeliest[0]]) / temperature, dtype=np.float64).sum())
    before = np.concatenate(([0.0], np.cumsum(weights)[:-1])) / total
    nucleus = np.cumsum(weights[before < top_p])
    drawn = random.Random(f"{seed}:{position}").random() * nucleus[-1]
    return int(likeliest[min(int(np.searchsorted(nucleus, drawn, side="right")), nucleus.size - 1)])


class TextPieces:
    """Text of tokens that come one by one."""

    def __init__(self, decode: Callable[[list[int]], str], before: list[int]) -> None:
        """`before`: the tokens in front of the first one."""
        self._decode = decode
        self._context = before[-CONTEXT_TOKENS:]
        self._waiting: list[int] = []

    def push(self, token: int) -> str:
        """The text that `token` adds; empty while it ends inside a character.  What is no character is left out."""
        self._waiting.append(token)
        text = self._decode(self._context + self._waiting)
        if text.endswith(BROKEN) and len(self._waiting) < CHARACTER_TOKENS:
            return ""
        piece = text[len(self._decode(self._context)) :].replace(BROKEN, "")
        self._context = (self._context + self._waiting)[-CONTEXT_TOKENS:]
        self._waiting = []
        return piece


class Constraint:
    """A JSON schema that the tokens have to follow (llguidance)."""

    def __init__(self, tokenizer: Any, schema: dict[str, Any]) -> None:
        """`tokenizer`: an `llguidance.LLTokenizer`.  Raises `ValueError` for a schema it does not know."""
        from llguidance import LLMatcher

        # JSON as models write it: white space where they like could go on for ever.
        grammar = LLMatcher.grammar_from_json_schema(
            schema,
            overrides={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
        )
        self._matcher = LLMatcher(tokenizer, grammar, log_level=0)
        self._raise_error()

    def _raise_error(self) -> None:
        if self._matcher.is_error():
            raise ValueError(
                f"A tool's parameters cannot be followed as a schema: {self._matcher.get_error()}"
            )

    def allow(self, scores: Scores) -> Scores:
        """`scores` with what the schema forbids at minus infinity."""
        bits = np.zeros((scores.size + 31) // 32, dtype=np.int32)
        self._matcher.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
        self._raise_error()
        allowed = np.unpackbits(bits.view(np.uint8), bitorder="little")[: scores.size].astype(bool)
        return np.where(allowed, scores, -np.inf).astype(np.float32)

    def take(self, token: int) -> bool:
        """Go on behind `token`; returns whether the text is complete."""
        self._matcher.consume_token(token)
        return bool(self._matcher.is_stopped())
