"""When each word was said, from where the decoder's attention looked while it wrote the word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from actors.messages import Word

POSITION_MS = 20
MEDIAN_POSITIONS = 7
UNFINISHED = "\ufffd"
"""What decoding part of a character gives."""


def words(
    attention: NDArray[np.float32],
    tokens: Sequence[int],
    decode: Callable[[list[int]], str],
    spaced: bool,
    start_ms: int = 0,
) -> list[Word]:
    """The words of `tokens` with their times.

    `attention` is [heads, tokens + 1, positions of 20 ms], its last row the end's; `spaced`: whether the language puts
    spaces between words (else each character-like token is a word).  `start_ms` is added to all times.
    """
    if not tokens:
        return []
    begins = token_starts(attention)
    groups = split(tokens, decode, spaced)
    found = []
    index = 0
    for text, count in groups:
        begin, end = begins[index], begins[index + count]
        index += count
        found.append(
            Word(text.strip(), start_ms + begin * POSITION_MS, start_ms + max(end, begin + 1) * POSITION_MS)
        )
    return found


def token_starts(attention: NDArray[np.float32]) -> list[int]:
    """The position at which each row of `attention` [heads, rows, positions] begins, by dynamic time warping."""
    spread = attention.std(axis=1, keepdims=True)
    normalised = (attention - attention.mean(axis=1, keepdims=True)) / np.maximum(spread, 1e-6)
    half = MEDIAN_POSITIONS // 2
    padded = np.pad(normalised, ((0, 0), (0, 0), (half, half)), mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_POSITIONS, axis=2)
    return _warp(-np.median(views, axis=-1).mean(axis=0))


def _warp(cost: NDArray[np.floating]) -> list[int]:
    """First column of each row on the cheapest path from the top left of `cost` to the bottom right."""
    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    for row in range(1, rows + 1):
        above = np.minimum(total[row - 1, :-1], total[row - 1, 1:])
        left = np.inf
        for column in range(1, columns + 1):
            left = cost[row - 1, column - 1] + min(left, above[column - 1])
            total[row, column] = left
    starts = [0] * rows
    row, column = rows, columns
    while row > 0 and column > 0:
        starts[row - 1] = column - 1
        steps = (total[row - 1, column - 1], total[row - 1, column], total[row, column - 1])
        best = int(np.argmin(steps))
        row -= best != 2
        column -= best != 1
    return starts


def split(tokens: Sequence[int], decode: Callable[[list[int]], str], spaced: bool) -> list[tuple[str, int]]:
    """`tokens` as words: (text, number of tokens).  Punctuation belongs to the word before it."""
    found: list[tuple[str, int]] = []
    pending: list[int] = []
    for token in tokens:
        pending.append(token)
        text = decode(pending)
        if UNFINISHED in text:
            continue
        begins = (text.startswith(" ") or not spaced) and any(letter.isalnum() for letter in text)
        if begins or not found:
            found.append((text, len(pending)))
        else:
            found[-1] = (found[-1][0] + text, found[-1][1] + len(pending))
        pending = []
    if pending and found:
        found[-1] = (found[-1][0], found[-1][1] + len(pending))
    return found
