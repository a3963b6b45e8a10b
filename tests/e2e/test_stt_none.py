"""`--stt none`: the LLM is given the sound itself."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from actors.assets import question
from tests.actors.scripted_server import scripted_server, sse

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
ANSWER = "That is Paris."


def chunk(content: str, finish_reason: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish_reason}]}


def test_an_llm_over_http_hears_the_question_and_its_answer_is_spoken(tmp_path: Path) -> None:
    with scripted_server() as llm:
        llm.says(*(sse(chunk(ANSWER), chunk("", "stop"), "[DONE]") for _ in range(2)))
        command = [
            *(sys.executable, "-m", "s2s.run", "ask", "--json", "--output-dir", str(tmp_path)),
            *("--stt", "none", "--llm", "chat-completions", "--llm_audio_input", "true"),
            *("--responses_api_base_url", llm.base_url),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert [row["stage"] for row in report["placement"]] == ["vad", "llm", "tts"]
    (turn,) = report["turns"]
    assert turn["answer"].strip() == ANSWER
    assert soundfile.info(turn["output"]).duration > 0.5
    warm_up, asked = (each.json["messages"] for each in llm.received)
    assert warm_up[-1]["content"] == "Say hello."
    (part,) = asked[-1]["content"]
    heard = base64.b64decode(part["input_audio"]["data"])[44:]
    said = question().read_bytes()[44:]
    assert heard[: len(said)] == said
