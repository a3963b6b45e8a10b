"""Endpointing: when does a person's turn begin, pause and end?  One strategy a file, one line each here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.session.config import Pace, SemanticVad, ServerVad, TurnDetection
from orchestration.session.turns.base import Endpointing
from orchestration.session.turns.manual import ManualTurns
from orchestration.session.turns.semantic import SemanticEndpointing
from orchestration.session.turns.silence import SilenceEndpointing

STRATEGIES: dict[type[Any], Callable[[Any, Pace], Endpointing]] = {
    ServerVad: SilenceEndpointing,
    SemanticVad: SemanticEndpointing,
    type(None): ManualTurns,
}


def endpointing(detection: TurnDetection | None, pace: Pace) -> Endpointing:
    """The strategy that `turn_detection` asks for."""
    return STRATEGIES[type(detection)](detection, pace)
