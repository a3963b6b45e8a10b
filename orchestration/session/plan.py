"""What one response is to be: the session's settings and the client's overrides, resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from actors.messages import Tool as LlmTool
from orchestration.session.config import (
    DEFAULT_VOICE,
    AudioFormat,
    FunctionChoice,
    RealtimeSession,
    SessionDefaults,
    Tool,
)
from orchestration.session.conversation import Conversation, Entry, entry_of
from orchestration.session.errors import ClientError
from orchestration.session.events import ResponseParams
from orchestration.session.items import Item, ItemReference
from orchestration.session.settings import check_choice, check_max_tokens, check_modalities, check_tools


@dataclass(frozen=True)
class Plan:
    """One response, resolved."""

    instructions: str
    modality: Literal["text", "audio"]
    voice: str
    """As the client names it."""
    tts_voice: str | None
    """As the TTS backend names it; None: its default."""
    speed: float
    format: AudioFormat
    tools: list[LlmTool]
    tool_choice: str
    parallel_tool_calls: bool
    max_output_tokens: int | Literal["inf"]
    metadata: dict[str, str] | None
    in_conversation: bool
    """False: out of band, the conversation does not change."""
    input: list[Entry] | None
    """The prompt's items where the client gave them; None: the conversation."""


def resolve(
    session: RealtimeSession, params: ResponseParams, defaults: SessionDefaults, conversation: Conversation
) -> Plan:
    """Raises `ClientError` where an override cannot hold."""
    output = params.audio.output if params.audio is not None else None
    voice = (output.voice if output else None) or session.audio.output.voice
    modalities = session.output_modalities if params.output_modalities is None else params.output_modalities
    check_modalities(modalities, "response.output_modalities")
    max_tokens = session.max_output_tokens if params.max_output_tokens is None else params.max_output_tokens
    check_max_tokens(max_tokens, "response.max_output_tokens")
    tools = session.tools if params.tools is None else params.tools
    check_tools([tool.name for tool in tools], "response.tools")
    if params.conversation not in (None, "auto", "none", conversation.id):
        raise ClientError("invalid_value", 'Expected "auto" or "none".', "response.conversation")
    parallel = params.parallel_tool_calls
    choice = params.tool_choice or session.tool_choice
    if params.tools is not None and params.tool_choice is None and isinstance(choice, FunctionChoice):
        choice = "auto"  # the session's choice is among the session's tools
    check_choice(choice, [tool.name for tool in tools], "response.tool_choice")
    return Plan(
        instructions=session.instructions if params.instructions is None else params.instructions,
        modality=modalities[0],
        voice=voice,
        tts_voice=defaults.voices.get(voice, None if voice == DEFAULT_VOICE else voice),
        speed=session.audio.output.speed,
        format=(output.format if output else None) or session.audio.output.format,
        tools=[LlmTool(tool.name, tool.description, tool.parameters) for tool in tools],
        tool_choice=_choice(choice, tools),
        parallel_tool_calls=session.parallel_tool_calls if parallel is None else parallel,
        max_output_tokens=max_tokens,
        metadata=params.metadata,
        in_conversation=params.conversation != "none",
        input=None if params.input is None else [_entry(item, conversation) for item in params.input],
    )


def _choice(choice: str | FunctionChoice, tools: list[Tool]) -> str:
    if isinstance(choice, FunctionChoice):
        return f"function:{choice.name}"
    return choice if tools else "none"


def _entry(item: Item | ItemReference, conversation: Conversation) -> Entry:
    if isinstance(item, ItemReference):
        return conversation.get(item.id, "response.input")
    return entry_of(item)
