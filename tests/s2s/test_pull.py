"""Command pull: prints where each asset lies, says what failed and exits 1; the list shows size and licence."""

import io
from pathlib import Path

import pytest

from s2s.layers import load
from s2s.pull import main, needed


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache into which one model was put by hand."""
    monkeypatch.setenv("S2S_CACHE", str(tmp_path))
    folder = tmp_path / "local" / "silero-vad"
    folder.mkdir(parents=True)
    (folder / "silero_vad.onnx").write_bytes(bytes(2_500_000))
    return folder


def test_what_is_here_is_printed_with_its_path(local: Path) -> None:
    out = io.StringIO()
    assert main(["silero-vad"], False, out) == 0
    assert out.getvalue() == f"silero-vad: {local / 'silero_vad.onnx'}\n"


def test_a_name_that_cannot_be_had_fails_and_the_others_go_on(
    local: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = io.StringIO()
    assert main(["no-such-model", "silero-vad"], False, out) == 1
    assert out.getvalue().startswith("silero-vad: ")
    assert capsys.readouterr().err.startswith("error: no-such-model: no such file or folder")


def test_the_list_shows_what_is_here_its_size_and_its_licence(local: Path) -> None:
    out = io.StringIO()
    assert main([], True, out) == 0
    lines = {line.split()[0]: line.split() for line in out.getvalue().splitlines() if line}
    assert lines["silero-vad"][1:4] == ["yes", "2.5", "MIT"]
    assert lines["smollm2-135m-instruct-gguf"][1:4] == ["no", "92.9", "Apache-2.0"]


def test_without_names_the_configurations_models_are_meant() -> None:
    assert needed(load()) == [
        "silero-vad",
        "smart-turn-v3",
        "whisper-tiny.en",
        "smollm2-135m-instruct-q8-gguf",
        "kokoro-82m-onnx-int8",
        "kokoro-voices",
    ]


def test_a_hub_model_that_the_catalogue_lacks_is_meant_too(tmp_path: Path) -> None:
    assert "owner/whisper-of-mine" in needed(load([("stt_model_name", "owner/whisper-of-mine")]))
    assert str(tmp_path) not in needed(load([("stt_model_name", str(tmp_path))]))
