"""Interpreters of a stage's own (`--tts_python`): checked before anything starts, as Ray tries a bad one for ever."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from s2s.config import Config, ConfigError

TIMEOUT_S = 60.0
_ASK = """
import json, sys
found = {"python": sys.version.split()[0]}
try:
    import ray
    found["ray"] = ray.__version__
    import actors.stage
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
ROOT = Path(__file__).parents[1]
"""The sources, or site-packages."""


def check_interpreters(config: Config) -> None:
    """Raise `ConfigError` for a stage whose interpreter cannot host it: it must have this Python's and this Ray's
    version, and be able to import the stages."""
    for stage in config.stages:
        python = config.stage(stage).python
        problem = _problem(python) if python is not None else None
        if problem is not None:
            origin = config.origins.get(f"{stage}.python", "default")
            raise ConfigError(f"{origin}: the interpreter {python} cannot host {stage}: {problem}")


def _problem(python: str) -> str | None:
    """What is wrong with the interpreter `python`, and what to do, in words."""
    if shutil.which(python) is None:
        return "there is no such program. Give the path of a virtual environment's bin/python."
    try:
        # Modules of the current folder count, as Ray looks for them there too.
        answer = subprocess.run(
            [python, "-c", _ASK], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        found = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return f"it does not run as a Python ({error})."
    own = {"python": sys.version.split()[0], "ray": version("ray")}
    wrong = [
        f"{name} {found.get(name, 'is missing')}, {own[name]} is needed"
        for name in own
        if found.get(name) != own[name]
    ]
    if wrong:
        return f"{'; '.join(wrong)}. Make it with this Python and `pip install ray=={own['ray']}`."
    if "error" in found:
        return f"{found['error']}. Install s2s into it: {_how_to_install()}, and what the error names."
    return None


def _how_to_install() -> str:
    """How this s2s gets into another environment, where only the sources say where it comes from."""
    if (ROOT / "pyproject.toml").is_file():
        return f"pip install --no-deps {ROOT}"
    return f"the same s2s {version('s2s')} as here, from where you had it, by pip install --no-deps"
