"""What the settings of a server mean, and which of them are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from s2s.config import Config, ConfigError
from s2s.gateway import gateway_options
from s2s.layers import load
from s2s.serve import serve_options


def config(*flags: tuple[str, str | None]) -> Config:
    return load([("profile", "embedded"), *flags])


@pytest.fixture(autouse=True)
def _no_sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wav = tmp_path / "question.wav"
    wav.write_bytes(b"RIFF")
    monkeypatch.setattr("actors.assets.question", lambda: wav)


def test_beyond_this_machine_a_key_is_required() -> None:
    with pytest.raises(ConfigError, match="an API key is required"):
        serve_options(config(("host", "0.0.0.0")))
    assert serve_options(config(("host", "0.0.0.0"), ("api_key", "k"))).api_keys == ("k",)
    assert serve_options(config(("host", "localhost"))).api_keys == ()


def test_keys_come_from_a_file_one_a_line(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\nfirst\n\n  second \n")
    assert serve_options(config(("api_key_file", str(file)))).api_keys == ("first", "second")
    with pytest.raises(ConfigError, match="nowhere: cannot be read"):
        serve_options(config(("api_key_file", "nowhere")))


def test_tls_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both"):
        serve_options(config(("tls_cert", "cert.pem")))
    with pytest.raises(ConfigError, match=r"--tls_cert nowhere\.pem: no such file"):
        serve_options(config(("tls_cert", "nowhere.pem"), ("tls_key", "key.pem")))


@pytest.mark.parametrize(
    ("name", "detection"),
    [("server_vad", {"type": "server_vad"}), ("semantic_vad", {"type": "semantic_vad"}), ("none", None)],
)
def test_turn_detection_is_what_sessions_begin_with(name: str, detection: dict[str, str] | None) -> None:
    defaults = gateway_options(config(("turn_detection", name))).defaults
    assert defaults.session == {"audio": {"input": {"turn_detection": detection}}}


def test_limits_of_a_session_where_zero_is_none() -> None:
    limits = gateway_options(config(("max_session_s", "0"), ("max_idle_s", "60"))).defaults.limits
    assert (limits.session_s, limits.idle_s) == (None, 60.0)


def test_transcription_and_16_khz_are_off_until_asked_for() -> None:
    defaults = gateway_options(config()).defaults
    assert (defaults.transcription, defaults.allow_16k) == (None, False)
    defaults = gateway_options(config(("transcribe", None), ("allow_16k", None))).defaults
    assert defaults.transcription is not None
    assert defaults.allow_16k


def test_turn_taking_is_as_the_settings_say() -> None:
    flags = (
        ("speculation", "llm"),
        ("barge_in_ms", "300"),
        ("partial_share", "0"),
        ("resume_answers", "false"),
    )
    defaults = gateway_options(config(*flags)).defaults
    assert (defaults.speculation, defaults.pace.barge_in_ms) == ("llm", 300)
    assert (defaults.partial_share, defaults.resume_answers) == (0.0, False)
    assert gateway_options(config()).defaults.speculation == "tts"
