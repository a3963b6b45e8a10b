"""Steps of a torch language model: the answers' rows are decoded together where their caches can be merged.

Imports torch: a backend imports this module when it loads.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers.cache_utils import DynamicCache

from actors.llm.cache import Prefixes, RowCache, new_cache
from actors.llm.decoding import Decoder, Row
from actors.llm.local import SteppedOptions
from actors.llm.sampling import Scores

CPU_READ_TOKENS = 64
GPU_READ_TOKENS = 1024
"""Prompt tokens read in one step.  A cancel waits for the step that runs, and so do the other answers."""
MERGEABLE_LAYERS = {"full_attention", "sliding_attention"}
"""Layers whose states are keys and values by token; others (recurrent ones) are decoded row by row."""


class TorchDecoder(Decoder):
    """A transformers model with the rows it decodes together."""

    def __init__(self, model: Any, tokenizer: Any, options: SteppedOptions) -> None:
        self._device = model.get_input_embeddings().weight.device
        arguments = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in arguments else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in arguments else {}
        layers = getattr(model.config.get_text_config(), "layer_types", None) or ["full_attention"]
        self._mergeable = set(layers) <= MERGEABLE_LAYERS and not getattr(model, "_is_stateful", False)
        self._batch = RowCache()
        super().__init__(
            model,
            tokenizer,
            options,
            end_tokens=_end_tokens(model, tokenizer),
            prefixes=Prefixes(options.prefixes if self._mergeable else 0),
            read_tokens=CPU_READ_TOKENS if self._device.type == "cpu" else GPU_READ_TOKENS,
        )

    def new_cache(self) -> Any:
        return new_cache() if self._mergeable else DynamicCache(config=self._model.config)

    def read(self, row: Row) -> int | None:
        token = super().read(row)
        if token is not None and self._mergeable:
            self._batch.join(row.cache)
        return token

    def step(self) -> list[tuple[Row, int]]:
        if not self.rows or not self._mergeable:
            return super().step()
        mask = self._batch.mask(1)
        padding: dict[str, torch.Tensor] = {}
        if mask is not None:
            positions = torch.tensor([[length] for length in self._batch.lengths], device=self._device)
            padding = {"attention_mask": mask.to(self._device), "position_ids": positions}
        scores = self._forward([row.ids[-1:] for row in self.rows], self._batch.cache, **padding)
        self._batch.lengths = [length + 1 for length in self._batch.lengths]
        return [(row, self._choose(row, scores[index])) for index, row in enumerate(self.rows)]

    def drop(self, rows: list[Row]) -> None:
        indices = [index for index, row in enumerate(self.rows) if row in rows]
        if indices and self._mergeable:
            for index in indices if self._prefixes.count else []:
                self._prefixes.keep(
                    self.rows[index].ids[: self._batch.lengths[index]], self._batch.row(index)
                )
            self._batch.leave(indices)
        super().drop(rows)

    def _forward(self, ids: list[list[int]], cache: Any, **kwargs: Any) -> Scores:
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
