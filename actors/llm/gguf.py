"""The metadata in front of a GGUF file: chat template, special tokens and the sizes that decide its memory.

The format is described in the ggml repository (docs/gguf.md); versions 2 and 3 are read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9
_CONTROL_TOKEN = 3
KV_ELEMENT_BYTES = 2
"""llama.cpp keeps keys and values as float16."""


class NotGguf(ValueError):
    """The file is not a GGUF model that can be read."""


@dataclass(frozen=True)
class Gguf:
    """What a model file says of itself."""

    path: Path
    metadata: dict[str, Any]

    def _of_architecture(self, key: str, default: Any = None) -> Any:
        return self.metadata.get(f"{self.metadata.get('general.architecture')}.{key}", default)

    @property
    def chat_template(self) -> str | None:
        return self.metadata.get("tokenizer.chat_template")

    @property
    def trained_context_tokens(self) -> int:
        """0 where the file does not say."""
        return int(self._of_architecture("context_length", 0))

    def token(self, kind: str) -> str:
        """Text of the "bos" or "eos" token; empty where there is none."""
        index = self.metadata.get(f"tokenizer.ggml.{kind}_token_id")
        tokens = self.metadata.get("tokenizer.ggml.tokens", [])
        return str(tokens[index]) if index is not None and index < len(tokens) else ""

    @property
    def control_tokens(self) -> list[str]:
        """Texts that the tokenizer reads as control tokens."""
        kinds = self.metadata.get("tokenizer.ggml.token_type", [])
        tokens = self.metadata.get("tokenizer.ggml.tokens", [])
        return [text for text, kind in zip(tokens, kinds, strict=False) if kind == _CONTROL_TOKEN]

    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values that one token of context takes in all layers."""
        heads = self._of_architecture("attention.head_count", 1)
        kv_heads = self._of_architecture("attention.head_count_kv", heads)
        layers = int(self._of_architecture("block_count", 0))
        width = int(self._of_architecture("embedding_length", 0)) // max(1, _largest(heads))
        key = int(self._of_architecture("attention.key_length", width))
        value = int(self._of_architecture("attention.value_length", width))
        return layers * _largest(kv_heads) * (key + value) * KV_ELEMENT_BYTES


def _largest(value: Any) -> int:
    return int(max(value)) if isinstance(value, list) else int(value)


def read(path: Path) -> Gguf:
    """The metadata of `path`; raises `NotGguf` for any other file and `OSError` when it cannot be opened."""
    with path.open("rb") as file:
        magic = file.read(4)
        if magic != MAGIC:
            raise NotGguf(f"{path} is not a GGUF file: it starts with {magic!r} instead of {MAGIC!r}.")
        try:
            version, _, fields = struct.unpack("<IQQ", file.read(20))
            if version not in (2, 3):
                raise NotGguf(f"{path} is GGUF version {version}; versions 2 and 3 can be read.")
            metadata = {}
            for _ in range(fields):
                key = _string(file)
                metadata[key] = _value(file, _scalar(file, "I"))
        except (struct.error, KeyError, UnicodeDecodeError) as error:
            raise NotGguf(f"The metadata of {path} is cut off or damaged: {error}.") from error
    return Gguf(path, metadata)


def _scalar(file: BinaryIO, code: str) -> Any:
    return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]


def _string(file: BinaryIO) -> str:
    return file.read(_scalar(file, "Q")).decode("utf-8", errors="replace")


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _scalar(file, _SCALARS[kind])
    item, count = _scalar(file, "I"), _scalar(file, "Q")
    if item in (_STRING, _ARRAY):
        return [_value(file, item) for _ in range(count)]
    code = _SCALARS[item]
    return list(struct.unpack(f"<{count}{code}", file.read(count * struct.calcsize("<" + code))))
