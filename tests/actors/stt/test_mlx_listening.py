"""What the MLX Whisper backends say without their libraries."""

import pytest

from actors.stt.whisper_mlx import WhisperMlx, WhisperMlxOptions


@pytest.mark.parametrize(
    ("name", "languages"),
    [("mlx-community/whisper-base.en-mlx", ("en",)), ("mlx-community/whisper-large-v3-turbo", None)],
)
def test_an_english_checkpoint_is_known_by_its_name(name: str, languages: tuple[str, ...] | None) -> None:
    assert WhisperMlx(WhisperMlxOptions(name)).languages == languages


def test_a_number_format_that_mlx_whisper_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="asked for dtype 'bfloat16'; choose auto, float16 or float32"):
        WhisperMlx().load("cpu", "bfloat16", 1)
