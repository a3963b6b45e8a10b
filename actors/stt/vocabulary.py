"""The special tokens of a Whisper checkpoint, and the prompts made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

MULTILINGUAL_VOCABULARY = 51_865
"""English-only checkpoints have a smaller one."""
MAX_PROMPT_TOKENS = 223
"""Half the decoder's context, less the token that begins it."""


@dataclass(frozen=True)
class Vocabulary:
    """Token ids, and the text of tokens."""

    eot: int
    """End of text; smaller ids are text, larger ones are special."""
    sot: int
    no_timestamps: int
    no_speech: int
    previous: int
    """What stands before text that the decoder is told was said before."""
    decode: Callable[[list[int]], str]
    encode: Callable[[str], list[int]]
    suppress: tuple[int, ...] = ()
    begin_suppress: tuple[int, ...] = ()
    languages: dict[str, int] = field(default_factory=dict)
    """Token by ISO 639-1 code; empty for an English-only checkpoint."""
    tasks: dict[str, int] = field(default_factory=dict)

    @property
    def multilingual(self) -> bool:
        return bool(self.languages)

    def prompt(self, language: str | None, task: str, before: str | None) -> list[int]:
        """The tokens in front of a transcript without time stamps; `before`: text said earlier, or names to expect."""
        said = self.encode(" " + before.strip())[-MAX_PROMPT_TOKENS:] if before and before.strip() else []
        prefix = [self.previous, *said] if said else []
        if not self.multilingual or language is None:
            return [*prefix, self.sot, self.no_timestamps]
        return [*prefix, self.sot, self.languages[language], self.tasks[task], self.no_timestamps]

    def text(self, tokens: Sequence[int]) -> str:
        return self.decode([token for token in tokens if token < self.eot]).strip()


def read(tokenizer: Any, generation: Any, vocabulary_size: int) -> Vocabulary:
    """The vocabulary of a transformers Whisper `tokenizer` and `GenerationConfig`."""

    ids: dict[str, int] = tokenizer.get_vocab()

    def token(*names: str) -> int:
        for name in names:
            if name in ids:
                return ids[name]
        raise ValueError(f"Whisper checkpoint: its tokenizer has none of the tokens {', '.join(names)}.")

    multilingual = bool(getattr(generation, "is_multilingual", vocabulary_size >= MULTILINGUAL_VOCABULARY))
    languages = getattr(generation, "lang_to_id", None) or {}
    return Vocabulary(
        eot=token("<|endoftext|>"),
        sot=token("<|startoftranscript|>"),
        no_timestamps=token("<|notimestamps|>"),
        no_speech=token("<|nospeech|>", "<|nocaptions|>"),
        previous=token("<|startofprev|>"),
        decode=lambda tokens: str(tokenizer.decode(tokens, clean_up_tokenization_spaces=False)),
        encode=lambda text: list(tokenizer.encode(text, add_special_tokens=False)),
        suppress=tuple(generation.suppress_tokens or ()),
        begin_suppress=tuple(generation.begin_suppress_tokens or ()),
        languages={name.strip("<|>"): int(id_) for name, id_ in languages.items()} if multilingual else {},
        tasks={name: token(f"<|{name}|>") for name in ("transcribe", "translate")} if multilingual else {},
    )
