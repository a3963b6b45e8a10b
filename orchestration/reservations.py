"""What Ray has set aside for replicas: the driver of `groups`."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestration.groups import Group

GROUP_TIMEOUT_S = 60.0
"""How long present nodes may take to reserve a placement group; those still pending are waited for longer."""
PENDING_TIMEOUT_S = 1800.0


class NotReserved(RuntimeError):
    """A node did not set aside what was planned on it; the message says what and for whom."""


class Reservations:
    """The placement groups that were made, by the slots that live in them."""

    def __init__(self) -> None:
        self._groups: list[tuple[Group, Any]] = []

    async def reserve(self, group: Group, pending: bool) -> None:
        """Have Ray set `group` aside, on a node that is there or `pending`.  Raises `NotReserved`."""
        from ray.util import placement_group, remove_placement_group

        made = placement_group(
            [dict(bundle) for bundle in group.bundles],
            strategy="STRICT_PACK",
            bundle_label_selector=[dict(group.labels)] * len(group.bundles) if group.labels else [],
        )
        self._groups.append((group, made))
        limit_s = PENDING_TIMEOUT_S if pending else GROUP_TIMEOUT_S
        if not await asyncio.to_thread(made.wait, limit_s):
            self._groups.remove((group, made))
            remove_placement_group(made)
            raise NotReserved(
                f"{', '.join(group.of)}: node {group.node} did not reserve {list(group.bundles)} within "
                f"{limit_s:.0f} s; something else in this Ray cluster holds it."
            )

    def strategy(self, slot: str) -> Any:
        """Ray's scheduling strategy that puts an actor into the bundle of `slot`."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group, made = self._of(slot)
        return PlacementGroupSchedulingStrategy(made, group.of[slot])

    async def node_of(self, slot: str) -> str | None:
        """Id of the node on which `slot` is reserved; None: it is gone again."""
        from ray.util import placement_group_table

        group, made = self._of(slot)
        table = await asyncio.to_thread(placement_group_table, made)
        node_id: str | None = table.get("bundles_to_node_id", {}).get(group.of[slot])
        return node_id

    def forget(self, slot: str) -> None:
        """`slot` leaves its group; a group without slots is given back."""
        from ray.util import remove_placement_group

        for group, made in [entry for entry in self._groups if slot in entry[0].of]:
            del group.of[slot]
            if not group.of:
                remove_placement_group(made)
                self._groups.remove((group, made))

    def clear(self) -> None:
        """Give back everything."""
        from ray.util import remove_placement_group

        for _, made in self._groups:
            remove_placement_group(made)
        self._groups.clear()

    def _of(self, slot: str) -> tuple[Group, Any]:
        return next((group, made) for group, made in self._groups if slot in group.of)
