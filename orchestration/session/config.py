"""What a session is set to: OpenAI's session object, and the server's own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

DEFAULT_INSTRUCTIONS = (
    "You are a friendly voice assistant. "
    "Answer in one to three short spoken sentences, without lists or markup."
)

DEFAULT_VOICE = "default"
"""The voice that the TTS backend is set to, whichever that is."""


class Pcm(msgspec.Struct, tag_field="type", tag="audio/pcm"):
    """16-bit little endian samples; 16 kHz only where the server allows it."""

    rate: Literal[16000, 24000] = 24000


class Pcmu(msgspec.Struct, tag_field="type", tag="audio/pcmu"):
    """G.711 µ-law at 8 kHz."""


class Pcma(msgspec.Struct, tag_field="type", tag="audio/pcma"):
    """G.711 A-law at 8 kHz."""


AudioFormat = Pcm | Pcmu | Pcma


class ServerVad(msgspec.Struct, tag_field="type", tag="server_vad"):
    """A turn ends after silence."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(msgspec.Struct, tag_field="type", tag="semantic_vad"):
    """A turn ends when what was said sounds complete."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection = ServerVad | SemanticVad


class Transcription(msgspec.Struct, omit_defaults=True):
    """How user speech is transcribed for the client."""

    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    languages: list[str] | None = None
    keywords: list[str] | None = None
    delay: str | None = None


class NoiseReduction(msgspec.Struct, omit_defaults=True):
    type: Literal["near_field", "far_field"] | None = None
    strength: float | None = None


class Tool(msgspec.Struct, tag_field="type", tag="function"):
    """A function that the client runs."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})


class FunctionChoice(msgspec.Struct, tag_field="type", tag="function"):
    name: str


ToolChoice = Literal["auto", "none", "required"] | FunctionChoice


class RetentionRatio(msgspec.Struct, tag_field="type", tag="retention_ratio", omit_defaults=True):
    retention_ratio: float
    token_limits: dict[str, int] | None = None


class AudioInput(msgspec.Struct):
    format: AudioFormat = msgspec.field(default_factory=Pcm)
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    turn_detection: TurnDetection | None = msgspec.field(default_factory=ServerVad)


class AudioOutput(msgspec.Struct):
    format: AudioFormat = msgspec.field(default_factory=Pcm)
    voice: str = ""
    speed: float = 1.0


class Audio(msgspec.Struct):
    input: AudioInput = msgspec.field(default_factory=AudioInput)
    output: AudioOutput = msgspec.field(default_factory=AudioOutput)


class RealtimeSession(msgspec.Struct, tag_field="type", tag="realtime"):
    """The effective session, as `session.created` and `session.updated` carry it."""

    id: str
    model: str
    instructions: str
    object: Literal["realtime.session"] = "realtime.session"
    expires_at: int | UnsetType = UNSET
    output_modalities: list[Literal["text", "audio"]] = msgspec.field(default_factory=lambda: ["audio"])
    tools: list[Tool] = []
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    max_output_tokens: int | Literal["inf"] = "inf"
    tracing: Literal["auto"] | dict[str, Any] | None = None
    truncation: Literal["auto", "disabled"] | RetentionRatio = "auto"
    prompt: None = None
    include: list[Literal["item.input_audio_transcription.logprobs"]] | None = None
    reasoning: dict[str, Any] | UnsetType = UNSET
    audio: Audio = msgspec.field(default_factory=Audio)


class TranscriptionAudio(msgspec.Struct):
    input: AudioInput = msgspec.field(default_factory=AudioInput)


class TranscriptionSession(msgspec.Struct, tag_field="type", tag="transcription"):
    """A session that only transcribes."""

    id: str
    object: Literal["realtime.transcription_session"] = "realtime.transcription_session"
    expires_at: int | UnsetType = UNSET
    include: list[Literal["item.input_audio_transcription.logprobs"]] | None = None
    audio: TranscriptionAudio = msgspec.field(default_factory=TranscriptionAudio)


EffectiveSession = RealtimeSession | TranscriptionSession


@dataclass(frozen=True)
class StageTimeouts:
    """Longest wait for the next result of a stage, after its due time, in seconds.

    STT has the length of the sound besides.  What VAD and turn detection don't say in time is decided without them.
    The queue itself watches the others, and an answer waits there while a dead replica's model is loaded again: so
    theirs are longer than its `give_up_s`.
    """

    vad_s: float = 10.0
    turn_s: float = 2.0
    stt_s: float = 180.0
    llm_s: float = 180.0
    tts_s: float = 180.0


@dataclass(frozen=True)
class Limits:
    """What one session may use."""

    session_s: float | None = 3600.0
    """Longest session; None: no end."""
    idle_s: float | None = None
    """Longest time without a client event; None: any."""
    buffered_audio_s: float = 900.0
    """Audio in the input buffer that has not been committed."""
    items: int = 10_000
    """Items in the conversation."""
    responses_beside: int = 16
    """Responses out of band at a time."""
    prompt_characters: int = 24_000
    """Longest history in a prompt; beyond it the oldest turns are left out."""
    tool_rounds: int = 8
    """Tool calls in a row without a word of the user; then the model must answer."""
    requests_per_minute: int = 100_000
    """Reported in `rate_limits.updated`."""


@dataclass(frozen=True)
class Pace:
    """When things are decided in a turn; sound is counted in samples, so these are of sound, not of the clock."""

    start_ms: int = 96
    """Speech in a row that starts a turn."""
    pause_ms: int = 32
    """Silence after which work for the turn begins although it may go on."""
    barge_in_ms: int = 450
    """Speech in a row that interrupts an answer, twice as long where its first words are a backchannel or not
    understood; shorter speech does so when its words ask for the floor.  This is the trade-off between speed and
    false cuts."""


Speculation = Literal["off", "stt", "llm", "tts"]


@dataclass(frozen=True)
class SessionDefaults:
    """The server's options for a session: what holds where the client says nothing."""

    model: str = "s2s"
    instructions: str = DEFAULT_INSTRUCTIONS
    voice: str = DEFAULT_VOICE
    voices: Mapping[str, str] = field(default_factory=dict)
    """Names that clients use (OpenAI's) to the TTS backend's; others pass unchanged."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """A first `session.update` (from the URL, or the client secret), applied before `session.created`."""
    expires_at: int | None = None
    """When the session ends, in Unix seconds, for the client to read; `limits.session_s` is what ends it."""
    transcription: Transcription | None = None
    """Input transcription where the client does not say; OpenAI's default is none."""
    hears: Literal["transcript", "audio"] = "transcript"
    """What the LLM gets of speech: its transcript, or the sound itself (STT `none`)."""
    language: str | None = None
    """ISO 639-1 code of speech where the client names none; None: STT finds out."""
    names_language: bool = False
    """Whether the LLM is told to reply in the language that was spoken."""
    language_voices: Mapping[str, str] = field(default_factory=dict)
    """Voices of the TTS backend by ISO 639-1 code of what they are to say, where the client chose no voice."""
    voice_languages: tuple[str, ...] | None = None
    """What the TTS backend speaks; None: not known.  A clause that shows no language is not taken for one that the
    voice lacks: STT may have misheard which was spoken."""
    speculation: Speculation = "tts"
    """What may begin at a pause, before the turn is sure to be over; each level includes those before it."""
    partial_share: float = 0.25
    """Time of one STT replica that interim transcripts may take while a person speaks; 0: there are none."""
    resume_answers: bool = True
    """Whether an answer that was cut by a sound without words goes on."""
    temperature: float | None = None
    seed: int = 0
    allow_16k: bool = False
    """Whether clients may declare `audio/pcm` at 16 kHz."""
    paced_output: bool = False
    """Whether the transport plays in real time (WebRTC, ZeroMQ): then `output_audio_buffer.*` events are sent."""
    timeouts: StageTimeouts = StageTimeouts()
    limits: Limits = Limits()
    pace: Pace = Pace()
