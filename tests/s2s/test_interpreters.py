import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from s2s.config import ConfigError
from s2s.interpreters import check_interpreters
from s2s.layers import load


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def refused(python: str) -> str:
    with pytest.raises(ConfigError) as caught:
        check_interpreters(load([("tts_python", python)]))
    text = str(caught.value)
    assert text.startswith(f"flag --tts_python: the interpreter {python} cannot host tts: ")
    return text


def test_this_interpreter_can_host_a_stage_and_so_can_none() -> None:
    check_interpreters(load([("tts_python", sys.executable)]))
    check_interpreters(load([]))


def test_a_program_that_is_not_there_or_no_python(tmp_path: Path) -> None:
    assert "no such program" in refused(str(tmp_path / "python"))
    assert "does not run as a Python" in refused(program(tmp_path / "sh", "echo hello"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"python": "3.9.1", "ray": "2.0"}', "python 3.9.1, .* is needed; ray 2.0, .* is needed"),
        ('{"python": "%s"}', "ray is missing, .* is needed.* `pip install ray=="),
        (
            '{"python": "%s", "ray": "RAY", "error": "No module named x"}',
            "No module named x. Install s2s into it",
        ),
    ],
)
def test_versions_that_differ_and_what_is_missing_are_named(tmp_path: Path, answer: str, words: str) -> None:
    told = answer.replace("%s", sys.version.split()[0]).replace("RAY", version("ray"))
    assert re.search(words, refused(program(tmp_path / "python", f"echo '{told}'")))


def test_what_is_missing_is_installed_from_the_sources_or_as_it_was_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = f'{{"python": "{sys.version.split()[0]}", "ray": "{version("ray")}", "error": "No s2s"}}'
    python = program(tmp_path / "python", f"echo '{told}'")
    monkeypatch.setattr("s2s.interpreters.ROOT", tmp_path)
    assert str(tmp_path) not in refused(python).partition("No s2s")[2], "as in site-packages"
    (tmp_path / "pyproject.toml").touch()
    assert f"pip install --no-deps {tmp_path}," in refused(python)


def test_a_relative_path_is_meant_from_the_current_folder_whatever_folder_ray_starts_it_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("./python", "python/../python", "~/python"):
        named = load([("tts_python", given)]).tts.python
        assert named is not None and Path(named).is_absolute()
        assert (
            Path(named).parts[-1] == "python" and Path(named).parts[: len(tmp_path.parts)] == tmp_path.parts
        )
    assert load([("tts_python", "python3")]).tts.python == "python3", "for PATH"


def test_it_is_asked_in_the_current_folder_where_ray_looks_for_modules_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = f'{{"python": "{sys.version.split()[0]}", "ray": "{version("ray")}", "error": "in $(pwd -P)"}}'
    monkeypatch.chdir(tmp_path)
    text = refused(program(tmp_path / "python", "echo " + told.replace('"', '\\"')))
    assert f"in {tmp_path.resolve()}." in text
