"""Conversion: the CTranslate2 format is read whole, and every array lands under the name transformers gives it."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.assets import AssetError, convert, resolve, samples

WIDTH, ROWS, MEL_BINS = 4, 6, 3
DTYPES = [np.float32, np.int8, np.int16, np.int32, np.float16]


def string(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def write_ct2(path: Path, variables: dict[str, NDArray[Any]], aliases: dict[str, str]) -> None:
    data = struct.pack("<I", 6) + string("WhisperSpec") + struct.pack("<II", 3, len(variables))
    for name, array in variables.items():
        data += string(name) + struct.pack("<B", array.ndim) + struct.pack(f"<{array.ndim}I", *array.shape)
        data += struct.pack("<BI", DTYPES.index(array.dtype.type), array.nbytes) + array.tobytes()
    data += struct.pack("<I", len(aliases))
    for alias, name in aliases.items():
        data += string(alias) + string(name)
    path.write_bytes(data)


def one_layer_whisper() -> dict[str, NDArray[Any]]:
    """One encoder and one decoder layer; all numbers differ."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"decoder/embeddings/weight": (ROWS, WIDTH)}
    for index, channels in ((1, MEL_BINS), (2, WIDTH)):
        shapes |= {
            f"encoder/conv{index}/weight": (WIDTH, channels, 3),
            f"encoder/conv{index}/bias": (WIDTH,),
        }
    for side in ("encoder", "decoder"):
        layer = f"{side}/layer_0"
        attentions: dict[str, tuple[int, ...]] = {f"{layer}/self_attention": (3, 1)}
        if side == "decoder":
            attentions[f"{layer}/attention"] = (1, 2, 1)
        for attention, stacked in attentions.items():
            for index, count in enumerate(stacked):
                shapes |= {
                    f"{attention}/linear_{index}/weight": (count * WIDTH, WIDTH),
                    f"{attention}/linear_{index}/bias": (count * WIDTH,),
                }
        for index in (0, 1):
            shapes |= {f"{layer}/ffn/linear_{index}/weight": (WIDTH, WIDTH)}
            shapes |= {f"{layer}/ffn/linear_{index}/bias": (WIDTH,)}
        norms = [f"{name}/layer_norm" for name in (side, f"{layer}/ffn", *attentions)]
        shapes |= {f"{norm}/{part}": (WIDTH,) for norm in norms for part in ("gamma", "beta")}
        shapes[f"{side}/position_encodings/encodings"] = (5, WIDTH)
    return {name: rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}


def test_variables_and_aliases_come_back_as_written(tmp_path: Path) -> None:
    written = {"a/b": np.arange(6, dtype=np.float16).reshape(2, 3), "count": np.array(4, np.int16)}
    write_ct2(tmp_path / "model.bin", written, {"same": "a/b"})
    read = convert.read_ct2(tmp_path / "model.bin")
    assert set(read) == {"a/b", "count", "same"}
    np.testing.assert_array_equal(read["same"], written["a/b"])
    assert int(read["count"]) == 4


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x06\0\0\0" + string("W") + b"\x03\0\0\0\xff\0\0\0"])
def test_what_is_no_model_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(data)
    with pytest.raises(AssetError, match=r"model.bin is not a CTranslate2 model"):
        convert.read_ct2(tmp_path / "model.bin")


def test_stacked_projections_are_split_in_order_and_keys_have_no_bias() -> None:
    tensors = one_layer_whisper()
    state = convert._WhisperNames(tensors, ROWS).state
    stacked = tensors["encoder/layer_0/self_attention/linear_0/weight"].astype(np.float32)
    for index, name in enumerate(("q_proj", "k_proj", "v_proj")):
        piece = state[f"model.encoder.layers.0.self_attn.{name}.weight"]
        np.testing.assert_array_equal(piece, stacked[index * WIDTH : (index + 1) * WIDTH])
    cross = tensors["decoder/layer_0/attention/linear_1/weight"].astype(np.float32)
    np.testing.assert_array_equal(state["model.decoder.layers.0.encoder_attn.v_proj.weight"], cross[WIDTH:])
    assert not [name for name in state if name.endswith("k_proj.bias")]


def test_padding_rows_of_the_vocabulary_are_cut() -> None:
    state = convert._WhisperNames(one_layer_whisper(), ROWS - 2).state
    assert state["proj_out.weight"].shape == (ROWS - 2, WIDTH)


def test_int8_weights_are_divided_by_their_rows_scale() -> None:
    tensors = one_layer_whisper()
    tensors["encoder/conv1/weight"] = np.full((WIDTH, MEL_BINS, 3), 10, np.int8)
    tensors["encoder/conv1/weight_scale"] = np.array([1, 2, 5, 10], np.float32)
    weight = convert._WhisperNames(tensors, ROWS).state["model.encoder.conv1.weight"]
    assert weight[:, 0, 0].tolist() == [10, 5, 2, 1]


def test_a_variable_that_is_missing_is_named() -> None:
    tensors = one_layer_whisper()
    del tensors["decoder/layer_0/ffn/linear_1/weight"]
    with pytest.raises(AssetError, match="no variable decoder/layer_0/ffn/linear_1/weight"):
        convert._WhisperNames(tensors, ROWS)


def test_the_hubs_kokoro_gets_the_packaged_layout(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.mkdir()
    folder.mkdir()
    (source / "model.onnx").write_bytes(b"onnx")
    (source / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"ə": 83}}}), encoding="utf-8")
    convert.kokoro([source], folder)
    assert json.loads((folder / "vocab.json").read_text(encoding="utf-8")) == {"vocab": {"ə": 83}}
    assert (folder / "model.onnx").read_bytes() == b"onnx"


@pytest.mark.e2e
def test_the_converted_whisper_understands_speech() -> None:
    import soundfile
    import torch
    from transformers import WhisperForConditionalGeneration, WhisperProcessor

    folder = resolve("whisper-tiny.en")
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    processor = WhisperProcessor.from_pretrained(folder)
    (sample,) = (sample for sample in samples() if sample.path.stem == "dickens-01")
    sound, rate_hz = soundfile.read(sample.path, dtype="float32")
    features = processor(sound, sampling_rate=rate_hz, return_tensors="pt").input_features
    tokens = model.generate(features, do_sample=False)
    assert processor.decode(tokens[0], skip_special_tokens=True).strip() == sample.text


@pytest.mark.e2e
def test_the_dequantised_smollm2_has_its_chat_template_and_splits_numbers() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(resolve("smollm2-135m-instruct"))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1984"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1984<|im_end|>\n<|im_start|>assistant\n"
    )
    assert [tokenizer.decode([token]) for token in tokenizer("1984")["input_ids"]] == ["1", "9", "8", "4"]
