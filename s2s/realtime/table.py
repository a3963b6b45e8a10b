"""The table of every Realtime event, made from OpenAI's models and ours: `python -m s2s.realtime.table` prints it."""

from __future__ import annotations

from typing import Any, get_args

from orchestration.session import events

WHY_NOT = {
    "conversation.created": "of the beta protocol; `session.created` is the first event",
    "conversation.item.created": "of the beta protocol; `conversation.item.added` and `.done` say it",
    "input_audio_buffer.dtmf_event_received": "telephone keys come only over SIP, which is not built",
    "mcp_list_tools": "MCP servers are refused with a clear error; declare a function",
    "response.mcp_call": "MCP servers are refused with a clear error; declare a function",
}
NOTES = {
    "output_audio_buffer.clear": "where the transport paces the sound; over WebSocket the client owns its buffer",
    "output_audio_buffer.started": "where the transport paces the sound",
    "output_audio_buffer.stopped": "where the transport paces the sound",
    "output_audio_buffer.cleared": "where the transport paces the sound",
    "conversation.item.input_audio_transcription.segment": "never sent: no model here tells speakers apart",
}


def _openai(union: Any) -> list[str]:
    """The `type` of each arm of one of OpenAI's event unions."""
    return [get_args(arm.model_fields["type"].annotation)[0] for arm in get_args(get_args(union)[0])]


def _ours(union: Any) -> set[str]:
    return {str(arm.__struct_config__.tag) for arm in get_args(union)}


def _reason(name: str) -> str:
    return next((why for prefix, why in WHY_NOT.items() if name.startswith(prefix)), "")


def events_table() -> str:
    """Markdown; an event that is neither supported nor explained raises `KeyError`."""
    from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent

    lines = ["| from | event | | |", "|---|---|---|---|"]
    sides = (
        ("client", RealtimeClientEvent, events.ClientEvent),
        ("server", RealtimeServerEvent, events.ServerEvent),
    )
    for side, theirs, mine in sides:
        supported = _ours(mine)
        for name in sorted(_openai(theirs)):
            if name in supported:
                lines.append(f"| {side} | `{name}` | supported | {NOTES.get(name, '')} |")
            elif _reason(name):
                lines.append(f"| {side} | `{name}` | not sent | {_reason(name)} |")
            else:
                raise KeyError(f"{name}: neither supported nor explained")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(events_table(), end="")
