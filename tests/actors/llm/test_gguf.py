"""Metadata of GGUF files."""

import struct
from pathlib import Path

import pytest

from actors.llm import gguf


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def field(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def integer(key: str, value: int) -> bytes:
    return field(key, 4, struct.pack("<I", value))


def strings(key: str, values: list[str]) -> bytes:
    return field(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(string, values)))


def integers(key: str, values: list[int]) -> bytes:
    return field(key, 9, struct.pack(f"<IQ{len(values)}i", 5, len(values), *values))


def model(folder: Path, *fields: bytes, version: int = 3) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, len(fields)) + b"".join(fields))
    return path


def test_template_tokens_and_sizes_are_read(tmp_path: Path) -> None:
    path = model(
        tmp_path,
        field("general.architecture", 8, string("llama")),
        integer("llama.context_length", 2048),
        integer("llama.block_count", 30),
        integer("llama.embedding_length", 576),
        integer("llama.attention.head_count", 9),
        integer("llama.attention.head_count_kv", 3),
        field("tokenizer.chat_template", 8, string("{{ messages }}")),
        strings("tokenizer.ggml.tokens", ["a", "<|im_end|>", "é"]),
        integers("tokenizer.ggml.token_type", [1, 3, 1]),
        integer("tokenizer.ggml.eos_token_id", 1),
    )
    read = gguf.read(path)
    assert read.chat_template == "{{ messages }}"
    assert read.trained_context_tokens == 2048
    assert read.control_tokens == ["<|im_end|>"]
    assert (read.token("eos"), read.token("bos")) == ("<|im_end|>", "")
    assert read.kv_bytes_per_token() == 30 * 3 * (64 + 64) * 2


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.gguf"
    other.write_bytes(b"PK\x03\x04 and more")
    with pytest.raises(gguf.NotGguf, match="not a GGUF file"):
        gguf.read(other)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = model(tmp_path, integer("a", 1), strings("b", ["x"] * 3))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(gguf.NotGguf, match="cut off"):
        gguf.read(path)


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gguf.NotGguf, match="version 1"):
        gguf.read(model(tmp_path, version=1))
