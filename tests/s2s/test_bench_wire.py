"""`bench wire` without its server."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from s2s.bench import wire
from s2s.config import Config


def ends_at_once(told: Any) -> None:
    """Stands in for the server's process; importable, as that is spawned."""


def test_a_server_that_does_not_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_serve", ends_at_once)
    with pytest.raises(SystemExit, match="ended before it listened"):
        wire.run(Config(), argparse.Namespace())
