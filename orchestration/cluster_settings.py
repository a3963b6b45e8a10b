"""How this machine's Ray is started, or which cluster is joined."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RaySettings:
    """Ray's own settings."""

    address: str | None = field(
        default=None,
        metadata={"help": "join this Ray cluster (auto, host:port, ray://…) instead of starting one"},
    )
    cluster_file: str | None = field(
        default=None,
        metadata={
            "help": "cluster file whose node types count as available; default: the one that `ray up` left here"
        },
    )
    object_store_mb: int = field(
        default=256, metadata={"help": "size of the object store of a Ray started here, in MB"}
    )
