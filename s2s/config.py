"""One typed configuration tree: profile < file < environment < flags.

Every setting has one flat name, spelled the same as a flag (`--stt_device`), in the environment (`S2S_STT_DEVICE`)
and in a file (`stt: {device: …}` or `stt_device: …`); `-` and `_` are the same.  Options of a backend are named
`<stage>_<option>` or `<backend>_<option>` and are checked against the options dataclass of the chosen backend.
Nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, get_type_hints

from actors.registry import NONE, STAGES
from orchestration.cluster_settings import RaySettings


class ConfigError(ValueError):
    """A setting that is unknown, has no value or a wrong one; says where it came from."""


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def _mapping(help: str) -> Any:
    return field(default_factory=dict, metadata={"help": help})


@dataclass(frozen=True)
class StageSettings:
    """What one stage runs and where."""

    backend: str = _setting("", "which backend (also --stt, --llm, --tts)")
    device: str | None = _setting(
        None,
        "auto, cpu, cuda, cuda:1, 'cuda:0,cuda:1' (a replica each), 'cuda:0+cuda:1' (one over both), mps",
    )
    dtype: str = _setting("auto", "auto, float32, float16 or bfloat16 (also --<stage>_torch_dtype)")
    threads: int | None = _setting(None, "threads of the model; default min(4, cores), VAD and turn 1")
    cpus: float | None = _setting(None, "CPUs reserved in Ray, fractions allowed")
    gpu_fraction: float | None = _setting(None, "share of one GPU, 0..1")
    gpu_memory: str | None = _setting(None, "GPU memory of one replica, such as 6GB, instead of a share")
    replicas: str = _setting("1", "number of replicas, n or min..max")
    standby: int = _setting(0, "loaded replicas that wait to stand in for a dead one, 0 or 1")
    labels: dict[str, str] = _mapping("only on nodes with these labels, such as 'tier=gpu'")
    resources: dict[str, float] = _mapping("custom Ray resources that a replica needs")
    python: str | None = _setting(None, "interpreter of this stage's own environment (same Python and Ray)")
    options: dict[str, Any] = field(default_factory=dict)
    """The backend's own options, by the names of its options dataclass."""


@dataclass(frozen=True)
class ServerSettings:
    """The Realtime server."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(8765, "port to listen on")
    api_key: str | None = _setting(None, "key that clients must present")
    api_key_file: str | None = _setting(None, "file with such keys, one a line")
    tls_cert: str | None = _setting(None, "PEM file with the certificate chain: https and wss")
    tls_key: str | None = _setting(None, "PEM file with the certificate's private key")
    allow_origin: tuple[str, ...] = _setting(
        (), "origins of other sites whose pages may connect, comma separated; '*': any"
    )
    allow_16k: bool = _setting(False, "clients may declare audio/pcm at 16 kHz")
    transcribe: bool = _setting(False, "transcribe what is said for every client, also where it does not ask")
    max_sessions: int = _setting(8, "conversations at once; more are refused at connect")
    max_session_s: float = _setting(3600.0, "longest conversation; 0: no end")
    max_idle_s: float = _setting(0.0, "longest time without a client event; 0: any")
    timeline: bool = _setting(False, "print a line for each turn: when its steps came")
    drain_s: float = _setting(30.0, "how long running answers may go on when the server is told to end")


@dataclass(frozen=True)
class SessionSettings:
    """What a conversation begins with, until the client says otherwise."""

    language: str = _setting("auto", "spoken language, ISO 639-1 code, or auto: detected for each utterance")
    enable_lang_prompt: bool = _setting(False, "tell the LLM to reply in the language that was spoken")
    language_voices: dict[str, str] = _mapping(
        "voices by language where the client names none, such as 'fr=ff_siwis,ja=jf_alpha'"
    )
    instructions: str = _setting(
        "You are a friendly voice assistant. Answer in one or two short spoken sentences.", "system prompt"
    )
    turn_detection: str = _setting("server_vad", "server_vad, semantic_vad or none (the client commits)")
    speculation: str = _setting(
        "tts", "what may begin before a turn is sure to be over: off, stt, llm or tts"
    )
    barge_in_ms: int = _setting(
        450, "speech in a row that interrupts an answer, ms: less is faster, more takes fewer nods for it"
    )
    partial_share: float = _setting(
        0.25, "time of one STT replica for words while they are spoken, 0..1; 0: none"
    )
    resume_answers: bool = _setting(True, "an answer that was cut by a sound without words goes on")


@dataclass(frozen=True)
class Config:
    """The whole tree."""

    profile: str = _setting("embedded", "embedded, laptop, one-gpu, two-gpu, cluster or mac")
    device: str = _setting("auto", "device of every stage that names none itself")
    server: ServerSettings = field(default_factory=ServerSettings)
    session: SessionSettings = field(default_factory=SessionSettings)
    ray: RaySettings = field(default_factory=RaySettings)
    vad: StageSettings = field(default_factory=StageSettings)
    turn: StageSettings = field(default_factory=StageSettings)
    stt: StageSettings = field(default_factory=StageSettings)
    llm: StageSettings = field(default_factory=StageSettings)
    tts: StageSettings = field(default_factory=StageSettings)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each value came from, by its path such as `stt.device`; absent: the default."""

    def stage(self, name: str) -> StageSettings:
        """The settings of stage `name`."""
        settings: StageSettings = getattr(self, name)
        return settings

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that run."""
        return tuple(name for name in STAGES if self.stage(name).backend not in ("", NONE))


@dataclass(frozen=True)
class Setting:
    """One leaf of the tree."""

    name: str
    """Flat name, as in the flag."""
    path: str
    """Place in the tree: `section.field` or `field`."""
    type: Any
    default: Any
    help: str


SECTION_PREFIX = {"server": "", "session": "", "ray": "ray_", **{stage: f"{stage}_" for stage in STAGES}}
_SECTIONS: dict[str, type[Any]] = {
    "server": ServerSettings,
    "session": SessionSettings,
    "ray": RaySettings,
    **dict.fromkeys(STAGES, StageSettings),
}
ALIASES = {
    **{stage: f"{stage}_backend" for stage in STAGES},
    **{f"{stage}_torch_dtype": f"{stage}_dtype" for stage in STAGES},
}
"""Other spellings of a setting."""
MAC_SWITCHES = ("mac_optimal_settings", "local_mac_optimal_settings")
"""Switches that choose the mac profile."""


def settings() -> dict[str, Setting]:
    """Every setting by its flat name (options of backends are not among them)."""
    found: dict[str, Setting] = {}
    for section, prefix in (("", ""), *SECTION_PREFIX.items()):
        cls = _SECTIONS.get(section, Config)
        hints = get_type_hints(cls)
        for leaf in fields(cls):
            if "help" not in leaf.metadata:
                continue
            default = leaf.default if leaf.default is not MISSING else {}
            path = f"{section}.{leaf.name}" if section else leaf.name
            name = prefix + leaf.name
            found[name] = Setting(name, path, hints[leaf.name], default, leaf.metadata["help"])
    return found


def canonical(name: str) -> str:
    """The flat name that `name` (a flag without its dashes, an environment name without its prefix) means."""
    flat = name.replace("-", "_").lower()
    return ALIASES.get(flat, flat)
