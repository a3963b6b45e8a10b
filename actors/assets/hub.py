"""The Hugging Face hub: catalogued files into an asset's folder, and whole repositories by id."""

from pathlib import Path

from actors.assets.asset import AssetError, Hub
from actors.assets.registry import Report, sha256_of

_UNWANTED = ("*.h5", "*.msgpack", "*.ot", "*.tflite", "*.mlmodel")
"""Weights in formats that no backend reads."""


def fetch(source: Hub, folder: Path, report: Report) -> None:
    """Downloads the source's files into `folder` under the asset's names; a part already there is resumed.

    Raises AssetError when a file cannot be had or its sha256 differs.
    """
    from huggingface_hub import hf_hub_download

    for done, file in enumerate(source.files):
        report(f"hub {source.repo}", done, len(source.files))
        try:
            got = Path(hf_hub_download(source.repo, file.path, local_dir=folder / "hub"))
        except Exception as error:
            raise AssetError(f"hub {source.repo}/{file.path}: {_first_line(error)}") from error
        if file.sha256 and (found := sha256_of(got)) != file.sha256:
            got.unlink()
            raise AssetError(f"hub {source.repo}/{file.path}: sha256 is {found}, expected {file.sha256}")
        got.replace(folder / file.name)
    report(f"hub {source.repo}", len(source.files), len(source.files))


def snapshot(repo: str) -> Path:
    """A repository that the catalogue does not know, in the hub's own cache. Raises AssetError."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repo, ignore_patterns=list(_UNWANTED)))
    except Exception as error:
        raise AssetError(
            f"{repo} is no asset of the catalogue, no local path, and the hub did not give it: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
