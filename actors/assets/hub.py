"""The Hugging Face hub: catalogued files into an asset's folder, and whole repositories by id."""

import io
import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from actors.assets.asset import AssetError, Hub
from actors.assets.registry import Report, sha256_of

_PARTIAL = "partial"
_UNWANTED = ("*.h5", "*.nemo", "*.msgpack", "*.ot", "*.tflite", "*.mlmodel")
"""Weights in formats that no backend reads."""


def fetch(source: Hub, folder: Path, report: Report) -> None:
    """Downloads the source's files into `folder` under the asset's names; a part already there is resumed.

    Raises AssetError when a file cannot be had or its sha256 differs.
    """
    from huggingface_hub import hf_hub_download

    if (trouble := _unreachable()) is not None:
        raise AssetError(trouble)
    for file in source.files:
        label = f"hub {source.repo}/{file.path}"
        try:
            got = Path(
                hf_hub_download(
                    source.repo, file.path, local_dir=folder / _PARTIAL, tqdm_class=_meter(label, report)
                )
            )
        except Exception as error:
            raise AssetError(f"{file.path}: {_first_line(error)}") from error
        if file.sha256 and (found := sha256_of(got)) != file.sha256:
            got.unlink()
            raise AssetError(f"{file.path}: sha256 is {found}, expected {file.sha256}; nothing was kept")
        got.replace(folder / file.name)
    shutil.rmtree(folder / _PARTIAL)


def _meter(label: str, report: Report) -> type[Any]:
    """A progress class for the hub's client that draws nothing and passes its count on.

    It counts also where a library of this process has turned the hub's own bars off.
    """
    from tqdm import tqdm

    class Meter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, name: str | None = None, **options: Any) -> None:
            super().__init__(*args, **{**options, "file": io.StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            shown: bool | None = super().update(n)
            report(label, int(self.n), int(self.total or 0))
            return shown

    return Meter


def snapshot(repo: str) -> Path:
    """A repository that the catalogue does not know, in the hub's own cache. Raises AssetError."""
    from huggingface_hub import snapshot_download

    trouble = _unreachable()
    try:
        return Path(
            snapshot_download(repo, ignore_patterns=list(_UNWANTED), local_files_only=trouble is not None)
        )
    except Exception as error:
        raise AssetError(
            f"{repo} is no asset of the catalogue, no local path, and the hub did not give it: "
            f"{trouble or _first_line(error)}"
        ) from error


def _unreachable() -> str | None:
    """Why the hub cannot be reached, found at once: its client would try again for half a minute a file."""
    from huggingface_hub import constants

    host = urlsplit(constants.ENDPOINT).hostname
    if getproxies():
        return None
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        return f"no connection to {host}: {error.strerror}"
    return None


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
