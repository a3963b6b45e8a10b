import numpy as np

from actors.messages import Word
from actors.stt import word_times

PIECES = {1: " Hello", 2: ",", 3: " wor", 4: "ld", 5: "!"}


def decode(tokens: list[int]) -> str:
    return "".join(PIECES[token] for token in tokens)


def looking(positions: list[int], columns: int) -> np.ndarray:
    """Attention of one head whose row i looks from positions[i] to the next row's."""
    attention = np.full((1, len(positions), columns), 0.001, np.float32)
    for row, begin in enumerate(positions):
        end = positions[row + 1] if row + 1 < len(positions) else columns
        attention[0, row, begin:end] = 1.0
    return attention


def test_words_begin_and_end_where_the_decoder_looked() -> None:
    attention = looking([0, 20, 25, 40, 60, 70], 100)
    assert word_times.words(attention, [1, 2, 3, 4, 5], decode, spaced=True, start_ms=1_000) == [
        Word("Hello,", 1_000, 1_500),
        Word("world!", 1_500, 2_400),
    ]


def test_without_spaces_each_character_is_a_word() -> None:
    pieces = {1: "你", 2: "\ufffd", 3: "好", 4: "。"}
    pairs: dict[tuple[int, ...], str] = {(2, 3): "好"}

    def decode_chinese(tokens: list[int]) -> str:
        return pairs.get(tuple(tokens), "".join(pieces[token] for token in tokens))

    assert word_times.split([1, 2, 3, 4], decode_chinese, spaced=False) == [("你", 1), ("好。", 3)]


def test_no_tokens_are_no_words() -> None:
    assert word_times.words(looking([0], 10), [], decode, spaced=True) == []
