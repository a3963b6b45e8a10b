from pathlib import Path

import pytest

from actors import registry, torch_device


@pytest.mark.parametrize(
    "flags, has", [("fpu avx2 avx512f", False), ("avx2 avx512_bf16", True), ("amx_bf16", True)]
)
def test_bf16_is_read_from_the_cpu_flags(tmp_path: Path, flags: str, has: bool) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert torch_device.cpu_has_bf16(cpuinfo) is has
    assert torch_device.cpu_has_bf16(tmp_path / "absent") is False


@pytest.mark.parametrize("device, dtype", [("cuda", "float16"), ("cuda:1", "float16"), ("mps", "float16")])
def test_auto_is_half_precision_on_a_gpu(device: str, dtype: str) -> None:
    assert torch_device.resolve_dtype(device) == dtype


@pytest.mark.parametrize("bf16, dtype", [(True, "bfloat16"), (False, "float32")])
def test_auto_on_cpu_follows_the_cpu(monkeypatch: pytest.MonkeyPatch, bf16: bool, dtype: str) -> None:
    monkeypatch.setattr(torch_device, "cpu_has_bf16", lambda: bf16)
    assert torch_device.resolve_dtype("cpu") == dtype


@pytest.mark.parametrize("asked", torch_device.DTYPES)
def test_an_explicit_dtype_is_kept(asked: str) -> None:
    assert torch_device.resolve_dtype("mps", asked) == asked


def test_an_impossible_pair_names_what_was_asked() -> None:
    with pytest.raises(torch_device.ImpossibleDtype, match="float16 was asked for on cpu"):
        torch_device.resolve_dtype("cpu", "float16")
    with pytest.raises(torch_device.ImpossibleDtype, match="'int3' is not known"):
        torch_device.resolve_dtype("cpu", "int3")


@pytest.mark.parametrize(
    ("stage", "name", "dtype", "own"),
    [
        ("stt", "paraformer", "float16", "the model is float32"),
        ("tts", "chatTTS", "float16", "the model is float32"),
        ("tts", "pocket", "bfloat16", "the model is float32"),
        ("tts", "supertonic", "int8", "the model is float32"),
        ("tts", "kitten", "float32", "that of the files"),
        ("stt", "mlx-audio-whisper", "float32", "that of the files"),
        ("llm", "mlx-lm", "float32", "that of the files"),
    ],
)
def test_a_dtype_that_a_model_has_not_is_refused(stage: str, name: str, dtype: str, own: str) -> None:
    entry = registry.find(stage, name)
    backend = entry.backend_class()(entry.options_class()())
    with pytest.raises(
        torch_device.ImpossibleDtype, match=f"{stage} {name} was asked for dtype '{dtype}'; .*{own}"
    ):
        backend.load("cpu", dtype, 1)


def test_compiling_without_a_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors.stt.whisper import Whisper, WhisperOptions

    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(torch_device.MissingCompiler, match=r"no-such-compiler was not found; install g\+\+"):
        Whisper(WhisperOptions(compile_mode="default")).load("cpu", "float32", 1)
    torch_device.require_compiler("cuda:0")
