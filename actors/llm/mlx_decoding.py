"""Steps of an MLX language model: the answers' rows are decoded one after the other, in turns."""

from __future__ import annotations

from typing import Any

from actors.llm.decoding import Decoder, Row
from actors.llm.local import SteppedOptions
from actors.llm.sampling import Scores

READ_TOKENS = 512
"""Prompt tokens read in one step."""


class MlxCache:
    """Keys and values of one row, in MLX's own caches, one a layer."""

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers
        self.length = 0

    def get_seq_length(self) -> int:
        return self.length


class MlxPrefixes:
    """What earlier answers have read, for prompts that begin with it.  A cache that is taken is no longer kept."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._kept: list[tuple[list[int], MlxCache]] = []

    def keep(self, ids: list[int], cache: MlxCache) -> None:
        if self.count:
            self._kept = [*self._kept, (ids, cache)][-self.count :]

    def longest(self, ids: list[int]) -> tuple[int, MlxCache | None]:
        """How many of `ids` are known, all but the last at most, and the cache that holds just these."""
        from mlx_lm.models.cache import can_trim_prompt_cache, trim_prompt_cache

        best, known = None, 0
        for index, (kept, cache) in enumerate(self._kept):
            same = next(
                (at for at, pair in enumerate(zip(kept, ids, strict=False)) if pair[0] != pair[1]),
                min(len(kept), len(ids)),
            )
            same = min(same, len(ids) - 1)
            if same > known and (same == cache.length or can_trim_prompt_cache(cache.layers)):
                best, known = index, same
        if best is None:
            return 0, None
        _, cache = self._kept.pop(best)
        trim_prompt_cache(cache.layers, cache.length - known)
        cache.length = known
        return known, cache


class MlxDecoder(Decoder):
    """An MLX model with the rows it decodes in turns."""

    def __init__(
        self, model: Any, tokenizer: Any, options: SteppedOptions, end_tokens: frozenset[int]
    ) -> None:
        super().__init__(
            model,
            tokenizer,
            options,
            end_tokens=end_tokens,
            prefixes=MlxPrefixes(options.prefixes),
            read_tokens=READ_TOKENS,
        )

    def new_cache(self) -> MlxCache:
        from mlx_lm.models.cache import make_prompt_cache

        return MlxCache(make_prompt_cache(self._model))

    def drop(self, rows: list[Row]) -> None:
        for row in rows:
            if row in self.rows:
                self._prefixes.keep(row.ids[: row.cache.length], row.cache)
        super().drop(rows)

    def _forward(self, ids: list[list[int]], cache: Any, **kwargs: Any) -> Scores:
        import mlx.core as mx
        import numpy as np

        logits = self._model(mx.array(ids), cache=cache.layers)
        cache.length += len(ids[0])
        return np.array(logits[:, -1].astype(mx.float32))
