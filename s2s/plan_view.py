"""A plan for people (a table, an explanation) and for programs (JSON)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from orchestration.asks import show_bytes
from orchestration.inventory import Inventory
from orchestration.placement import Plan, Slot


def plan_table(plan: Plan) -> Any:
    """The plan as a `rich.table.Table`."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table("stage", "replica", "backend", "node", "device", "threads", "memory", box=SIMPLE)
    for slot in plan.slots:
        role = f"{slot.name} (standby)" if slot.standby else slot.name
        node = f"{slot.node} (pending)" if slot.pending else slot.node
        table.add_row(
            slot.stage,
            role,
            slot.backend.rpartition(":")[2],
            node,
            _device(slot),
            str(slot.threads),
            _memory(slot),
        )
    if plan.notes:
        table.caption = "\n".join(plan.notes)
    return table


def plan_json(plan: Plan, inventory: Inventory) -> dict[str, Any]:
    """The plan and what it was made from, as plain values."""
    return {
        "plan": [
            {
                "stage": slot.stage,
                "replica": slot.name,
                "backend": slot.backend,
                "node": slot.node,
                "device": slot.device,
                "gpu_share": slot.gpu_share,
                "gpu_memory_mb": slot.gpu_memory_bytes // 1_000_000,
                "threads": slot.threads,
                "cpus": slot.cpus,
                "memory_mb": slot.memory_bytes // 1_000_000,
                "standby": slot.standby,
                "pending": slot.pending,
                "why": slot.why,
                "rejected": list(slot.rejected),
            }
            for slot in plan.slots
        ],
        "notes": list(plan.notes),
        "nodes": [asdict(node) for node in inventory.nodes],
    }


def explain(plan: Plan) -> str:
    """Why each replica is where it is, and what was rejected."""
    lines: list[str] = []
    for slot in plan.slots:
        lines.append(f"{slot.name} ({slot.backend}) on {slot.device} of {slot.node}: {slot.why}.")
        lines += [f"    not taken: {reason}." for reason in slot.rejected]
        reserved = f"{slot.cpus:g} CPU" + (f", {slot.gpu_share:g} GPU" if slot.gpu_share else "")
        lines.append(f"    {slot.threads} threads; reserves {reserved}; about {_memory(slot)}.")
    return "\n".join([*lines, *(f"{note}." for note in plan.notes)])


def _device(slot: Slot) -> str:
    return f"{slot.device} ({slot.gpu_share:.0%})" if slot.gpu_share and len(slot.gpus) <= 1 else slot.device


def _memory(slot: Slot) -> str:
    text = show_bytes(slot.memory_bytes)
    return f"{text} + {show_bytes(slot.gpu_memory_bytes)} GPU" if slot.gpu_memory_bytes else text
