"""A turn's record as one line of text: when each thing came, from the end of what was said.  No words of anybody."""

from __future__ import annotations

from orchestration.session.timeline import TurnRecord

MOMENTS = {
    "pause": "pause_seen",
    "endpoint": "endpoint",
    "transcript": "transcript_done",
    "token": "first_token",
    "clause": "first_clause",
    "audio": "first_audio",
    "sent": "first_audio_sent",
    "done": "done",
    "playback end": "playback_end",
    "cancel": "cancelled",
}
"""As shown → of the record."""


def timeline_line(session: str, turn: TurnRecord) -> str:
    """Milliseconds from the last speech; from the endpoint where the client committed, or from what came first."""
    moments = [(shown, getattr(turn, name)) for shown, name in MOMENTS.items()]
    known = [(shown, at) for shown, at in moments if at is not None]
    zero = next((at for at in (turn.last_speech, turn.endpoint) if at is not None), None)
    if zero is None:
        zero = known[0][1] if known else 0.0
    shown = "  ".join(f"{name} {1000 * (at - zero):+.0f}" for name, at in known)
    return f"{session} turn {turn.number} {turn.status}: speech {turn.speech_ms} ms  {shown}"
