"""Profile < file < environment < flags; unknown names are errors; each value knows where it came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from s2s.config import Config, ConfigError, settings
from s2s.config_view import options_text, tree_text
from s2s.layers import load, profiles

FAKE = "tests.orchestration.fake_backends:Fake"
FAKES = [(stage, FAKE) for stage in ("vad", "turn", "stt", "llm", "tts")]


def config(
    *flags: tuple[str, str | None], environ: dict[str, str] | None = None, file: Path | None = None
) -> Config:
    return load([*FAKES, *flags], environ, file)


def yaml(folder: Path, text: str) -> Path:
    path = folder / "my.yaml"
    path.write_text(text)
    return path


def test_each_layer_beats_the_one_below(tmp_path: Path) -> None:
    file = yaml(tmp_path, "stt: {threads: 5}\nserver: {port: 5}")
    assert config().stt.threads == 2  # the profile
    assert config(file=file).stt.threads == 5
    assert config(file=file, environ={"S2S_STT_THREADS": "6"}).stt.threads == 6
    both = config(("stt_threads", "7"), file=file, environ={"S2S_STT_THREADS": "6"})
    assert both.stt.threads == 7
    assert both.server.port == 5


def test_each_value_knows_where_it_came_from(tmp_path: Path) -> None:
    file = yaml(tmp_path, "stt: {cpus: 1}")
    made = config(("stt-device", "cpu"), file=file, environ={"S2S_PORT": "1234"})
    assert made.origins["stt.device"] == "flag --stt-device"
    assert made.origins["server.port"] == "environment S2S_PORT"
    assert made.origins["stt.cpus"] == f"file {file}"
    assert made.origins["stt.threads"] == "profile embedded"
    assert "server.host" not in made.origins


@pytest.mark.parametrize("spelling", ["stt_device", "stt-device", "STT-Device"])
def test_dashes_and_underscores_are_the_same(spelling: str) -> None:
    assert config((spelling, "cuda:1")).stt.device == "cuda:1"


def test_the_config_file_is_named_by_flag_or_environment(tmp_path: Path) -> None:
    file = str(yaml(tmp_path, "host: 0.0.0.0"))
    assert config(("config", file)).server.host == "0.0.0.0"
    assert config(environ={"S2S_CONFIG": file}).server.host == "0.0.0.0"


def test_sections_and_flat_names_mean_the_same_in_a_file(tmp_path: Path) -> None:
    nested = config(file=yaml(tmp_path, "llm: {device: 'cuda:1', model_name: big}\nray: {address: auto}"))
    flat = config(file=yaml(tmp_path, "llm_device: 'cuda:1'\nllm_model_name: big\nray_address: auto"))
    assert nested == flat
    assert nested.llm.options == {"model_name": "big"}
    assert nested.ray.address == "auto"


def test_a_stages_own_device_beats_the_global_one_whatever_the_layer(tmp_path: Path) -> None:
    file = yaml(tmp_path, "stt: {device: cpu}")
    made = config(("device", "cuda"), file=file)
    assert made.stt.device == "cpu"
    assert made.llm.device is None
    assert made.device == "cuda"


def test_the_global_device_beats_what_the_profile_chose_for_a_stage() -> None:
    assert config(("profile", "two-gpu")).stt.device == "cuda:0"
    assert config(("profile", "two-gpu"), ("device", "cpu")).stt.device is None


@pytest.mark.parametrize("switch", ["local_mac_optimal_settings", "mac-optimal-settings"])
def test_mac_settings_are_a_profile_and_explicit_flags_win(switch: str) -> None:
    made = config((switch, None), ("stt_device", "cpu"))
    assert made.profile == "mac"
    assert made.device == "mps"
    assert made.stt.device == "cpu"


def test_backend_options_are_typed_by_the_backends_dataclass() -> None:
    made = config(("stt_beams", "4"), ("stt_fast", None), ("stt_language", "de"), ("tts_voices", "a,b"))
    assert made.stt.options["beams"] == 4
    assert made.stt.options["fast"] is True
    assert made.stt.options["language"] == "de"
    assert made.tts.options["voices"] == ("a", "b")


def test_gen_options_gather_in_one_mapping_over_all_layers(tmp_path: Path) -> None:
    file = yaml(tmp_path, "stt: {gen: {num_beams: 2, task: transcribe}}")
    made = config(
        ("stt_gen_num_beams", "4"),
        ("stt_gen_temperature", "0.0"),
        ("stt_gen_return_timestamps", None),
        file=file,
    )
    assert made.stt.options["gen"] == {
        "num_beams": 4,
        "task": "transcribe",
        "temperature": 0.0,
        "return_timestamps": True,
    }


def test_torch_dtype_is_the_stages_dtype() -> None:
    assert config(("stt_torch_dtype", "float32")).stt.dtype == "float32"


def test_options_of_a_backend_that_a_higher_layer_replaced_are_dropped() -> None:
    assert load([*FAKES]).stt.options == {}  # the profile's model is for whisper


@pytest.mark.parametrize(
    ("flag", "near"),
    [
        ("stt_devise", "stt_device"),
        ("prot", "port"),
        ("llm_model_nam", "llm_model_name"),
        ("mac_optimal_setting", "mac_optimal_settings"),
    ],
)
def test_unknown_names_are_errors_with_the_nearest_name(flag: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"--{flag}.*Did you mean '{near}'"):
        config((flag, "1"))


def test_unknown_names_are_errors_in_a_file_and_the_environment(tmp_path: Path) -> None:
    file = yaml(tmp_path, "stt: {threds: 1}")
    with pytest.raises(ConfigError, match=r"my\.yaml.*Did you mean 'stt_threads'"):
        config(file=file)
    with pytest.raises(ConfigError, match=r"S2S_STT_THREDS.*Did you mean 'stt_threads'"):
        config(environ={"S2S_STT_THREDS": "1"})


def test_the_cache_folder_is_not_a_setting() -> None:
    config(environ={"S2S_CACHE": "/somewhere", "PATH": "/bin"})


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("stt_device", "gpu", "device 'gpu' is not known"),
        ("stt_device", "cpu+cuda:0", "numbered GPUs"),
        ("stt_device", "cuda:0+cuda:0", "twice"),
        ("stt_replicas", "3..2", "maximum"),
        ("stt_replicas", "many", "neither a number"),
        ("stt_standby", "2", "not one of 0, 1"),
        ("stt_dtype", "int8", "not one of auto"),
        ("stt_gpu_memory", "6 parsecs", "not a size"),
        ("stt_threads", "two", "stt_threads cannot be 'two'"),
        ("port", "http", "port cannot be 'http'"),
        ("profile", "embeded", "Did you mean 'embedded'"),
        ("stt", "wisper", "Did you mean 'whisper'"),
        ("turn_detection", "vad", "not one of"),
        ("speculation", "everything", "not one of off, stt, llm, tts"),
        ("barge_in_ms", "-1", "less than 0"),
        ("partial_share", "2", "not between 0 and 1"),
    ],
)
def test_values_that_mean_nothing_are_errors_that_name_flag_and_value(
    flag: str, value: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        config((flag, value))
    assert f"--{flag}" in str(caught.value)


def test_flags_of_a_backend_that_was_not_chosen_say_how_to_choose_it() -> None:
    with pytest.raises(ConfigError, match=r"--kokoro_device is for the tts backend kokoro.*add --tts kokoro"):
        config(("kokoro_device", "cpu"))


def test_flags_may_be_spelled_by_backend() -> None:
    made = load(
        [*((stage, FAKE) for stage in ("vad", "stt", "llm")), ("tts", "kokoro"), ("kokoro_device", "cpu")]
    )
    assert made.tts.device == "cpu"
    assert load([*FAKES[:4], ("tts", "kokoro"), ("kokoro_tts_threads", "3")]).tts.threads == 3


def test_every_stage_runs_so_that_any_client_may_ask_for_any_turn_detection() -> None:
    assert config().stages == ("vad", "turn", "stt", "llm", "tts")


def test_a_list_is_comma_separated_in_a_flag_and_a_list_in_a_file(tmp_path: Path) -> None:
    two = ("https://a.example", "https://b.example")
    assert config(("allow_origin", ",".join(two))).server.allow_origin == two
    assert config(file=yaml(tmp_path, f"allow_origin: {list(two)}")).server.allow_origin == two


def test_server_switches_need_no_value() -> None:
    server = config(("allow-16k", None), ("transcribe", None)).server
    assert server.allow_16k
    assert server.transcribe


def test_labels_and_resources_are_pairs() -> None:
    made = config(("llm_labels", "tier=gpu,zone=a"), ("llm_resources", "stage_llm=1"))
    assert made.llm.labels == {"tier": "gpu", "zone": "a"}
    assert made.llm.resources == {"stage_llm": 1.0}


@pytest.mark.parametrize("profile", profiles())
def test_every_profile_loads(profile: str) -> None:
    assert load([("profile", profile), *FAKES]).profile == profile


def test_every_setting_has_a_meaning() -> None:
    assert all(setting.help for setting in settings().values())


def test_print_shows_values_with_their_origin_and_hides_the_key() -> None:
    text = tree_text(config(("api_key", "sesame"), ("stt_gen_num_beams", "4")))
    assert "sesame" not in text
    assert any(line.split()[:2] == ["stt.options.gen.num_beams", "4"] for line in text.splitlines())
    assert any(
        line.startswith("server.api_key") and line.endswith("flag --api_key") for line in text.splitlines()
    )


def test_options_are_listed_with_their_meaning() -> None:
    text = options_text(config())
    assert "--stt_load_s  [0.0]" in text
    assert "Seconds that loading takes." in text


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        config(file=tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="not YAML"):
        config(file=yaml(tmp_path, "a: [1"))
    with pytest.raises(ConfigError, match="must hold settings by name"):
        config(file=yaml(tmp_path, "- 1"))
