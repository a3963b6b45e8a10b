"""What the benches are held to with `--check`: name of the figure → the most it may be."""

from __future__ import annotations

QUEUE = {
    "turn_hops_p95_ms": 15.0,
    "frames_cores": 0.5,
}
WIRE = {"wire_in_cores": 0.5, "wire_out_cores": 0.5}
STARTUP = {"ready_s": 25.0}
FAULTS = {
    "kills_that_came_too_late": 0,
    "turns_not_completed": 0,
    "wer_max": 0.2,
    "clauses_missing": 0,
    "clauses_doubled": 0,
}
STT = {
    "tiny_en_whisper_wer": 0.1,
    "tiny_en_faster_whisper_wer": 0.1,
    "base_whisper_wer": 0.1,
    "base_faster_whisper_wer": 0.1,
}
TURNS = {
    "server_vad_audible_p50_ms": 800,
    "server_vad_audible_p95_ms": 1300,
    "semantic_vad_audible_p50_ms": 700,
    "server_vad_beyond_endpointing_p50_ms": 300,
    "server_vad_speech_started_p95_ms": 250,
    "server_vad_pause_300_split_share": 0,
    "server_vad_pause_300_inside_split_share": 0,
    "semantic_vad_pause_300_split_share": 0,
    "semantic_vad_pause_600_split_share": 0.1,
    "semantic_vad_pause_300_inside_split_share": 0,
    "semantic_vad_pause_600_inside_split_share": 0.1,
    "noise_turns": 0,
    "barge_in_speech_started_p95_ms": 500,
    "barge_in_missed_share": 0,
    "backchannel_cut_share": 0.2,
}


def broken(figures: dict[str, float], bounds: dict[str, float]) -> list[str]:
    """In words, each bound that `figures` do not keep."""
    return [
        f"{name} is {figures[name]:.3g}, more than {most:g}"
        for name, most in bounds.items()
        if figures[name] > most
    ]
