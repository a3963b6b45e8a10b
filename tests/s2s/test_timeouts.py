"""Who loses patience first: a backend with its servers, then the queue, which can send work elsewhere, and last the
session, which can only fail."""

from __future__ import annotations

import pytest

from actors.queue.core import QueueOptions
from orchestration.session.config import StageTimeouts
from s2s.gateway import gateway_options
from s2s.layers import load

REMOTE = {"stt": "openai", "llm": "chat-completions", "tts": "openai"}


@pytest.mark.parametrize("stage", ["stt", "llm", "tts"])
def test_an_answer_outlives_the_loading_of_a_replacement(stage: str) -> None:
    patience_s = getattr(StageTimeouts(), f"{stage}_s")
    assert patience_s > QueueOptions().give_up_s > QueueOptions().stage_timeout_s


@pytest.mark.parametrize("fallbacks", ["", "http://b/v1"])
@pytest.mark.parametrize("stage", list(REMOTE))
def test_a_replica_that_hangs_on_its_servers_is_noticed_before_the_session_gives_up(
    stage: str, fallbacks: str
) -> None:
    flags: list[tuple[str, str | None]] = [(stage, REMOTE[stage])]
    if fallbacks:
        flags.append((f"{stage}_fallback", fallbacks))
    noticed_s = gateway_options(load(flags)).queues[stage].stage_timeout_s
    assert noticed_s < getattr(StageTimeouts(), f"{stage}_s")
