from collections.abc import Iterator

import pytest
import torch

from actors.stt.network import Network, loops
from tests.actors.stt.tiny_whisper import (
    EN,
    EOT,
    NO_SPEECH,
    NO_TIMESTAMPS,
    PREVIOUS,
    SOT,
    TRANSCRIBE,
    VOCABULARY,
    model,
)

PROMPT = [SOT, EN, TRANSCRIBE, NO_TIMESTAMPS]


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(model(), EOT, VOCABULARY.suppress, VOCABULARY.begin_suppress)


def mel(rows: int, frames: int) -> torch.Tensor:
    return torch.randn(rows, 80, frames, generator=torch.Generator().manual_seed(1))


def never(row: int) -> bool:
    return False


def test_the_full_window_is_encoded_as_the_model_does(network: Network) -> None:
    features = mel(2, 3000)
    expected = network.model.model.encoder(features).last_hidden_state
    torch.testing.assert_close(network.encode(features), expected, atol=1e-4, rtol=1e-4)


def test_a_shorter_window_has_a_position_each_20_ms(network: Network) -> None:
    assert network.encode(mel(1, 1000)).shape == (1, 500, 16)


def test_greedy_tokens_are_the_models_own(network: Network) -> None:
    hidden = network.encode(mel(1, 3000))
    (found,) = network.greedy(hidden, [PROMPT], [12], SOT, NO_SPEECH, never)
    ids = list(PROMPT)
    for index, token in enumerate(found.tokens):
        logits = network.model(decoder_input_ids=torch.tensor([ids]), encoder_outputs=(hidden,)).logits[0, -1]
        logits[[3, *range(EOT + 1, 64)]] = -torch.inf
        if index == 0:
            logits[[4, EOT]] = -torch.inf
        assert token == int(logits.argmax())
        ids.append(token)
    assert found.tokens


def test_batched_rows_decode_as_they_do_alone(network: Network) -> None:
    hidden = network.encode(mel(4, 1000))
    limits = [3, 9, 5, 12]
    together = network.greedy(hidden, [PROMPT] * 4, limits, SOT, NO_SPEECH, never)
    for row, found in enumerate(together):
        (alone,) = network.greedy(hidden[row : row + 1], [PROMPT], [limits[row]], SOT, NO_SPEECH, never)
        assert (found.tokens, found.ended) == (alone.tokens, alone.ended)
        assert found.logprob == pytest.approx(alone.logprob, abs=1e-4)
        assert found.no_speech == pytest.approx(alone.no_speech, abs=1e-4)


def test_a_cancelled_row_leaves_at_the_next_token(network: Network) -> None:
    hidden = network.encode(mel(2, 1000))
    asked: list[int] = []

    def cancelled(row: int) -> bool:
        asked.append(row)
        return row == 0 and asked.count(0) >= 3

    first, second = network.greedy(hidden, [PROMPT] * 2, [10, 10], SOT, NO_SPEECH, cancelled)
    assert first.ended == "cancelled" and len(first.tokens) == 3
    assert second.ended != "cancelled" and len(second.tokens) > 3


def test_scoring_chosen_tokens_gives_what_greedy_saw(network: Network) -> None:
    hidden = network.encode(mel(1, 1000))
    free = Network(network.model, EOT, (), ())
    free._bias[:] = free._begin_bias[:] = 0
    (found,) = free.greedy(hidden, [PROMPT], [6], SOT, NO_SPEECH, never)
    _, silent = free.score(hidden, PROMPT, found.tokens, SOT, NO_SPEECH)
    assert silent == pytest.approx(found.no_speech, abs=1e-5)


def test_the_no_speech_probability_is_read_behind_a_prompt(network: Network) -> None:
    hidden = network.encode(mel(1, 1000))
    (found,) = network.greedy(hidden, [[PREVIOUS, 7, *PROMPT]], [4], SOT, NO_SPEECH, never)
    logits = network.model(
        decoder_input_ids=torch.tensor([[PREVIOUS, 7, SOT]]), encoder_outputs=(hidden,)
    ).logits
    assert found.no_speech == pytest.approx(float(logits[0, -1].softmax(-1)[NO_SPEECH]), abs=1e-5)


def test_attention_has_a_row_for_each_token_and_the_end(network: Network) -> None:
    hidden = network.encode(mel(1, 1000))
    attention = network.attention(hidden, PROMPT, [5, 6, 7], [(0, 1), (1, 0)])
    assert attention.shape == (2, 4, 500)
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize(
    "tokens, looping",
    [([7] * 15, False), ([7] * 16, True), ([1, 2, 3, 4, 5] * 3, False), ([9, *[1, 2, 3, 4, 5] * 4], True)],
)
def test_a_loop_is_a_phrase_said_four_times(tokens: list[int], looping: bool) -> None:
    assert loops(tokens) is looping
