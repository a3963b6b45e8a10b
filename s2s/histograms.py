"""How long the steps of turns took, over every session of a gateway."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestration.session.timeline import TurnRecord

BUCKETS_S = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.3, 2.0, 3.0, 5.0, 10.0)
STEPS = {
    "last_speech_to_first_audio": ("last_speech", "first_audio_sent"),
    "last_speech_to_endpoint": ("last_speech", "endpoint"),
    "endpoint_to_first_audio": ("endpoint", "first_audio_sent"),
    "stt": ("stt_start", "transcript_done"),
    "llm_first_token": ("llm_start", "first_token"),
    "llm_first_clause": ("llm_start", "first_clause"),
    "tts_first_audio": ("tts_start", "first_audio"),
}
"""From one moment of a turn's record to another."""


@dataclass
class TurnHistograms:
    """For each step: turns in each bucket (the last: longer than all), and their seconds together."""

    steps: dict[str, tuple[list[int], float]] = field(
        default_factory=lambda: {step: ([0] * (len(BUCKETS_S) + 1), 0.0) for step in STEPS}
    )

    def add(self, turn: TurnRecord) -> None:
        """Count a turn that is over; a step that it did not come to is left out."""
        for step, (start, end) in STEPS.items():
            begun, ended = getattr(turn, start), getattr(turn, end)
            if begun is None or ended is None:
                continue
            seconds = max(0.0, ended - begun)
            counts, total = self.steps[step]
            counts[next((i for i, edge in enumerate(BUCKETS_S) if seconds <= edge), len(BUCKETS_S))] += 1
            self.steps[step] = (counts, total + seconds)
