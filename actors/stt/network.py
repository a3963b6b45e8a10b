"""Whisper's forward passes on a transformers checkpoint: encode a window of any length, decode greedily, align.

The layers are called one by one.  That allows what the model's own `forward` refuses: windows shorter than 30 s, rows
that leave the batch when they are done or cancelled, and attention weights of just the heads that follow the speech.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

POSITIONS_PER_S = 50
"""Encoder positions in a second: one each 20 ms, from two mel frames."""
LOOP_PERIOD_TOKENS = 24
LOOP_REPEATS = 4
LOOP_TOKENS = 16


@dataclass(slots=True)
class Hypothesis:
    """What the decoder wrote for one window."""

    tokens: list[int] = field(default_factory=list)
    """Text tokens, without prompt and end."""
    logprob: float = 0.0
    """Mean log probability of the tokens and the end."""
    no_speech: float = 0.0
    """Probability of the no-speech token where the transcript begins."""
    ended: str = "cancelled"
    """end, limit, loop (the same few words over and over) or cancelled."""


class Network:
    """The encoder and decoder of a `WhisperForConditionalGeneration` in eval mode."""

    def __init__(self, model: Any, eot: int, suppress: Sequence[int], begin_suppress: Sequence[int]) -> None:
        self.model = model
        self._encoder = model.model.encoder
        self._decoder = model.model.decoder
        self._heads = int(model.config.decoder_attention_heads)
        self._eot = eot
        self._bias = torch.zeros(model.config.vocab_size, device=model.device)
        self._bias[[token for token in suppress if token != eot]] = -torch.inf
        self._bias[eot + 1 :] = -torch.inf
        self._begin_bias = self._bias.clone()
        self._begin_bias[list(begin_suppress)] = -torch.inf

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    @property
    def positions(self) -> int:
        """Encoder positions of the full window (1500: 30 s)."""
        return int(self._encoder.embed_positions.weight.shape[0])

    def encode(self, mel: Tensor) -> Tensor:
        """[B, n, width] of mel [B, bands, 2 n], n at most `positions`."""
        encoder = self._encoder
        mel = mel.to(self.device, encoder.conv1.weight.dtype)
        x = F.gelu(encoder.conv2(F.gelu(encoder.conv1(mel)))).transpose(1, 2)
        x = x + encoder.embed_positions.weight[: x.shape[1]]
        heads = int(self.model.config.encoder_attention_heads)
        for layer in encoder.layers:
            normed = layer.self_attn_layer_norm(x)
            x = x + _attend(layer.self_attn, normed, *_keys_values(layer.self_attn, normed, heads), heads)
            x = x + _feed_forward(layer, x)
        encoded: Tensor = encoder.layer_norm(x)
        return encoded

    def first_logits(self, hidden: Tensor, sot: int) -> Tensor:
        """float32[B, vocabulary] after the start token alone: what tells languages apart."""
        ids = torch.full((len(hidden), 1), sot, device=self.device)
        return self._logits(_State(self, hidden).forward(ids)[:, -1])

    def greedy(
        self,
        hidden: Tensor,
        prompts: Sequence[Sequence[int]],
        limits: Sequence[int],
        sot: int,
        no_speech: int,
        cancelled: Callable[[int], bool],
    ) -> list[Hypothesis]:
        """Decode the rows of `hidden` behind `prompts` (equally long), at most `limits` tokens each.

        `cancelled(row)` is asked between tokens; a cancelled row leaves at once.
        """
        found = [Hypothesis() for _ in prompts]
        state = _State(self, hidden)
        rows = list(range(len(prompts)))
        ids = torch.tensor([list(prompt) for prompt in prompts], device=self.device)
        at_start = list(prompts[0]).index(sot)
        bias = self._begin_bias
        while rows:
            x = state.forward(ids)
            if bias is self._begin_bias:
                at_sot = self._logits(x[:, at_start]).softmax(-1)[:, no_speech].tolist()
                for row, probability in zip(rows, at_sot, strict=True):
                    found[row].no_speech = probability
            best, token = (self._logits(x[:, -1]) + bias).log_softmax(-1).max(-1)
            bias = self._bias
            for row, chosen, logprob in zip(rows, token.tolist(), best.tolist(), strict=True):
                _extend(found[row], chosen, logprob, self._eot, limits[row])
            keep = [i for i, row in enumerate(rows) if found[row].ended == "cancelled" and not cancelled(row)]
            if len(keep) < len(rows):
                rows = [rows[i] for i in keep]
                token = token[keep]
                state.keep(keep)
            ids = token[:, None]
        for hypothesis in found:
            count = len(hypothesis.tokens) + (hypothesis.ended == "end")
            hypothesis.logprob /= max(count, 1)
        return found

    def score(
        self, hidden: Tensor, prompt: Sequence[int], tokens: Sequence[int], sot: int, no_speech: int
    ) -> tuple[float, float]:
        """Mean log probability of `tokens` and the end behind `prompt`, and the no-speech probability.

        For tokens that `greedy` did not choose.  `hidden` is [1, n, width].
        """
        ids = torch.tensor([[*prompt, *tokens]], device=self.device)
        logits = self._logits(_State(self, hidden).forward(ids)[0])
        silent = float(logits[list(prompt).index(sot)].softmax(-1)[no_speech])
        targets = torch.tensor([*tokens, self._eot], device=self.device)
        chosen = logits[len(prompt) - 1 :].log_softmax(-1).gather(1, targets[:, None])
        return float(chosen.mean()), silent

    def attention(
        self, hidden: Tensor, prompt: Sequence[int], tokens: Sequence[int], heads: Sequence[tuple[int, int]]
    ) -> Tensor:
        """float32[heads, tokens + 1, n]: where the (layer, head) pairs look for each token and the end.

        `hidden` is [1, n, width].
        """
        state = _State(self, hidden)
        state.watched = {}
        state.forward(torch.tensor([[*prompt, *tokens]], device=self.device))
        rows = [state.watched[layer][0, head, len(prompt) - 1 :] for layer, head in heads]
        return torch.stack(rows).float()

    def _logits(self, x: Tensor) -> Tensor:
        logits: Tensor = self.model.proj_out(x).float()
        return logits


class _State:
    """The decoder's keys and values for a batch of rows."""

    def __init__(self, network: Network, hidden: Tensor) -> None:
        self._decoder = network._decoder
        self._heads = network._heads
        self._cross = [
            _keys_values(layer.encoder_attn, hidden, self._heads) for layer in self._decoder.layers
        ]
        self._past: list[tuple[Tensor, Tensor]] = []
        self._length = 0
        self.watched: dict[int, Tensor] | None = None
        """Cross attention [B, heads, m, n] by layer, where somebody asked for it."""

    def forward(self, ids: Tensor) -> Tensor:
        """[B, m, width] behind the new tokens `ids` [B, m]; more than one only in the first call."""
        decoder, heads, count = self._decoder, self._heads, ids.shape[1]
        x = decoder.embed_tokens(ids)
        x = x + decoder.embed_positions.weight[self._length : self._length + count]
        self._length += count
        past: list[tuple[Tensor, Tensor]] = []
        for index, layer in enumerate(decoder.layers):
            normed = layer.self_attn_layer_norm(x)
            keys, values = _keys_values(layer.self_attn, normed, heads)
            if self._past:
                keys = torch.cat([self._past[index][0], keys], 2)
                values = torch.cat([self._past[index][1], values], 2)
            past.append((keys, values))
            x = x + _attend(layer.self_attn, normed, keys, values, heads, causal=count > 1)
            normed = layer.encoder_attn_layer_norm(x)
            if self.watched is not None:
                query = _split(layer.encoder_attn.q_proj(normed), heads)
                scale = query.shape[-1] ** -0.5
                self.watched[index] = (query @ self._cross[index][0].transpose(2, 3) * scale).softmax(-1)
            x = x + _attend(layer.encoder_attn, normed, *self._cross[index], heads)
            x = x + _feed_forward(layer, x)
        self._past = past
        normalised: Tensor = decoder.layer_norm(x)
        return normalised

    def keep(self, rows: list[int]) -> None:
        """Let all other rows go."""
        self._past = [(keys[rows], values[rows]) for keys, values in self._past]
        self._cross = [(keys[rows], values[rows]) for keys, values in self._cross]


def _split(x: Tensor, heads: int) -> Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def _keys_values(attention: Any, x: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    return _split(attention.k_proj(x), heads), _split(attention.v_proj(x), heads)


def _attend(
    attention: Any, x: Tensor, keys: Tensor, values: Tensor, heads: int, causal: bool = False
) -> Tensor:
    query = _split(attention.q_proj(x), heads)
    mixed = F.scaled_dot_product_attention(query, keys, values, is_causal=causal)
    out: Tensor = attention.out_proj(mixed.transpose(1, 2).reshape(x.shape))
    return out


def _feed_forward(layer: Any, x: Tensor) -> Tensor:
    out: Tensor = layer.fc2(layer.activation_fn(layer.fc1(layer.final_layer_norm(x))))
    return out


def _extend(hypothesis: Hypothesis, token: int, logprob: float, eot: int, limit: int) -> None:
    hypothesis.logprob += logprob
    if token == eot:
        hypothesis.ended = "end"
        return
    hypothesis.tokens.append(token)
    if loops(hypothesis.tokens):
        hypothesis.ended = "loop"
    elif len(hypothesis.tokens) >= limit:
        hypothesis.ended = "limit"


def loops(tokens: Sequence[int]) -> bool:
    """Whether `tokens` end in the same few, over and over."""
    for period in range(1, LOOP_PERIOD_TOKENS + 1):
        span = period * max(LOOP_REPEATS, -(-LOOP_TOKENS // period))
        if len(tokens) < span:
            continue
        tail = list(tokens[-span:])
        if tail[period:] == tail[:-period]:
            return True
    return False
