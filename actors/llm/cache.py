"""Keys and values of the answers that a torch model decodes together, and of prompts it has read before.

Imports torch: a backend imports this module when it loads.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

ROOM_TOKENS = 128
"""A layer grows by at least so much at a time, so that a step does not copy all that was kept."""
LEAST_REUSE_TOKENS = 8

LayerStates = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer, each [rows, heads, tokens, head size]."""


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """One layer's keys and values in a buffer with room for the next tokens."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [rows, heads, new tokens, head size]; returns all keys and all values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held = self.get_seq_length()
        needed = held + key_states.shape[-2]
        if self._buffers is None or self._buffers[0].shape[-2] < needed:
            self._buffers = (
                self._roomier(self.keys, key_states, held, needed),
                self._roomier(self.values, value_states, held, needed),
            )
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[..., held:needed, :] = new
        self.keys, self.values = (buffer[..., :needed, :] for buffer in self._buffers)
        return self.keys, self.values

    @staticmethod
    def _roomier(kept: torch.Tensor, new: torch.Tensor, held: int, needed: int) -> torch.Tensor:
        buffer = new.new_empty((*new.shape[:-2], needed + ROOM_TOKENS, new.shape[-1]))
        if held:
            buffer[..., :held, :] = kept
        return buffer

    def assign(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Begin with these."""
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values


def new_cache(states: LayerStates | None = None) -> Cache:
    """A cache that holds `states`, or nothing."""
    if states is None:
        return Cache(layer_class_to_replicate=RoomyLayer)
    layers = []
    for keys, values in states:
        layer = RoomyLayer()
        layer.assign(keys, values)
        layers.append(layer)
    return Cache(layers=layers)


def states_of(cache: Cache) -> LayerStates:
    return [(layer.keys, layer.values) for layer in cache.layers]


class RowCache:
    """The rows of one batch, padded on the left to the longest."""

    def __init__(self) -> None:
        self.cache = new_cache()
        self.lengths: list[int] = []
        """Tokens held of each row."""

    @property
    def width(self) -> int:
        """Tokens of the longest row."""
        return max(self.lengths, default=0)

    def join(self, cache: Cache) -> None:
        """Add the one row of `cache` behind the others."""
        states = states_of(cache)
        length = states[0][0].shape[-2]
        if self.lengths:
            width = max(self.width, length)
            pairs = zip(states_of(self.cache), states, strict=True)
            states = [
                (
                    torch.cat([_padded(held[0], width), _padded(new[0], width)]),
                    torch.cat([_padded(held[1], width), _padded(new[1], width)]),
                )
                for held, new in pairs
            ]
            self.cache = new_cache(states)
        else:
            self.cache = cache
        self.lengths.append(length)

    def leave(self, rows: list[int]) -> None:
        """Drop `rows`."""
        kept = [row for row in range(len(self.lengths)) if row not in rows]
        lengths = [self.lengths[row] for row in kept]
        if kept:
            start = self.width - max(lengths)
            self.cache = new_cache(
                [(keys[kept, :, start:], values[kept, :, start:]) for keys, values in states_of(self.cache)]
            )
        else:
            self.cache = new_cache()
        self.lengths = lengths

    def row(self, row: int) -> LayerStates:
        """A copy of one row's states, without padding."""
        start = self.width - self.lengths[row]
        return [
            (keys[row : row + 1, :, start:].clone(), values[row : row + 1, :, start:].clone())
            for keys, values in states_of(self.cache)
        ]

    def mask(self, new: int) -> torch.Tensor | None:
        """Attention mask [rows, width + new], 1 for tokens; None when no row is padded."""
        width = self.width
        if all(length == width for length in self.lengths):
            return None
        mask = torch.ones((len(self.lengths), width + new), dtype=torch.long)
        for row, length in enumerate(self.lengths):
            mask[row, : width - length] = 0
        return mask


def _padded(states: torch.Tensor, width: int) -> torch.Tensor:
    missing = width - states.shape[-2]
    return torch.nn.functional.pad(states, (0, 0, missing, 0)) if missing else states


@dataclass(frozen=True)
class _Known:
    ids: list[int]
    states: LayerStates


class Prefixes:
    """What was read for the last few answers: the next turn of a conversation begins with it."""

    def __init__(self, count: int) -> None:
        self.count = count
        """Prompts kept at most."""
        self._known: deque[_Known] = deque(maxlen=count)

    def keep(self, ids: list[int], states: LayerStates) -> None:
        """Remember that `ids` have been read; what is a beginning of them goes."""
        kept = [known for known in self._known if ids[: len(known.ids)] != known.ids]
        self._known = deque([*kept, _Known(ids, states)], maxlen=self._known.maxlen)

    def longest(self, ids: list[int]) -> tuple[int, Cache | None]:
        """How many tokens at the start of `ids` have been read before, and a cache of just these.

        The last token is never counted: reading it gives the first prediction.
        """
        best, source = 0, None
        for known in self._known:
            length = _common(known.ids, ids[:-1])
            if length > best:
                best, source = length, known
        if source is None or best < LEAST_REUSE_TOKENS:
            return 0, None
        return best, new_cache([(k[..., :best, :], v[..., :best, :]) for k, v in source.states])


def _common(left: list[int], right: list[int]) -> int:
    length = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        length += 1
    return length
