"""The command line: commands, their own arguments, and settings as flags."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from s2s import run
from s2s.config import Config

HEAVY = (
    "torch",
    "transformers",
    "onnxruntime",
    "ray",
    "xllamacpp",
    "soundfile",
    "numpy",
    "msgspec",
    "yaml",
    "rich",
)
FAKES = [
    word
    for stage in ("vad", "turn", "stt", "llm", "tts")
    for word in (f"--{stage}", "tests.orchestration.fake_backends:Fake")
]


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from s2s.run import main; assert main(['--help']) == 0; "
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "--stt" in done.stdout or "--<stage>_device" in done.stdout
    assert all(command in done.stdout for command in run.COMMANDS)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Config, argparse.Namespace]]:
    """What would have been run."""
    calls: list[tuple[str, Config, argparse.Namespace]] = []

    def fake(self: run.Command, config: Config, args: argparse.Namespace) -> int:
        calls.append((self.module, config, args))
        return 0

    monkeypatch.setattr(run.Command, "run", fake)
    return calls


def test_flags_alone_mean_serve(called: list[tuple[str, Config, argparse.Namespace]]) -> None:
    assert run.main([*FAKES, "--port", "9"]) == 0
    module, config, _ = called[0]
    assert (module, config.server.port) == ("s2s.serve", 9)


def test_a_commands_arguments_and_settings_may_be_mixed(
    called: list[tuple[str, Config, argparse.Namespace]],
) -> None:
    words = ["ask", "--stt_device", "cpu", "--input", "a.wav", "b.wav", "--output_dir=o", "--json", *FAKES]
    assert run.main(words) == 0
    module, config, args = called[0]
    assert module == "s2s.ask"
    assert (args.input, args.output_dir, args.json) == (["a.wav", "b.wav"], "o", True)
    assert config.stt.device == "cpu"


def test_the_seeds_commands(called: list[tuple[str, Config, argparse.Namespace]]) -> None:
    words = [
        "serve", *FAKES, "--stt_model_name", "small", "--stt_device", "cpu", "--stt_torch_dtype", "float32",
        "--stt_gen_max_new_tokens", "128", "--stt_gen_num_beams", "4", "--stt_gen_temperature", "0.0",
        "--language", "auto", "--device", "cpu",
    ]  # fmt: skip
    assert run.main(words) == 0
    config = called[0][1]
    assert config.stt.options == {
        "model_name": "small",
        "gen": {"max_new_tokens": 128, "num_beams": 4, "temperature": 0.0},
    }
    assert (config.stt.device, config.stt.dtype, config.device) == ("cpu", "float32", "cpu")
    assert config.session.language == "auto"


def test_switches_take_no_value(called: list[tuple[str, Config, argparse.Namespace]]) -> None:
    assert run.main(["pull", "--mac-optimal-settings", "kokoro", *FAKES]) == 0
    _, config, args = called[0]
    assert (config.profile, args.names) == ("mac", ["kokoro"])


def test_negative_numbers_are_values() -> None:
    assert run.split(["--llm_gpu_layers", "-1"], set()) == ([], [("llm_gpu_layers", "-1")])


def test_an_unknown_command_is_an_error_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["sevre"]) == 2
    assert "Did you mean 'serve'?" in capsys.readouterr().err


def test_an_unknown_flag_is_an_error_before_anything_runs(
    called: list[tuple[str, Config, argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["serve", *FAKES, "--stt_devise", "cpu"]) == 2
    assert "Did you mean 'stt_device'" in capsys.readouterr().err
    assert not called


def test_config_prints_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["config", "--print", *FAKES, "--stt_device", "cuda:1"]) == 0
    assert "cuda:1" in capsys.readouterr().out


def test_plan_prints_json_without_starting_anything(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert run.main(["plan", "--json", *FAKES, "--device", "cpu"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["replica"] for row in answer["plan"]] == ["vad-0", "turn-0", "stt-0", "llm-0", "tts-0"]
    assert {row["device"] for row in answer["plan"]} == {"cpu"}


def test_an_impossible_plan_exits_2_and_names_stage_and_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["plan", *FAKES, "--stt_device", "mps", "--llm_device", "cuda:77"]) == 2
    error = capsys.readouterr().err
    assert "--stt_device mps" in error or "--llm_device cuda:77" in error


@pytest.mark.parametrize("command", sorted(run.COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run.main([command, "--help"])
    assert left.value.code == 0
    assert f"s2s.run {command}" in capsys.readouterr().out
