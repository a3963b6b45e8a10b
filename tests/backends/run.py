"""Runs each backend's tests in an environment of its own: `python tests/backends/run.py [extra ...]`.

The environment lies on top of this one: pip puts what the extra needs in front of it, in the extra's own versions, so
that libraries that clash never meet.  It is removed afterwards.  Needs a package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
TESTS = {
    "kokoro": "test_kokoro_torch.py",
    "qwen3": "test_qwen3.py",
    "mlx-lm": "test_mlx_lm.py",
    "chatTTS": "test_chat_tts.py",
    "pocket": "test_pocket.py",
    "supertonic": "test_supertonic.py",
    "kitten": "test_kitten.py",
    "paraformer": "test_paraformer.py",
    "whisper-mlx": "test_whisper_mlx.py",
    "mlx-audio": "test_mlx_audio_whisper.py",
}


def requirements(extra: str) -> list[str]:
    """What pyproject installs for `extra`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found: list[str] = project["optional-dependencies"][extra]
    return found


def make(folder: Path) -> Path:
    """An environment in `folder` on top of this one; its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "below.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def leave_out_cuda(folder: Path) -> None:
    """Without the compiled half of torchaudio, which wheels have for CUDA alone, its Python half works on any torch."""
    for library in folder.glob("lib/python*/site-packages/torchaudio/lib/*torchaudio.so"):
        library.unlink()


def run(extra: str) -> int:
    """Install `extra` and run its tests; pytest's exit code, or pip's."""
    folder = Path(tempfile.mkdtemp(prefix=f"s2s-{extra}-"))
    try:
        python = make(folder)
        install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", *requirements(extra)]
        installed = subprocess.run(install, check=False)
        if installed.returncode:
            return installed.returncode
        if torch.version.cuda is None:
            leave_out_cuda(folder)
        tests = ROOT / "tests" / "backends" / TESTS[extra]
        environment = {**os.environ, "S2S_BACKENDS": extra}
        return subprocess.run(
            [python, "-m", "pytest", "-q", str(tests)], cwd=ROOT, env=environment, check=False
        ).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(extras: list[str]) -> int:
    unknown = [extra for extra in extras if extra not in TESTS]
    if unknown:
        print(f"error: no tests for {', '.join(unknown)}. Known: {', '.join(TESTS)}.", file=sys.stderr)
        return 2
    results = {extra: run(extra) for extra in extras or TESTS}
    for extra, code in results.items():
        print(f"{extra:12} {'passed' if code == 0 else f'failed ({code})'}")
    return int(any(results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
