"""`@openai/agents`: its RealtimeSession over its own WebSocket transport, with only the address changed."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.assets import cache_folder
from tests.e2e.sound import is_audible, spoken

pytestmark = pytest.mark.e2e

SCRIPT = Path(__file__).parent / "agents"
INSTALL_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 150.0


@pytest.fixture(scope="module")
def program() -> Path:
    """The script beside its packages, which npm installs once into the cache."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are needed to run @openai/agents")
    folder = cache_folder() / "test-agents-sdk"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (SCRIPT / "package.json").read_text()
    installed = folder / "installed.json"
    if not installed.exists() or installed.read_text() != wanted:
        (folder / "package.json").write_text(wanted)
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--omit=dev"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
        if done.returncode:
            pytest.skip(f"npm could not install @openai/agents: {done.stderr[-500:]}")
        installed.write_text(wanted)
    shutil.copy(SCRIPT / "talk.mjs", folder)
    return folder / "talk.mjs"


Talk = Callable[[str], dict[str, Any]]


@pytest.fixture
def talk(program: Path, server: str, question_file: Path, tmp_path: Path) -> Talk:
    """Runs one scenario; what it printed."""
    pcm = tmp_path / "question.pcm"
    pcm.write_bytes(spoken(question_file, silence_s=2.0))
    address = f"{server.replace('http', 'ws', 1)}/v1/realtime?model=gpt-realtime"

    def run(scenario: str) -> dict[str, Any]:
        done = subprocess.run(
            ["node", str(program), scenario, address, str(pcm)],
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        happened: dict[str, Any] = json.loads(done.stdout)
        assert happened["errors"] == []
        return happened

    return run


def test_a_voice_turn(talk: Talk) -> None:
    happened = talk("voice")
    assert happened["status"] == "completed"
    assert is_audible(base64.b64decode(happened["audio"]))
    user, assistant = happened["history"]
    assert (user["role"], assistant["role"]) == ("user", "assistant")
    assert "capital of france" in user["content"][0]["transcript"].lower()
    assert assistant["content"][0]["transcript"].strip()


def test_an_interruption_tells_the_server_what_was_heard(talk: Talk) -> None:
    happened = talk("interruption")
    assert (happened["status"], happened["reason"]) == ("cancelled", "turn_detected")
    assert happened["interrupted"] == 1
    assert happened["audio_end_ms"] >= 0


def test_a_tool_runs_and_its_result_is_spoken(talk: Talk) -> None:
    happened = talk("tool")
    assert len(happened["calls"]) >= 1
    assert all(isinstance(highest, int) for highest in happened["calls"])
    assert is_audible(base64.b64decode(happened["audio"]))
