"""What the benches are held to with `--check`: name of the figure → the most it may be."""

from __future__ import annotations

QUEUE = {
    "turn_hops_p95_ms": 15.0,
    "frames_cores": 0.5,
}
STARTUP = {"ready_s": 25.0}
FAULTS = {
    "kills_that_came_too_late": 0,
    "turns_not_completed": 0,
    "wer_max": 0.2,
    "clauses_missing": 0,
    "clauses_doubled": 0,
}


def broken(figures: dict[str, float], bounds: dict[str, float]) -> list[str]:
    """In words, each bound that `figures` do not keep."""
    return [
        f"{name} is {figures[name]:.3g}, more than {most:g}"
        for name, most in bounds.items()
        if figures[name] > most
    ]
