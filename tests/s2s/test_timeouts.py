"""Who loses patience first: the queue, which can send work elsewhere, before the session, which can only fail."""

from __future__ import annotations

import pytest

from actors.queue.core import QueueOptions
from orchestration.session.config import StageTimeouts


@pytest.mark.parametrize("stage", ["stt", "llm", "tts"])
def test_an_answer_outlives_the_loading_of_a_replacement(stage: str) -> None:
    patience_s = getattr(StageTimeouts(), f"{stage}_s")
    assert patience_s > QueueOptions().give_up_s > QueueOptions().stage_timeout_s
