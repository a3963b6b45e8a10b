"""Converters: weights from the form they are packaged in to a transformers folder, once.

Each is given the folders of the assets it is made from, in the order the catalogue names them, and an empty folder.
"""

import importlib.util
import json
import shutil
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.assets.asset import AssetError

_CT2_DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
_MULTILINGUAL_VOCABULARY = 51_865
_ENGLISH_VOCABULARY = 51_864
_HEAD_DIM = 64
"""Every published Whisper has heads of 64; CTranslate2 files of older versions don't state the count."""

Tensors = Mapping[str, NDArray[Any]]


def read_ct2(path: Path) -> dict[str, NDArray[Any]]:
    """The variables of a CTranslate2 model.bin by name, aliases included; arrays share one read-only buffer.

    Little endian: u32 version, spec name, u32 revision, u32 count; each variable is name, u8 rank, u32 dims,
    u8 dtype, u32 bytes, data; then u32 count of (alias, name). A string is u16 length and zero-ended bytes.
    """
    data = memoryview(path.read_bytes())
    offset = 0

    def number(kind: str) -> int:
        nonlocal offset
        (value,) = struct.unpack_from(f"<{kind}", data, offset)
        offset += struct.calcsize(kind)
        return int(value)

    def string() -> str:
        nonlocal offset
        length = number("H")
        value = bytes(data[offset : offset + length]).rstrip(b"\0").decode()
        offset += length
        return value

    try:
        number("I"), string(), number("I")
        variables: dict[str, NDArray[Any]] = {}
        for _ in range(number("I")):
            name = string()
            shape = [number("I") for _ in range(number("B"))]
            dtype = _CT2_DTYPES[number("B")]
            size_bytes = number("I")
            variables[name] = np.frombuffer(data[offset : offset + size_bytes], dtype).reshape(shape)
            offset += size_bytes
        for _ in range(number("I")):
            alias = string()
            variables[alias] = variables[string()]
    except (struct.error, IndexError, ValueError, KeyError) as error:
        raise AssetError(f"{path} is not a CTranslate2 model: {error}") from error
    return variables


def _layer_count(tensors: Tensors, side: str) -> int:
    return len(
        {
            name
            for name in tensors
            if name.startswith(f"{side}/layer_") and name.endswith("/ffn/linear_0/weight")
        }
    )


class _WhisperNames:
    """Copies a CTranslate2 Whisper's arrays into a state dict under the names that transformers uses (float32)."""

    def __init__(self, tensors: Tensors, vocabulary: int) -> None:
        self._tensors = tensors
        self.state: dict[str, NDArray[np.float32]] = {}
        embedding = self._array("decoder/embeddings/weight")[:vocabulary]
        self.state["model.decoder.embed_tokens.weight"] = embedding
        self.state["proj_out.weight"] = embedding
        for index in (1, 2):
            self._linear(f"model.encoder.conv{index}", f"encoder/conv{index}")
        for side in ("encoder", "decoder"):
            self.state[f"model.{side}.embed_positions.weight"] = self._array(
                f"{side}/position_encodings/encodings"
            )
            self._norm(f"model.{side}.layer_norm", f"{side}/layer_norm")
            for index in range(_layer_count(tensors, side)):
                self._layer(f"model.{side}.layers.{index}", f"{side}/layer_{index}", cross=side == "decoder")

    def _array(self, name: str) -> NDArray[np.float32]:
        if name not in self._tensors:
            raise AssetError(f"the CTranslate2 model has no variable {name}; is it a Whisper?")
        array = self._tensors[name].astype(np.float32)
        if self._tensors[name].dtype == np.int8:
            scale = self._tensors[f"{name}_scale"].astype(np.float32)
            array = array / scale.reshape(-1, *[1] * (array.ndim - 1))
        return array

    def _linear(self, to: str, source: str) -> None:
        self.state[f"{to}.weight"] = self._array(f"{source}/weight")
        if f"{source}/bias" in self._tensors:
            self.state[f"{to}.bias"] = self._array(f"{source}/bias")

    def _norm(self, to: str, source: str) -> None:
        self.state[f"{to}.weight"] = self._array(f"{source}/gamma")
        self.state[f"{to}.bias"] = self._array(f"{source}/beta")

    def _fused(self, to: str, source: str, names: tuple[str, ...]) -> None:
        """Splits projections that CTranslate2 stacks into one matrix; Whisper's keys have no bias."""
        weights = np.split(self._array(f"{source}/weight"), len(names))
        biases = np.split(self._array(f"{source}/bias"), len(names))
        for name, weight, bias in zip(names, weights, biases, strict=True):
            self.state[f"{to}.{name}.weight"] = weight
            if name != "k_proj":
                self.state[f"{to}.{name}.bias"] = bias

    def _layer(self, to: str, source: str, *, cross: bool) -> None:
        self._fused(f"{to}.self_attn", f"{source}/self_attention/linear_0", ("q_proj", "k_proj", "v_proj"))
        self._linear(f"{to}.self_attn.out_proj", f"{source}/self_attention/linear_1")
        self._norm(f"{to}.self_attn_layer_norm", f"{source}/self_attention/layer_norm")
        if cross:
            self._linear(f"{to}.encoder_attn.q_proj", f"{source}/attention/linear_0")
            self._fused(f"{to}.encoder_attn", f"{source}/attention/linear_1", ("k_proj", "v_proj"))
            self._linear(f"{to}.encoder_attn.out_proj", f"{source}/attention/linear_2")
            self._norm(f"{to}.encoder_attn_layer_norm", f"{source}/attention/layer_norm")
        self._linear(f"{to}.fc1", f"{source}/ffn/linear_0")
        self._linear(f"{to}.fc2", f"{source}/ffn/linear_1")
        self._norm(f"{to}.final_layer_norm", f"{source}/ffn/layer_norm")


def whisper(sources: list[Path], folder: Path) -> None:
    """A CTranslate2 Whisper folder (model.bin, config.json, tokenizer.json) to a transformers folder, in fp16.

    fp16 is what the package holds, so nothing is lost. Raises AssetError when a weight is missing or left over.
    """
    import torch
    from transformers import (
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperProcessor,
        WhisperTokenizerFast,
    )

    (source,) = sources
    tensors = read_ct2(source / "model.bin")
    rows, width = tensors["decoder/embeddings/weight"].shape
    multilingual = rows >= _MULTILINGUAL_VOCABULARY
    vocabulary = _MULTILINGUAL_VOCABULARY if multilingual else _ENGLISH_VOCABULARY
    stated_heads = tensors.get("encoder/num_heads")
    heads = int(stated_heads) if stated_heads is not None else width // _HEAD_DIM
    feed_forward = tensors["encoder/layer_0/ffn/linear_0/weight"].shape[0]
    mel_bins = tensors["encoder/conv1/weight"].shape[1]
    end_of_text = vocabulary - 1_608
    config = WhisperConfig(
        vocab_size=vocabulary,
        num_mel_bins=mel_bins,
        d_model=width,
        encoder_layers=_layer_count(tensors, "encoder"),
        decoder_layers=_layer_count(tensors, "decoder"),
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=feed_forward,
        decoder_ffn_dim=feed_forward,
        max_source_positions=tensors["encoder/position_encodings/encodings"].shape[0],
        max_target_positions=tensors["decoder/position_encodings/encodings"].shape[0],
        bos_token_id=end_of_text,
        eos_token_id=end_of_text,
        pad_token_id=end_of_text,
        decoder_start_token_id=end_of_text + 1,
    )
    model = WhisperForConditionalGeneration(config)
    state = {
        name: torch.from_numpy(np.array(array))
        for name, array in _WhisperNames(tensors, vocabulary).state.items()
    }
    result = model.load_state_dict(state, strict=False)
    if result.missing_keys or result.unexpected_keys:
        raise AssetError(
            f"{source / 'model.bin'} does not fit Whisper: missing {result.missing_keys}, "
            f"unexpected {result.unexpected_keys}"
        )
    tokenizer = WhisperTokenizerFast(tokenizer_file=str(source / "tokenizer.json"))
    model.generation_config = _whisper_generation(
        json.loads((source / "config.json").read_text()), config, tokenizer
    )
    with _without_bars():
        model.half().save_pretrained(folder)
    WhisperProcessor(WhisperFeatureExtractor(feature_size=mel_bins), tokenizer).save_pretrained(folder)


def _whisper_generation(ct2: dict[str, Any], config: Any, tokenizer: Any) -> Any:
    """Generation settings: ids that CTranslate2 keeps in its config, and the tokens around them by name."""
    from transformers import GenerationConfig
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    multilingual = config.vocab_size == _MULTILINGUAL_VOCABULARY
    extra: dict[str, Any] = {}
    if multilingual:
        languages = [f"<|{code}|>" for code in LANGUAGES]
        known = tokenizer.get_vocab()
        extra["lang_to_id"] = {name: known[name] for name in languages if name in known}
        extra["task_to_id"] = {task: known[f"<|{task}|>"] for task in ("transcribe", "translate")}
    return GenerationConfig(
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
        max_length=config.max_target_positions,
        suppress_tokens=ct2["suppress_ids"],
        begin_suppress_tokens=ct2["suppress_ids_begin"],
        alignment_heads=ct2["alignment_heads"],
        no_timestamps_token_id=tokenizer.convert_tokens_to_ids("<|notimestamps|>"),
        prev_sot_token_id=tokenizer.convert_tokens_to_ids("<|startofprev|>"),
        max_initial_timestamp_index=50,
        return_timestamps=False,
        is_multilingual=multilingual,
        **extra,
    )


@contextmanager
def _without_bars() -> Iterator[None]:
    """transformers draws bars of its own; a conversion has one already."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def gguf(sources: list[Path], folder: Path) -> None:
    """A quantised GGUF file to a dequantised transformers folder in bf16, with tokenizer and chat template.

    bf16 is half of fp32 on disk, and its rounding is far below that of the 4 bit weights it comes from.
    """
    if importlib.util.find_spec("gguf") is None:
        raise AssetError("reading GGUF weights into transformers needs the package gguf: pip install gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    (source,) = sources
    (file,) = source.glob("*.gguf")
    with _without_bars():
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=file.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
        )
        model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=file.name).save_pretrained(folder)


def kokoro(sources: list[Path], folder: Path) -> None:
    """The hub's Kokoro (model.onnx, tokenizer.json) to model.onnx and vocab.json: `{"vocab": {phoneme: id}}`."""
    (source,) = sources
    vocabulary = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (folder / "vocab.json").write_text(
        json.dumps({"vocab": vocabulary}, ensure_ascii=False), encoding="utf-8"
    )
    shutil.copyfile(source / "model.onnx", folder / "model.onnx")
