"""Reads the layers of the configuration and merges them: profile < file < environment < flags."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from actors.registry import ENTRIES, NONE, STAGES, Entry, UnknownBackend, find
from s2s.config import MAC_SWITCHES, SECTION_PREFIX, Config, ConfigError, Setting, canonical, settings

ENVIRONMENT_PREFIX = "S2S_"
ENVIRONMENT_ELSEWHERE = frozenset({"S2S_CACHE", "S2S_CONFIG"})
"""Variables that are not settings: the cache folder of assets, and the configuration file."""
OPTION_ALIASES = {"model_name": "model"}
"""The reference's name of an option, where ours is another."""
_TRUE = "true"
PROGRAMS = frozenset(f"{stage}.python" for stage in STAGES)
"""Paths of settings that name a program."""


@dataclass(frozen=True)
class Given:
    """One value that a layer gives."""

    name: str
    value: Any
    origin: str
    """In words: `flag --stt_device`, `environment S2S_PORT`, `file my.yaml`, `profile embedded`."""


Layer = list[Given]


def load(
    flags: Sequence[tuple[str, str | None]] = (),
    environ: Mapping[str, str] | None = None,
    file: str | Path | None = None,
) -> Config:
    """The effective configuration.

    `flags`: names as typed without their dashes, with their value; None: a switch.  `file`: a YAML file; None: what
    the flag `config` or `S2S_CONFIG` names, if anything.  Raises `ConfigError`.
    """
    environ = environ or {}
    named = [value for name, value in flags if canonical(name) == "config"]
    path = file or (named[-1] if named else environ.get("S2S_CONFIG"))
    flag_layer = [
        Given(canonical(name), _TRUE if value is None else value, f"flag --{name}")
        for name, value in flags
        if canonical(name) != "config"
    ]
    environment_layer = [
        Given(canonical(key.removeprefix(ENVIRONMENT_PREFIX)), value, f"environment {key}")
        for key, value in sorted(environ.items())
        if key.startswith(ENVIRONMENT_PREFIX) and key not in ENVIRONMENT_ELSEWHERE
    ]
    file_layer = _read(Path(path), f"file {path}") if path else []
    layers = [_mac(layer) for layer in (file_layer, environment_layer, flag_layer)]
    chosen = [given for layer in layers for given in layer if given.name == "profile"]
    profile = chosen[-1] if chosen else Given("profile", "embedded", "default")
    return _merge([_profile(profile), *layers])


def profiles() -> list[str]:
    """Names of the profiles that ship."""
    return sorted(entry.name.removesuffix(".yaml") for entry in (files("s2s") / "profiles").iterdir())


def _profile(given: Given) -> Layer:
    name = str(given.value).replace("_", "-")
    if name not in profiles():
        raise ConfigError(
            f"profile {given.value!r} ({given.origin}) is not known.{_near(name, profiles())} "
            f"Known: {', '.join(profiles())}."
        )
    text = (files("s2s") / "profiles" / f"{name}.yaml").read_text()
    origin = f"profile {name}"
    return [Given("profile", name, given.origin), *_flatten(text, origin)]


def _read(path: Path, origin: str) -> Layer:
    try:
        return _flatten(path.expanduser().read_text(), origin)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {origin} cannot be read: {error}.") from error


def _flatten(text: str, origin: str) -> Layer:
    """A YAML document as flat names: sections become prefixes, `stt: whisper` names a backend."""
    import yaml

    try:
        tree = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin} is not YAML: {error}.") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{origin} must hold settings by name, not a {type(tree).__name__}.")
    layer: Layer = []
    for key, value in tree.items():
        name = str(key).replace("-", "_")
        if isinstance(value, dict) and name in SECTION_PREFIX:
            prefix = SECTION_PREFIX[name]
            layer += [Given(canonical(f"{prefix}{leaf}"), item, origin) for leaf, item in value.items()]
        else:
            layer.append(Given(canonical(name), value, origin))
    return layer


def _mac(layer: Layer) -> Layer:
    """`--mac-optimal-settings` in either spelling is a profile."""
    switched = [given for given in layer if given.name in MAC_SWITCHES]
    rest = [given for given in layer if given.name not in MAC_SWITCHES]
    on = [given for given in switched if str(given.value).lower() in (_TRUE, "1", "yes")]
    return [*(Given("profile", "mac", given.origin) for given in on), *rest]


def _merge(layers: list[Layer]) -> Config:
    """Merge `layers`, lowest first."""
    known = settings()
    named = _backends_named(layers)
    final = {stage: backend for own in named for stage, backend in own.items()}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    level_of: dict[str, int] = {}
    for level, layer in enumerate(layers):
        for given in layer:
            name = _stage_name(given, final, lenient=level < 2)
            if name is None:
                continue
            setting = known.get(name) or _option(given, name, named[level], final, known)
            if setting is None:
                continue
            value = _convert(setting, given)
            if (before := values.get(setting.path)) is not None and isinstance(value, dict):
                value = {**before, **value}
            values[setting.path], origins[setting.path], level_of[setting.path] = value, given.origin, level
    for stage in STAGES:
        # A global --device from above the profile is stronger than the profile's own choice for a stage.
        if level_of.get(f"{stage}.device") == 0 and level_of.get("device", 0) > 0:
            del values[f"{stage}.device"], origins[f"{stage}.device"]
    return _check(_build(values, origins))


def _backends_named(layers: list[Layer]) -> list[dict[str, str]]:
    """For each layer, the backends that it names, by stage."""
    named: list[dict[str, str]] = []
    for layer in layers:
        own: dict[str, str] = {}
        for given in layer:
            stage, _, leaf = given.name.partition("_")
            if leaf == "backend" and stage == "stt" and given.value == NONE:
                own[stage] = NONE
            elif leaf == "backend" and stage in STAGES:
                try:
                    own[stage] = find(stage, str(given.value)).name
                except UnknownBackend as error:
                    raise ConfigError(f"{given.origin}: {error}") from error
        named.append(own)
    return named


def _stage_name(given: Given, backends: Mapping[str, str], lenient: bool) -> str | None:
    """`qwen3_tts_device` → `tts_device` where qwen3 speaks; None where `lenient` and another backend was chosen."""
    if given.name in settings():
        return given.name
    named = _named_by_prefix(given.name)
    if not named:
        return given.name
    chosen = [name for name, entry in named if backends.get(entry.stage) == entry.name]
    if len(chosen) == 1:
        return canonical(chosen[0])
    if len(chosen) > 1:
        raise ConfigError(
            f"{given.origin} could mean {' or '.join(f'--{name}' for name in chosen)}: say which."
        )
    if lenient:
        return None
    entry = named[0][1]
    raise ConfigError(
        f"{given.origin} is for the {entry.stage} backend {entry.name}, but {backends.get(entry.stage)} was chosen: "
        f"add --{entry.stage} {entry.name}, or leave it out."
    )


def _named_by_prefix(name: str) -> list[tuple[str, Entry]]:
    """The backends whose prefix `name` has, each with the setting that it then means; only the longest prefix counts,
    so that `openai_stt_model` is nothing of the TTS backend openai."""
    named: dict[tuple[str, str], tuple[int, str, Entry]] = {}
    for entry in ENTRIES:
        for own in (entry.name, *entry.prefixes):
            flat = own.replace("-", "_").lower()
            for prefix in (f"{flat}_", f"{flat}_{entry.stage}_"):
                if name.startswith(prefix):
                    leaf = f"{entry.stage}_{name.removeprefix(prefix)}"
                    named[entry.stage, entry.name] = len(prefix), leaf, entry
    longest = max((length for length, _, _ in named.values()), default=0)
    return [(leaf, entry) for length, leaf, entry in named.values() if length == longest]


def _option(
    given: Given, name: str, here: Mapping[str, str], final: Mapping[str, str], known: Mapping[str, Setting]
) -> Setting | None:
    """The backend option that `name` means; None where its own layer names a backend that a higher one replaced."""
    stage, _, option = name.partition("_")
    if stage not in STAGES or not option:
        raise _unknown(given, [*known, *MAC_SWITCHES, "config"])
    if here.get(stage, final[stage]) != final[stage]:
        return None
    types = _option_types(stage, final[stage])
    field, _, key = option.partition("_")
    if option not in types and OPTION_ALIASES.get(option) in types:
        option = OPTION_ALIASES[option]
    if option in types:
        return Setting(name, f"{stage}.options.{option}", types[option], None, "")
    if key and _is_mapping(types.get(field)):
        return Setting(name, f"{stage}.options.{field}.{key}", Any, None, "")
    names = [f"{stage}_{known_option}" for known_option in types]
    raise _unknown(given, [*known, *names], f" ({stage} backend {final[stage]})")


def _option_types(stage: str, backend: str) -> dict[str, Any]:
    """Names and types of the options of `backend`."""
    if backend == NONE:
        return {}
    cls = find(stage, backend).options_class()
    hints = get_type_hints(cls)
    return {leaf.name: hints[leaf.name] for leaf in fields(cls)}


def _is_mapping(kind: Any) -> bool:
    return kind is dict or get_origin(kind) in (dict, Mapping)


def _unknown(given: Given, names: Sequence[str], where: str = "") -> ConfigError:
    return ConfigError(f"{given.origin}: {given.name!r} is not a setting{where}.{_near(given.name, names)}")


def _near(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def _convert(setting: Setting, given: Given) -> Any:
    """`given.value` in the type of `setting`; text comes from flags and the environment, anything from a file."""
    import msgspec
    import yaml

    value = given.value
    if isinstance(value, str) and setting.type is Any:
        value = yaml.safe_load(value) if value else value
    elif isinstance(value, str) and _is_mapping(setting.type):
        value = _pairs(value)
    elif isinstance(value, str) and get_origin(setting.type) in (list, tuple, Sequence):
        value = [part.strip() for part in value.split(",")]
    elif (
        isinstance(value, (int, float)) and not isinstance(value, bool) and setting.type in (str, str | None)
    ):
        value = str(value)
    elif isinstance(value, str) and setting.type not in (str, str | None):
        value = value.strip()
    try:
        converted = msgspec.convert(value, setting.type, strict=False)
        return _program(converted) if setting.path in PROGRAMS and converted is not None else converted
    except msgspec.ValidationError as error:
        raise ConfigError(f"{given.origin}: {given.name} cannot be {given.value!r}: {error}.") from error


def _program(path: str) -> str:
    """The absolute path of a program: Ray starts it in another folder.  A name alone is for PATH."""
    return str(Path(path).expanduser().absolute()) if "/" in path else path


def _pairs(text: str) -> Any:
    """`a=1,b=2`, or a YAML/JSON mapping, as a dict."""
    import yaml

    if "=" in text and not text.lstrip().startswith("{"):
        pairs = (part.partition("=") for part in text.split(","))
        return {key.strip(): yaml.safe_load(value) for key, _, value in pairs}
    return yaml.safe_load(text) if text.strip() else {}


def _build(values: Mapping[str, Any], origins: Mapping[str, str]) -> Config:
    """The tree with `values` by path."""
    top: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        section, *rest = path.split(".")
        if not rest:
            top[section] = value
            continue
        place = sections.setdefault(section, {})
        for step in rest[:-1]:
            place[step] = dict(place.get(step) or {})
            place = place[step]
        place[rest[-1]] = value
    config = Config(origins=dict(origins))
    built = {name: replace(getattr(config, name), **leaves) for name, leaves in sections.items()}
    return replace(config, **top, **built)


Check = Callable[[Any], object]


def _check(config: Config) -> Config:
    """Refuse values of the right type that mean nothing."""
    from orchestration.asks import parse_bytes, parse_device, parse_replicas

    def check(path: str, name: str, value: Any, parse: Check) -> None:
        try:
            parse(value)
        except ValueError as error:
            raise ConfigError(f"{config.origins.get(path, 'default')}: {name}: {error}") from error

    check("device", "device", config.device, parse_device)
    session = config.session
    check("session.turn_detection", "turn_detection", session.turn_detection, _one_of(TURN_DETECTION))
    check("session.speculation", "speculation", session.speculation, _one_of(SPECULATION))
    check("session.partial_share", "partial_share", session.partial_share, _share)
    check("session.barge_in_ms", "barge_in_ms", session.barge_in_ms, _at_least(0))
    for stage in STAGES:
        wanted = config.stage(stage)
        at = f"{stage}."
        if wanted.device is not None:
            check(at + "device", f"{stage}_device", wanted.device, parse_device)
        check(at + "dtype", f"{stage}_dtype", wanted.dtype, _one_of(DTYPES))
        check(at + "replicas", f"{stage}_replicas", wanted.replicas, parse_replicas)
        check(at + "standby", f"{stage}_standby", wanted.standby, _one_of((0, 1)))
        if wanted.gpu_memory is not None:
            check(at + "gpu_memory", f"{stage}_gpu_memory", wanted.gpu_memory, parse_bytes)
    return config


TURN_DETECTION = ("server_vad", "semantic_vad", "none")
SPECULATION = ("off", "stt", "llm", "tts")
DTYPES = ("auto", "float32", "float16", "bfloat16")


def _at_least(least: float) -> Check:
    def parse(value: Any) -> None:
        if value < least:
            raise ValueError(f"{value!r} is less than {least}.")

    return parse


def _share(value: Any) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{value!r} is not between 0 and 1.")


def _one_of(choices: Sequence[Any]) -> Check:
    def parse(value: Any) -> None:
        if value not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(map(str, choices))}.")

    return parse
