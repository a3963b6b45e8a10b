"""Where a GGUF model lies: an asset, a path, or a file of a repository on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path


def local_path(name: str) -> Path | None:
    """Where the model lies, if it is on this machine."""
    from actors.assets import here

    path = here(name)
    return path if path is not None and path.is_file() else None


def model_path(name: str) -> Path:
    """The .gguf file that `name` means, fetched if need be."""
    from actors.assets import resolve

    local = local_path(name)
    if local is not None:
        return local
    repository, colon, file = name.partition(":")
    if colon and "/" in repository:
        from huggingface_hub import hf_hub_download

        try:
            return Path(hf_hub_download(repository, file))
        except Exception as error:
            raise RuntimeError(
                f"model_name {name!r}: {file} could not be had from {repository} on the hub ({error}); "
                "check the names and the connection, or give the path of a .gguf file."
            ) from error
    path = resolve(name)
    if path.is_dir():
        files = sorted(path.glob("*.gguf"))
        if len(files) != 1:
            raise ValueError(
                f"model_name {name!r} has {len(files)} .gguf files in {path}; name one as owner/repository:file.gguf."
            )
        return files[0]
    return path
