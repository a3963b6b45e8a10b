"""Decoding by transformers' `generate()`: for beams, sampling and whatever else its arguments ask for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.modeling_outputs import BaseModelOutput

WHISPER_ARGUMENTS = frozenset({"task", "return_timestamps"})
"""Arguments of Whisper's `generate()` that `GenerationConfig` does not know."""
GREEDY: dict[str, tuple[object, ...]] = {
    "num_beams": (1,),
    "do_sample": (False,),
    "temperature": (0, 1),
    "return_timestamps": (False,),
}
"""Values that ask for what the plain greedy loop does."""
TASKS = ("transcribe", "translate")


class UnknownGenerationArgument(ValueError):
    """`generate()` has no such argument, or not with such a value."""


def validate(gen: Mapping[str, Any]) -> None:
    """Raise `UnknownGenerationArgument` for a name that neither `GenerationConfig` nor Whisper knows."""
    known = set(GenerationConfig().to_dict()) | WHISPER_ARGUMENTS
    unknown = sorted(set(gen) - known)
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UnknownGenerationArgument(
            f"stt whisper: generate() has no argument {', '.join(map(repr, unknown))}.{hint} "
            "Names are those of transformers' GenerationConfig, task and return_timestamps."
        )
    if gen.get("task", TASKS[0]) not in TASKS:
        raise UnknownGenerationArgument(
            f"stt whisper: task {gen['task']!r} is neither transcribe nor translate."
        )


def is_greedy(gen: Mapping[str, Any]) -> bool:
    """Whether the plain greedy loop does all that `gen` asks for."""
    return all(
        name in ("task", "max_new_tokens") or value is None or value in GREEDY.get(name, ())
        for name, value in gen.items()
    )


class _Cancelled(StoppingCriteria):  # type: ignore[misc]
    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        return torch.full((len(input_ids),), self._cancelled(), device=input_ids.device)


def generate(
    model: Any,
    hidden: Tensor,
    language: str | None,
    prompt: list[int] | None,
    limit: int,
    gen: Mapping[str, Any],
    cancelled: Callable[[], bool],
) -> list[int]:
    """The tokens written for `hidden` [1, n, width], special ones included; asks `cancelled` between tokens.

    `language`: None for an English-only checkpoint.  `prompt`: `<|startofprev|>` and the text said before.
    """
    arguments: dict[str, Any] = {"max_new_tokens": limit, **gen}
    if language is None:
        arguments.pop("task", None)
    else:
        arguments |= {"language": language, "task": gen.get("task", TASKS[0])}
    if prompt:
        arguments["prompt_ids"] = torch.tensor(prompt, device=hidden.device)
    sequences: Tensor = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=hidden),
        stopping_criteria=StoppingCriteriaList([_Cancelled(cancelled)]),
        **arguments,
    )
    tokens: list[int] = sequences[0].tolist()
    return tokens[len(prompt) :] if prompt and tokens[: len(prompt)] == prompt else tokens
