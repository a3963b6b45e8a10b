"""Sound at the edge: chunk size never matters, G.711 is ITU-T's, bad files are named."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from s2s.audio import AudioFileError, AudioFormat, Clip, Decoder, Encoder, read_audio, write_wav

PCM24 = AudioFormat("audio/pcm", 24_000)


def tone(rate_hz: int, seconds: float = 0.5) -> np.ndarray:
    return (8000 * np.sin(2 * np.pi * 440 * np.arange(int(rate_hz * seconds)) / rate_hz)).astype("<i2")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 2000), min_size=1, max_size=40))
def test_chunk_size_never_changes_what_is_heard(sizes: list[int]) -> None:
    data = tone(24_000).tobytes()
    whole = Decoder(PCM24).feed(data, last=True)
    decoder, position, pieces = Decoder(PCM24), 0, []
    for size in sizes:
        pieces.append(decoder.feed(data[position : position + size]))
        position += size
    pieces.append(decoder.feed(data[position:], last=True))
    assert b"".join(pieces) == whole


def test_an_odd_byte_waits_for_its_other_half() -> None:
    decoder = Decoder(AudioFormat("audio/pcm", 16_000))
    assert decoder.feed(b"\x01") == b""
    assert decoder.feed(b"\x02\x03") == b"\x01\x02"
    decoder.clear()
    assert decoder.feed(b"\x07\x08") == b"\x07\x08"


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_resampling_keeps_length_and_makes_no_click_at_chunk_borders(rate_hz: int) -> None:
    decoder = Decoder(AudioFormat("audio/pcm", rate_hz))
    data = tone(rate_hz).tobytes()
    step = len(data) // 50 // 2 * 2
    heard = b"".join(decoder.feed(data[i : i + step]) for i in range(0, len(data), step)) + decoder.feed(
        b"", last=True
    )
    samples = np.frombuffer(heard, "<i2").astype(int)
    assert abs(len(samples) - 8000) <= 1
    steepest = 8000 * 2 * np.pi * 440 / 16_000
    assert np.abs(np.diff(samples[100:-100])).max() <= steepest * 1.05


@pytest.mark.parametrize(
    ("kind", "code", "linear"),
    [
        ("audio/pcmu", 0xFF, 0),
        ("audio/pcmu", 0x00, -32124),
        ("audio/pcmu", 0x80, 32124),
        ("audio/pcma", 0xD5, 8),
        ("audio/pcma", 0x55, -8),
        ("audio/pcma", 0xAA, 32256),
        ("audio/pcma", 0x2A, -32256),
    ],
)
def test_g711_matches_the_standard(kind: str, code: int, linear: int) -> None:
    from s2s import audio

    assert audio._DECODE[kind][code] == linear


@pytest.mark.parametrize("kind", ["audio/pcmu", "audio/pcma"])
def test_g711_survives_a_round_trip(kind: Literal["audio/pcmu", "audio/pcma"]) -> None:
    wire = AudioFormat(kind, 8_000)
    samples = np.frombuffer(
        Decoder(wire).feed(Encoder(wire).feed(tone(8_000).tobytes(), 8_000), last=True), "<i2"
    )
    reference = np.frombuffer(
        Decoder(AudioFormat("audio/pcm", 8_000)).feed(tone(8_000).tobytes(), last=True), "<i2"
    )
    noise = samples.astype(float) - reference
    assert 10 * np.log10((reference.astype(float) ** 2).mean() / (noise**2).mean()) > 30


def test_encoder_brings_every_sample_in_the_end() -> None:
    encoder = Encoder(AudioFormat("audio/pcm", 16_000))
    out = encoder.feed(tone(24_000).tobytes(), 24_000) + encoder.finish()
    assert abs(len(out) // 2 - 8000) <= 1
    assert Encoder(PCM24).finish() == b""


@pytest.mark.parametrize(
    ("subtype", "extension", "rate_hz", "channels"),
    [
        ("PCM_U8", "wav", 8_000, 1),
        ("PCM_24", "wav", 96_000, 1),
        ("FLOAT", "wav", 44_100, 6),
        ("PCM_16", "flac", 16_000, 2),
        ("VORBIS", "ogg", 24_000, 1),
        ("MPEG_LAYER_III", "mp3", 44_100, 2),
    ],
)
def test_any_audio_file_is_read_as_mono_16_khz(
    tmp_path: Path, subtype: str, extension: str, rate_hz: int, channels: int
) -> None:
    path = tmp_path / f"a.{extension}"
    frames = np.repeat(tone(rate_hz)[:, None], channels, axis=1) / 32768
    soundfile.write(path, frames, rate_hz, subtype)
    clip = read_audio(path)
    samples = np.frombuffer(clip.pcm, "<i2").astype(float)
    assert clip.rate_hz == 16_000
    assert abs(clip.duration_s - 0.5) < 0.1
    assert abs(np.sqrt((samples[2000:6000] ** 2).mean()) - 8000 / np.sqrt(2)) < 300


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.wav", None, "no such file"),
        ("zero.wav", b"", "is empty"),
        ("text.wav", b"this is only text, whatever its name says", "is not audio"),
        ("header.wav", b"RIFF\x24\x00\x00\x00WAVEfmt ", "none.wav|is not audio|no audio"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AudioFileError, match=words) as error:
        read_audio(path)
    assert name in str(error.value)


def test_a_folder_and_a_file_without_samples_are_named(tmp_path: Path) -> None:
    with pytest.raises(AudioFileError, match="folder"):
        read_audio(tmp_path)
    write_wav(tmp_path / "empty.wav", Clip(b"", 16_000))
    with pytest.raises(AudioFileError, match="0 samples"):
        read_audio(tmp_path / "empty.wav")


def test_a_truncated_wav_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cut.wav"
    write_wav(path, Clip(tone(16_000).tobytes(), 16_000))
    path.write_bytes(path.read_bytes()[:8044])
    assert read_audio(path).duration_s == pytest.approx(0.25, abs=0.01)


def test_an_unwritable_output_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(AudioFileError, match="cannot be written"):
        write_wav(blocked / "out.wav", Clip(b"\0\0", 16_000))
