"""The HTTP endpoints, with curl."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from s2s.audio import read_audio
from tests.e2e.sound import is_audible

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def curl(*arguments: str | Path) -> str:
    command = ["curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "60"]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def post(address: str, body: dict[str, Any], *more: str | Path) -> str:
    return curl(address, "--header", "Content-Type: application/json", "--data", json.dumps(body), *more)


def test_it_is_ready_and_every_stage_is_there(server: str) -> None:
    health = json.loads(curl(f"{server}/health"))
    assert health["status"] == "ready"
    assert set(health["stages"]) == {"vad", "turn", "stt", "llm", "tts"}
    assert all(health["stages"].values())


def test_models_and_metrics(server: str) -> None:
    models = json.loads(curl(f"{server}/v1/models"))["data"]
    assert {model["stage"] for model in models} == {"vad", "turn", "stt", "llm", "tts"}
    metrics = curl(f"{server}/metrics")
    assert "s2s_sessions 0.0" in metrics
    assert 's2s_replicas{stage="llm"} 1.0' in metrics


def test_text_becomes_a_file_of_speech_and_text_again(server: str, tmp_path: Path) -> None:
    file = tmp_path / "speech.wav"
    speech = {
        "model": "tts-1",
        "voice": "alloy",
        "input": "Good morning to everyone.",
        "response_format": "wav",
    }
    post(f"{server}/v1/audio/speech", speech, "--output", file)
    assert is_audible(read_audio(file).pcm)
    form = ["--form", f"file=@{file}", "--form", "model=whisper-1", "--form", "response_format=text"]
    assert "good morning" in curl(f"{server}/v1/audio/transcriptions", *form).lower()


def test_a_chat_streams(server: str) -> None:
    body = {
        "model": "local",
        "stream": True,
        "max_tokens": 16,
        "messages": [{"role": "user", "content": "Say hello."}],
    }
    lines = [line for line in post(f"{server}/v1/chat/completions", body, "--no-buffer").splitlines() if line]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks).strip()
    assert chunks[-1]["choices"][0]["finish_reason"] in ("stop", "length")


def test_a_client_secret_is_made(server: str) -> None:
    made = json.loads(post(f"{server}/v1/realtime/client_secrets", {"session": {"type": "realtime"}}))
    assert made["value"].startswith("ek_")
    assert made["session"]["object"] == "realtime.session"


def test_a_mistake_is_answered_in_openais_form(server: str) -> None:
    command = ["curl", "--silent", "--write-out", "\n%{http_code}", "--data", "not json"]
    done = subprocess.run(
        [*command, f"{server}/v1/chat/completions"], capture_output=True, text=True, timeout=60, check=True
    )
    body, _, status = done.stdout.rpartition("\n")
    assert status == "400"
    assert json.loads(body)["error"]["code"] == "invalid_json"


def test_another_sites_page_is_refused(server: str) -> None:
    command = ["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}"]
    done = subprocess.run(
        [*command, "--header", "Origin: https://elsewhere.example", f"{server}/v1/models"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "401"


def test_the_page_needs_nothing_from_elsewhere(server: str) -> None:
    page = curl(f"{server}/")
    assert "<button" in page
    for name in ("app.js", "captions.js", "sound.js", "worklets.js", "style.css"):
        text = curl(f"{server}/web/{name}")
        assert "http://" not in text
        assert "https://" not in text
